"""What several packages share: the cluster of three brokers (group `kafka-three`) and the secured broker."""

import os
from collections.abc import Iterator
from pathlib import Path

import pytest

from logkeep.model.cache import cache_dir
from tests.support.kafka.client_view_of_configs import (
    acls,
    delete_acls,
    delete_groups,
    delete_topic,
    group_names,
    topic_names,
)
from tests.support.processes import wait_for
from tests.support.servers.kafka_cluster import KafkaCluster, kafka_cluster
from tests.support.servers.secured_kafka import SecuredKafka


@pytest.fixture(scope="session")
def three_brokers(tmp_path_factory: pytest.TempPathFactory) -> Iterator[KafkaCluster]:
    with kafka_cluster(tmp_path_factory.mktemp("three"), cache_dir(os.environ, Path.home())) as running:
        yield running


@pytest.fixture
def cluster(three_brokers: KafkaCluster) -> KafkaCluster:
    """All three are up, whatever the test before did to them."""
    for member in three_brokers.members.values():
        if member.pid is None:
            member.start()
    return three_brokers


@pytest.fixture(scope="session")
def secured(tmp_path_factory: pytest.TempPathFactory) -> Iterator[SecuredKafka]:
    """The one secured broker (group `kafka-secured`). A test removes what it made, see `as_before`."""
    with SecuredKafka(tmp_path_factory.mktemp("secured"), cache_dir(os.environ, Path.home())) as broker:
        yield broker


@pytest.fixture
def as_before(secured: SecuredKafka) -> Iterator[None]:
    """Others use this broker too: rules, topics and groups that a test made go with it."""
    topics, groups, rules = topic_names(secured), group_names(secured), acls(secured)
    yield
    if made := acls(secured) - rules:
        delete_acls(secured, *made)
    delete_groups(secured, *group_names(secured) - groups)
    for name in _own(topic_names(secured)) - topics:
        delete_topic(secured, name)
    wait_for(lambda: acls(secured) == rules and _own(topic_names(secured)) <= topics, "everything as before")


def _own(names: set[str]) -> set[str]:
    return {name for name in names if not name.startswith("__")}
