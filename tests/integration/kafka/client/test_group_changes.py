"""Positions that are set, forgotten and removed are what another client then sees; a broker's no is told as it is."""

import contextlib
import uuid

import pytest
from confluent_kafka import Consumer

from logkeep.embedded.kafka import EmbeddedKafka
from logkeep.errors import TopicMissing
from logkeep.kafka.admin import group_changes
from logkeep.kafka.admin.group_changes import (
    commit_offsets,
    delete_groups,
    forget_offsets,
    forget_share_topics,
    move_share_groups,
)
from logkeep.kafka.admin.groups import CommittedOffset, group_offsets, list_groups, share_group_offsets
from logkeep.kafka.client.cluster import Cluster
from logkeep.kafka.client.retry import Backoff
from logkeep.kafka.client.settings import ClientSettings, endpoints
from logkeep.kafka.client.topology import TopicPartition
from tests.support.kafka.single_topic import create_topic

pytestmark = pytest.mark.xdist_group("kafka-secured")


def _name(stem: str) -> str:
    return f"{stem}-{uuid.uuid4().hex[:8]}"


def test_more_than_one_request_can_hold(cluster: Cluster, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(group_changes, "_REQUEST_BYTES", 10_000)
    topic, group = create_topic(cluster, _name("wide"), partitions=20).name, _name("group")
    commits = {TopicPartition(topic, p): CommittedOffset(p, -1, f"{p} é".ljust(4000, "x")) for p in range(20)}
    assert commit_offsets(cluster, {group: commits}) == {group: ()}
    assert group_offsets(cluster, [group]) == {group: commits}


def test_forgetting_and_removing(cluster: Cluster) -> None:
    topic, group = create_topic(cluster, _name("kept"), partitions=2).name, _name("group")
    one, two = TopicPartition(topic, 0), TopicPartition(topic, 1)
    commit_offsets(cluster, {group: {one: CommittedOffset(5, -1, "a"), two: CommittedOffset(6, -1, "b")}})
    assert forget_offsets(cluster, {group: [one]}) == {group: ()}
    assert group_offsets(cluster, [group]) == {group: {two: CommittedOffset(6, -1, "b")}}
    assert delete_groups(cluster, [group, "never was"]) == {group: (), "never was": ()}
    assert group not in {g.name for g in list_groups(cluster)}


def test_what_a_broker_refuses_is_told(kafka: EmbeddedKafka, cluster: Cluster) -> None:
    topic, group = create_topic(cluster, _name("refused"), partitions=2).name, _name("group")
    one, two = TopicPartition(topic, 0), TopicPartition(topic, 1)
    said = commit_offsets(cluster, {group: {one: CommittedOffset(1, -1, "x" * 5000), two: CommittedOffset(2, -1, "")}})
    assert [(r.code, r.log, r.live) for r in said[group]] == [(12, one, False)]
    assert group_offsets(cluster, [group]) == {group: {two: CommittedOffset(2, -1, "")}}
    missing = {TopicPartition("no-such-topic", 0): CommittedOffset(1, -1, "")}
    settings = ClientSettings(endpoints(kafka.bootstrap))
    with Cluster(settings, backoff=Backoff(attempts=2)) as hasty, pytest.raises(TopicMissing):
        commit_offsets(hasty, {group: missing})


@pytest.mark.parametrize("protocol", ["classic", "consumer"])
def test_a_group_with_members_is_live(kafka: EmbeddedKafka, cluster: Cluster, protocol: str) -> None:
    topic, group = create_topic(cluster, _name("live")).name, _name(protocol)
    settings = {"bootstrap.servers": kafka.bootstrap, "group.id": group, "group.protocol": protocol}
    log = TopicPartition(topic, 0)
    with contextlib.closing(Consumer({**settings, "enable.auto.commit": False})) as consumer:
        consumer.subscribe([topic])
        while not consumer.assignment():
            consumer.poll(0.2)
        for refused in (
            commit_offsets(cluster, {group: {log: CommittedOffset(0, -1, "")}}),
            forget_offsets(cluster, {group: [log]}),
            delete_groups(cluster, [group]),
        ):
            assert [r.live for r in refused[group]] == [True], refused
    assert commit_offsets(cluster, {group: {log: CommittedOffset(0, -1, "")}}) == {group: ()}


def test_share_groups_start_where_they_are_told(cluster: Cluster) -> None:
    topic, other = (create_topic(cluster, _name(stem), partitions=2).name for stem in ("shared", "other"))
    group = _name("sharers")
    starts = {TopicPartition(topic, 0): 7, TopicPartition(topic, 1): 0, TopicPartition(other, 0): 2}
    assert move_share_groups(cluster, {group: starts}) == {group: ()}
    assert {log: c.offset for log, c in share_group_offsets(cluster, [group])[group].items()} == starts
    assert forget_share_topics(cluster, {group: [topic]}) == {group: ()}
    assert set(share_group_offsets(cluster, [group])[group]) == {TopicPartition(other, 0)}
    classic = _name("classic")
    commit_offsets(cluster, {classic: {TopicPartition(topic, 0): CommittedOffset(1, -1, "")}})
    (refused,) = move_share_groups(cluster, {classic: {TopicPartition(topic, 0): 1}})[classic]
    assert (refused.code, refused.live) == (69, False)
