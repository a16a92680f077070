"""A broker that refuses a request: every verb that asks one, each right taken away in turn, and none ends with 1."""

import itertools
from collections.abc import Iterator
from pathlib import Path

import pytest
from confluent_kafka import Consumer, TopicPartition
from confluent_kafka.admin import AclBinding, AclOperation, AclPermissionType, ResourcePatternType, ResourceType

from logkeep.embedded.kafka import EmbeddedKafka
from tests.support.cli.filled_repository import Filled
from tests.support.hostile.calls import piped
from tests.support.kafka.client_view_of_configs import acls, add_acls, delete_acls
from tests.support.kafka.command_in_process import Commands
from tests.support.kafka.topic_matrix import Matrix
from tests.support.processes import wait_for
from tests.support.servers.secured_kafka import SecuredKafka

pytestmark = [pytest.mark.xdist_group("kafka-secured"), pytest.mark.usefixtures("as_before")]
RIGHTS = {
    ResourceType.TOPIC: "DESCRIBE READ WRITE CREATE DELETE ALTER DESCRIBE_CONFIGS ALTER_CONFIGS",
    ResourceType.GROUP: "DESCRIBE READ DELETE",
    ResourceType.BROKER: "DESCRIBE CREATE ALTER DESCRIBE_CONFIGS ALTER_CONFIGS CLUSTER_ACTION IDEMPOTENT_WRITE",
    ResourceType.TRANSACTIONAL_ID: "DESCRIBE WRITE",
}
TAKEN = [(kind, right) for kind, rights in RIGHTS.items() for right in rights.split()]
VERBS = (
    "kafka backup --source here --dry-run --topics open",
    "kafka backup --source here --topics open",
    "kafka backup --format kafka-backup-v1 --to {to} --topics open",
    "kafka restore latest --source prod --rename=one=one-{n} -y",
    "kafka restore latest --source prod --rename=one=one-{n} --dry-run",
    "kafka groups restore latest --source prod -y",
    "kafka groups restore latest --source prod --dry-run",
    "verify --level source --source prod",
    "drill latest --source prod",
    "kafka export latest --source prod --format kafka-backup-v1 --to {to}",
)


def _rule(kind: ResourceType, right: str, permission: AclPermissionType) -> AclBinding:
    name = "kafka-cluster" if kind is ResourceType.BROKER else "*"
    return AclBinding(kind, name, ResourcePatternType.LITERAL, "User:alice", "*", AclOperation[right], permission)


@pytest.fixture
def archived(kafka: EmbeddedKafka, topics: Matrix, repo: Filled) -> Filled:
    """A backup of a topic with records and a group, of another cluster."""
    topics.create("one")
    producer = topics.producer()
    for number in range(20):
        producer.produce("one", b"%d" % number, partition=0)
    assert producer.flush(30) == 0
    consumer = Consumer({"bootstrap.servers": kafka.bootstrap, "group.id": "billing"})
    consumer.commit(offsets=[TopicPartition("one", 0, 7)], asynchronous=False)
    consumer.close()
    Commands(repo.url, repo.home).json(
        "kafka", "backup", "--bootstrap-servers", kafka.bootstrap, "--source", "prod", "--topics", "one"
    )
    return repo


def _calls(client: Path, archived: Filled, number: Iterator[int]) -> Iterator[list[str]]:
    for verb in VERBS:
        n = next(number)
        words = verb.format(n=n, to=archived.home / f"dataset-{n}").split()
        yield [*words, "--repo", archived.url, "--command-config", str(client), "--retry-for", "1s"]


def test_each_right_that_is_missing(secured: SecuredKafka, archived: Filled) -> None:
    client, number = secured.sasl_file("SASL_SSL", "SCRAM-SHA-256"), itertools.count()
    allowed = [_rule(kind, "ALL", AclPermissionType.ALLOW) for kind in RIGHTS]
    add_acls(secured, *allowed)
    wait_for(lambda: set(allowed) <= acls(secured), "the rules")
    wrong, codes = [], {}
    for kind, right in TAKEN:
        denied = _rule(kind, right, AclPermissionType.DENY)
        add_acls(secured, denied)
        wait_for(lambda: denied in acls(secured), "the rule")  # noqa: B023  called at once
        for words in _calls(client, archived, number):
            shown = piped("logkeep", words, archived.home)
            codes[kind.name, right, " ".join(words[:3])] = shown.code
            if shown.code == 1 or "unexpected" in shown.text or "Traceback" in shown.text:
                wrong.append((kind.name, right, shown.code, words, shown.text[-600:]))
        delete_acls(secured, denied)
    print(codes)
    assert wrong == []
