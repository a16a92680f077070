"""One backup after the other: each goes on where the last of the same topic id ended, and old ones stay whole."""

import os
from contextlib import closing
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from confluent_kafka import TopicPartition
from confluent_kafka.cimpl import NewPartitions

from logkeep.embedded.kafka import EmbeddedKafka
from logkeep.engine.spark.engine import SparkEngine
from logkeep.engine.spark.settings import SparkSettings
from logkeep.kafka.backup import facts, planner, run
from logkeep.kafka.backup.assemble import exit_code
from logkeep.kafka.backup.copy import log_copier
from logkeep.kafka.backup.log_ends import LogEnds, read_log_ends
from logkeep.kafka.backup.plan import Plan, plan_backup
from logkeep.kafka.backup.values import KafkaBackupOptions
from logkeep.kafka.client.cluster import Cluster
from logkeep.kafka.client.settings import ClientSettings
from logkeep.model.cache import cache_dir
from tests.support.kafka.copied_logs import on_disk
from tests.support.kafka.topic_matrix import Matrix
from tests.support.kafka.whole_backups import Archive

pytestmark = pytest.mark.xdist_group("kafka-plain")


def _write(topics: Matrix, topic: str, records: int, partition: int = 0, note: bytes = b"v") -> None:
    """Batches of ten records."""
    producer = topics.producer(batch_num_messages=10)
    for i in range(records):
        producer.produce(topic, note * 50, b"%d" % i, partition)
    producer.flush(60)


def _same(archive: Archive, kafka: EmbeddedKafka, backup_id: int, topic: str, partition: int = 0) -> None:
    cut = archive.cut(backup_id, topic, partition)
    assert archive.batches(backup_id, topic, partition) == on_disk(kafka, topic, partition, cut.start, cut.end)


def test_a_run_goes_on_after_the_last_one(kafka: EmbeddedKafka, topics: Matrix, archive: Archive) -> None:
    topics.create("steady", 2)
    ids = []
    for round_ in range(3):
        _write(topics, "steady", 100)
        done = archive.back_up("steady")
        ids.append(done.entry.id)
        assert done.plan.records == 100
        assert archive.cut(ids[-1], "steady").end == 100 * (round_ + 1)
    for backup_id in ids:
        _same(archive, kafka, backup_id, "steady")
    archive.check(*ids)
    assert ids == sorted(set(ids))


def test_the_bytes_to_copy_are_known_before_groups_are_read(
    topics: Matrix, archive: Archive, monkeypatch: pytest.MonkeyPatch
) -> None:
    """From there on Spark can start, while groups, configs and the plan take their time."""
    steps: list[object] = []

    def read(*arguments: Any) -> LogEnds:
        steps.append("groups and ends")
        return read_log_ends(*arguments)

    monkeypatch.setattr(planner, "_MANY_BYTES", 1)
    monkeypatch.setattr(facts, "read_log_ends", read)
    topics.create("expected")
    _write(topics, "expected", 100)
    options = KafkaBackupOptions(include=("expected",))
    first = archive.task.run(options, lambda _: archive.engine, steps.append)
    assert steps == [first.plan.size_bytes, "groups and ends"]
    assert first.plan.size_bytes > 1000
    archive.task.run(options, lambda _: archive.engine, steps.append)
    assert steps[2:] == [0, "groups and ends"]


def test_an_idle_run_adds_no_data(topics: Matrix, archive: Archive) -> None:
    topics.create("calm")
    _write(topics, "calm", 50)
    first = archive.back_up("calm")
    before = archive.data_names()
    second = archive.back_up("calm")
    assert archive.data_names() == before != set()
    assert (second.plan.units, second.entry.summary.new_bytes) == ((), 0)
    assert archive.batches(second.entry.id, "calm") == archive.batches(first.entry.id, "calm")
    archive.check(second.entry.id)


def test_new_topics_and_partitions_are_picked_up(kafka: EmbeddedKafka, topics: Matrix, archive: Archive) -> None:
    topics.create("grown-1")
    _write(topics, "grown-1", 30)
    archive.back_up("grown-.*")
    topics.create("grown-2")
    for future in topics.admin.create_partitions([NewPartitions("grown-1", 3)]).values():
        future.result(60)
    _write(topics, "grown-1", 30, partition=2)
    _write(topics, "grown-2", 30)
    done = archive.back_up("grown-.*")
    assert done.findings == ()
    assert len(archive.cuts(done.entry.id)) == 4
    for topic, partition in (("grown-1", 0), ("grown-1", 1), ("grown-1", 2), ("grown-2", 0)):
        _same(archive, kafka, done.entry.id, topic, partition)
    archive.check(done.entry.id)


def test_a_topic_made_again_begins_a_new_history(kafka: EmbeddedKafka, topics: Matrix, archive: Archive) -> None:
    topics.create("reborn")
    _write(topics, "reborn", 60, note=b"old")
    first = archive.back_up("reborn").entry.id
    old = archive.batches(first, "reborn")
    topics.delete("reborn")
    topics.create("reborn")
    _write(topics, "reborn", 90, note=b"new")
    done = archive.back_up("reborn")
    assert [f.code for f in done.findings] == ["new-history"]
    second = done.entry.id
    assert archive.cut(first, "reborn").log.history != archive.cut(second, "reborn").log.history
    assert archive.cut(second, "reborn").end == 90
    _same(archive, kafka, second, "reborn")
    assert archive.batches(first, "reborn") == old
    archive.check(first, second)
    _write(topics, "reborn", 10, note=b"new")
    third = archive.back_up("reborn")
    assert (third.findings, third.plan.records) == ((), 10)
    _same(archive, kafka, third.entry.id, "reborn")


def test_a_deleted_topic_leaves_the_next_backup(topics: Matrix, archive: Archive) -> None:
    for name in ("leaves", "leaves-not"):
        topics.create(name)
        _write(topics, name, 20)
    first = archive.back_up("leaves.*").entry.id
    topics.delete("leaves")
    second = archive.back_up("leaves.*").entry.id
    assert [log.topic for log in archive.cuts(second)] == ["leaves-not"]
    assert sum(len(b) for b in archive.batches(first, "leaves")) > 0
    archive.check(first, second)


@pytest.mark.parametrize("before", [100, 105])
def test_what_retention_took_between_two_runs_is_a_gap(
    kafka: EmbeddedKafka, topics: Matrix, archive: Archive, before: int
) -> None:
    """The log start at a border of batches, and inside of one."""
    topic = topics.create(f"lost-{before}")
    _write(topics, topic, 50)
    first = archive.back_up(topic).entry.id
    _write(topics, topic, 100)
    for future in topics.admin.delete_records([TopicPartition(topic, 0, before)]).values():
        future.result(30)
    done = archive.back_up(topic)
    (gap,) = done.gaps
    assert (gap.start, gap.end) == (50, before)
    assert [exit_code(len(done.gaps), 0, allow_gaps=allowed) for allowed in (False, True)] == [21, 2]
    assert archive.cut(done.entry.id, topic).start == before
    _same(archive, kafka, done.entry.id, topic)
    assert archive.manifest(done.entry.id).gaps == (gap,)
    archive.check(first, done.entry.id)
    later = archive.back_up(topic)
    assert later.gaps == ()
    archive.check(later.entry.id)


@pytest.mark.soak
def test_the_same_by_spark(kafka: EmbeddedKafka, topics: Matrix, archive: Archive) -> None:
    """Every day test_faults_of_processes.py compares a copy by Spark whose workers are killed."""
    topics.create("sparks", 3)
    for partition in range(3):
        _write(topics, "sparks", 500, partition)
    with closing(SparkEngine(SparkSettings(cache_dir(os.environ, Path.home()), "local[2]"))) as engine:
        done = replace(archive, engine=engine).back_up("sparks")
    for partition in range(3):
        _same(archive, kafka, done.entry.id, "sparks", partition)
    archive.check(done.entry.id)


def test_a_run_connects_once_and_plans_once(archive: Archive, topics: Matrix, monkeypatch: pytest.MonkeyPatch) -> None:
    topic, clusters, plans = topics.create("connected-once"), list[ClientSettings](), list[Plan]()

    class CountedCluster(Cluster):
        def __init__(self, settings: ClientSettings) -> None:
            clusters.append(settings)
            super().__init__(settings)

    def counted_plan(*known: Any, **more: Any) -> Plan:
        plans.append(plan_backup(*known, **more))
        return plans[-1]

    monkeypatch.setattr(run, "Cluster", CountedCluster)
    for module in (planner, log_copier):
        monkeypatch.setattr(module, "plan_backup", counted_plan)
    for _ in range(2):
        _write(topics, topic, 10)
        archive.back_up(topic)
    assert (len(clusters), [plan.records for plan in plans]) == (2, [10, 10])
