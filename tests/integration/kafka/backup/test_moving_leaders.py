"""Leaders that move while a log is copied, in a real cluster of three brokers."""

import json
import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest
from confluent_kafka import Producer

from logkeep.formats.kafka.batches import walk
from logkeep.kafka.backup.values import KafkaBackupDone
from tests.support.kafka.backup_steps import beside
from tests.support.kafka.copied_logs import on_disk
from tests.support.kafka.whole_backups import Archive, new_place
from tests.support.processes import wait_for
from tests.support.servers.kafka_cluster import KafkaCluster

pytestmark = pytest.mark.xdist_group("kafka-three")
MEGABYTE = 1_000_000


@pytest.fixture
def archive(cluster: KafkaCluster, tmp_path: Path) -> Archive:
    return Archive(cluster.bootstrap, new_place(tmp_path / "repository"))


def _write(cluster: KafkaCluster, topic: str, records: int, acks: str = "all", size: int = 10_000) -> None:
    brokers = ",".join(member.bootstrap for member in cluster.members.values())
    producer = Producer({"bootstrap.servers": brokers, "batch.num.messages": 20, "linger.ms": 5, "acks": acks})
    for _ in range(records):
        producer.produce(topic, os.urandom(size), None, 0)
        producer.poll(0)
    assert producer.flush(60) == 0


@contextmanager
def _in_the_middle(cluster: KafkaCluster, archive: Archive, topic: str) -> Iterator[list[KafkaBackupDone]]:
    """A backup that has got 12 MB and gets no more until the block ends; then it is finished."""
    done: list[KafkaBackupDone] = []
    cluster.gate.close_after(12 * MEGABYTE)
    with beside(lambda: archive.back_up(topic)) as backup:
        try:
            wait_for(lambda: cluster.gate.closed or backup.done(), "the middle of the copy")
            assert not backup.done(), backup.result()
            yield done
        finally:
            cluster.gate.open()
        done.append(backup.result())


def _assert_same(cluster: KafkaCluster, archive: Archive, backup_id: int, topic: str) -> None:
    """As the leader has it now."""
    cut = archive.cut(backup_id, topic)
    found = archive.batches(backup_id, topic)
    assert found == on_disk(cluster.members[cluster.leader(topic)], topic, 0, cut.start, cut.end)
    archive.check(backup_id)


def test_a_leader_that_moves_in_good_order(cluster: KafkaCluster, archive: Archive, tmp_path: Path) -> None:
    """Another order of the replicas, and the election that makes the first of them leader."""
    topic = cluster.create("moved", [2, 3, 1])
    _write(cluster, topic, 2400)
    with _in_the_middle(cluster, archive, topic) as done:
        server = ["--bootstrap-server", cluster.members[1].bootstrap]
        plan = tmp_path / "plan.json"
        order = {"topic": topic, "partition": 0, "replicas": [3, 2, 1]}
        plan.write_text(json.dumps({"version": 1, "partitions": [order]}))
        reassign = "org.apache.kafka.tools.reassign.ReassignPartitionsCommand"
        cluster.members[1].java_tool(reassign, [*server, "--execute", "--reassignment-json-file", str(plan)])
        which = ["--election-type", "preferred", "--topic", topic, "--partition", "0"]
        cluster.members[1].java_tool("org.apache.kafka.tools.LeaderElectionCommand", [*server, *which])
        wait_for(lambda: cluster.leader(topic) == 3, "the move")
    assert (done[0].findings, done[0].gaps) == ((), ())
    assert archive.cut(done[0].entry.id, topic).end == 2400
    _assert_same(cluster, archive, done[0].entry.id, topic)


def test_a_leader_that_is_killed(cluster: KafkaCluster, archive: Archive) -> None:
    topic = cluster.create("orphaned", [3, 2, 1])
    _write(cluster, topic, 100)
    first = archive.back_up(topic).entry.id
    _write(cluster, topic, 2400)
    with _in_the_middle(cluster, archive, topic) as done:
        cluster.members[3].kill()
    wait_for(lambda: cluster.leader(topic) == 2, "the next replica to lead")
    assert (done[0].findings, done[0].gaps) == ((), ())
    assert archive.cut(done[0].entry.id, topic).end == 2500
    _assert_same(cluster, archive, done[0].entry.id, topic)
    archive.check(first)
    cluster.members[3].start()
    wait_for(lambda: cluster.in_sync(topic) == {1, 2, 3}, "the broker to be back")
    assert len({len(walk(b"".join(on_disk(m, topic, 0, 0, 2500))).batches) for m in cluster.members.values()}) == 1


def test_an_unclean_election_in_the_middle_of_the_copy(cluster: KafkaCluster, archive: Archive) -> None:
    """The only replica left in sync dies, and one that had fallen behind leads on.

    Its log is then filled to more than the old length: offsets alone would fit, and two pasts would be mixed.
    """
    config = {"unclean_leader_election_enable": "true", "min_insync_replicas": "1"}
    topic = cluster.create("unclean", [2, 3], **config)
    _write(cluster, topic, 600)
    first = archive.back_up(topic).entry.id
    old = archive.batches(first, topic)
    cluster.members[3].kill()
    wait_for(lambda: cluster.in_sync(topic) == {2}, "the follower to be missed")
    _write(cluster, topic, 2400, acks="1")
    with _in_the_middle(cluster, archive, topic) as done:
        cluster.members[2].kill()
        cluster.members[3].start()
        wait_for(lambda: cluster.leader(topic) == 3, "the unclean election")
        _write(cluster, topic, 2500, acks="1")
    assert [f.code for f in done[0].findings] == ["new-history"], done[0].findings
    backup_id = done[0].entry.id
    histories = [archive.cut(each, topic).log.history for each in (first, backup_id)]
    assert histories[1] == f"{histories[0]}-1"
    assert archive.cut(backup_id, topic).end == 3100
    _assert_same(cluster, archive, backup_id, topic)
    assert archive.batches(first, topic) == old
    archive.check(first)
    cluster.members[2].start()
    wait_for(lambda: cluster.in_sync(topic) == {2, 3}, "the broker to be back")
    later = archive.back_up(topic)
    assert (later.findings, later.plan.units) == ((), ())
    _assert_same(cluster, archive, later.entry.id, topic)
