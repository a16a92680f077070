"""A seed broker gets the files while the others run on; Kafka copies them; then the leader fails."""

import json
from pathlib import Path

import pytest
from confluent_kafka import Producer

from logkeep.kafka.offline_restore.instructions import HELD_OFF, OfflineTarget, TopicToCreate, reassignment
from tests.support.kafka.client_readers import Read, read_whole
from tests.support.kafka.copied_logs import on_disk
from tests.support.kafka.offline_restore import archived_as, offline
from tests.support.kafka.whole_backups import Archive, new_place
from tests.support.processes import wait_for
from tests.support.servers.kafka_cluster import KafkaCluster

pytestmark = pytest.mark.xdist_group("kafka-three")
LEVELS = ("read_committed", "read_uncommitted")
SEED = 2


def _bootstrap(cluster: KafkaCluster) -> str:
    return ",".join(member.bootstrap for member in cluster.members.values())


def _fill(cluster: KafkaCluster, topic: str) -> Producer:
    """Plain records, a committed, an aborted and an open transaction; the producer that holds it."""
    plain = Producer({"bootstrap.servers": _bootstrap(cluster), "compression.type": "zstd", "enable.idempotence": True})
    for number in range(200):
        plain.produce(topic, b"plain %d" % number * 20, b"%d" % number, 0)
    plain.flush(60)
    producer = Producer({"bootstrap.servers": _bootstrap(cluster), "transactional.id": topic})
    producer.init_transactions(60)
    for end in (producer.commit_transaction, producer.abort_transaction, None):
        producer.begin_transaction()
        for number in range(20):
            producer.produce(topic, b"in a transaction", b"%d" % number, 0)
        producer.flush(60)
        if end is not None:
            end(60)
    return producer


def _read(cluster: KafkaCluster, topic: str) -> dict[str, Read]:
    return {level: read_whole(_bootstrap(cluster), [(topic, 0)], level)[topic, 0] for level in LEVELS}


def _spread(cluster: KafkaCluster, topic: str, directory: Path) -> None:
    plan = directory / "reassignment.json"
    target = OfflineTarget(1, "prod", (), SEED, (3, 2, 1))
    plan.write_text(reassignment([TopicToCreate(topic, 1, 3, {})], target))
    assert json.loads(plan.read_text())["partitions"] == [{"topic": topic, "partition": 0, "replicas": [3, 2, 1]}]
    tool = "org.apache.kafka.tools.reassign.ReassignPartitionsCommand"
    server = ["--bootstrap-server", cluster.members[1].bootstrap]
    cluster.members[1].java_tool(tool, [*server, "--execute", "--reassignment-json-file", str(plan)])
    wait_for(lambda: cluster.in_sync(topic) == {1, 2, 3}, "all replicas")


def test_seeded_spread_and_failed_over(cluster: KafkaCluster, tmp_path: Path) -> None:
    source = cluster.create("seed-source", [1, 2, 3])
    hanging = _fill(cluster, source)
    before = _read(cluster, source)
    archive = Archive(_bootstrap(cluster), new_place(tmp_path / "repository"))
    backup = archive.back_up(source).entry.id
    hanging.abort_transaction(60)
    topic = cluster.create("seed-restored", [SEED], **{name.replace(".", "_"): v for name, v in HELD_OFF.items()})
    seed = cluster.members[SEED]
    seed.stop()
    report = offline(
        archive.place, backup, [seed.directory / "data"], include=(source,), renames=(f"{source}={topic}",)
    )
    seed.start()
    assert report.good
    assert {f.code for f in report.findings} == {"transactions-aborted"}
    wait_for(lambda: cluster.leader(topic) == SEED, "the seed to lead")
    _spread(cluster, topic, tmp_path)
    end = archive.cut(backup, source).end + 1
    copies = [b"".join(on_disk(m, topic, 0, 0, end)) for m in cluster.members.values()]
    expected = b"".join(map(archived_as, archive.batches(backup, source)))
    assert [copy[: len(expected)] for copy in copies] == [expected] * 3
    assert len(set(copies)) == 1
    leader = cluster.leader(topic)
    assert leader in {2, 3}, "the controller's own broker must stay"
    cluster.members[leader].kill()
    wait_for(lambda: cluster.leader(topic) not in {leader, -1}, "another leader")
    _same_after_failover(cluster, topic, before, end)
    cluster.members[leader].start()
    wait_for(lambda: cluster.in_sync(topic) == {1, 2, 3}, "the broker to be back")


def _same_after_failover(cluster: KafkaCluster, topic: str, before: dict[str, Read], end: int) -> None:
    now = _read(cluster, topic)
    for level in LEVELS:
        assert (now[level].start, now[level].records) == (before[level].start, before[level].records)
        assert now[level].end == end
    producer = Producer({"bootstrap.servers": _bootstrap(cluster), "acks": "all", "enable.idempotence": True})
    producer.produce(topic, b"afterwards", b"k", 0)
    assert producer.flush(60) == 0
    last = _read(cluster, topic)["read_committed"].records[-1]
    assert (last.offset, last.value) == (end, b"afterwards")
