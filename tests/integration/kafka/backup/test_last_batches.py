"""Archived batches fetched again from a real broker, and what its cleaner makes of them."""

from collections.abc import Iterator
from dataclasses import replace

import msgspec
import pytest
from confluent_kafka import TopicPartition as Place

from logkeep.embedded.kafka import EmbeddedKafka
from logkeep.kafka.backup import assemble
from logkeep.kafka.backup.continuity.archived_batch import header_of
from logkeep.kafka.backup.continuity.last_batches import BatchRequest, divide_into_requests, fetch_again
from logkeep.kafka.backup.continuity.past_check import LeaderBatch
from logkeep.kafka.backup.units import RangeResult
from logkeep.kafka.backup.values import KafkaBackupDone
from logkeep.kafka.client.cluster import Cluster
from logkeep.kafka.client.settings import ClientSettings, endpoints
from logkeep.kafka.client.topology import TopicPartition
from logkeep.kafka.logs.last_batch import LastBatch
from logkeep.repository.chain.format import PACKED_RECORDS, open_format
from tests.support.kafka.backup_steps import add, fill
from tests.support.kafka.copied_logs import look_at_disk, on_disk
from tests.support.kafka.topic_matrix import Matrix
from tests.support.kafka.whole_backups import Archive
from tests.support.processes import wait_for

pytestmark = pytest.mark.xdist_group("kafka-plain")
QUICK = {"cleanup.policy": "compact", "min.cleanable.dirty.ratio": "0.01", "segment.ms": "100"}


@pytest.fixture
def cluster(kafka: EmbeddedKafka) -> Iterator[Cluster]:
    with Cluster(ClientSettings(endpoints(kafka.bootstrap))) as made:
        yield made


def _last(kafka: EmbeddedKafka, topic: str, partition: int, end: int) -> LastBatch:
    return header_of(on_disk(kafka, topic, partition, 0, end)[-1])


def _wanted(cluster: Cluster, topic: str, batches: dict[int, LastBatch]) -> dict[TopicPartition, BatchRequest]:
    found = cluster.metadata([topic]).topic(topic)
    assert found is not None
    return {TopicPartition(topic, p): BatchRequest(found.id, batch) for p, batch in batches.items()}


def test_batches_of_many_logs_come_in_one_request(kafka: EmbeddedKafka, topics: Matrix, cluster: Cluster) -> None:
    topic = fill(topics, "asked-again", 40, 60)
    batches = {p: _last(kafka, topic, p, 60) for p in range(40)}
    wanted = _wanted(cluster, topic, batches)
    assert [len(some) for some in divide_into_requests(wanted, list(wanted))] == [40]
    found = fetch_again(cluster, wanted)
    assert {log.partition: each.at_leader for log, each in found.items()} == {
        p: LeaderBatch(0, 60, batch) for p, batch in batches.items()
    }
    assert {each.data for each in found.values()} == {b""}, "equal bytes are not kept"


def test_a_batch_that_is_larger_than_the_archived_one_is_asked_for_alone(
    kafka: EmbeddedKafka, topics: Matrix, cluster: Cluster
) -> None:
    """The broker leaves it out of a reply for several logs: that is no answer."""
    topic = fill(topics, "grown", 5, 20)
    batches = {p: _last(kafka, topic, p, 20) for p in range(5)}
    smaller = {p: msgspec.structs.replace(batch, size=100, crc=1) for p, batch in batches.items()}
    wanted = _wanted(cluster, topic, smaller)
    found = fetch_again(cluster, wanted)
    assert {log.partition: each.at_leader.batch for log, each in found.items()} == batches
    assert {each.data for each in found.values()} == {b""}, "only records of compacted topics are needed"
    kept = fetch_again(cluster, {log: replace(each, keep=True) for log, each in wanted.items()})
    assert all(header_of(each.data) == batches[log.partition] for log, each in kept.items())


def test_logs_that_do_not_have_the_offset(kafka: EmbeddedKafka, topics: Matrix, cluster: Cluster) -> None:
    topic = fill(topics, "moved-on", 4, 100)
    batches = {p: _last(kafka, topic, p, 100) for p in range(4)}
    batches[1] = msgspec.structs.replace(batches[1], base_offset=180, last_offset=199)
    batches[2] = msgspec.structs.replace(batches[2], base_offset=90, last_offset=100)
    for future in topics.admin.delete_records([Place(topic, 0, 100), Place(topic, 3, 95)]).values():
        future.result(30)
    found = {
        log.partition: each.at_leader for log, each in fetch_again(cluster, _wanted(cluster, topic, batches)).items()
    }
    assert found[0] == LeaderBatch(100, 100, None)
    assert found[1] == found[2] == LeaderBatch(0, 100, None)
    assert found[3] == LeaderBatch(95, 100, batches[3]), "the log start lies inside the batch"


def _codes(done: KafkaBackupDone) -> list[str]:
    return [f.code for f in done.findings]


def test_what_the_cleaner_left_of_the_last_archived_batch_decides(
    kafka: EmbeddedKafka, topics: Matrix, archive: Archive
) -> None:
    rewritten, removed = (topics.create(name, 1, QUICK) for name in ("tail-rewritten", "tail-removed"))

    def write(topic: str, *keys: str) -> None:
        producer = topics.producer()
        for key in keys:
            producer.produce(topic, b"%s again" % key.encode() * 9, key.encode(), 0)
        assert producer.flush(60) == 0

    write(rewritten, "a", "b", "c")
    write(removed, "a")
    first = archive.back_up(rewritten, removed)
    assert _codes(first) == []
    ends = {rewritten: 3, removed: 1}
    before = {topic: on_disk(kafka, topic, 0, 0, end) for topic, end in ends.items()}
    write(rewritten, "a")
    write(removed, "a")

    def cleaned() -> bool:
        for topic in ends:
            write(topic, "tick")
        now = {topic: look_at_disk(kafka, topic, 0, 0, end) for topic, end in ends.items()}
        return all(now[topic] is not None and now[topic] != before[topic] for topic in ends)

    wait_for(cleaned, "the cleaner")
    assert len(on_disk(kafka, rewritten, 0, 0, 3)) == 1
    assert on_disk(kafka, removed, 0, 0, 1) == []
    second = archive.back_up(rewritten, removed)
    assert [(f.code, f.where, f.severity) for f in second.findings] == [("past-undecided", f"{removed}/0", "warning")]
    for topic in ends:
        assert archive.cut(second.entry.id, topic).log == archive.cut(first.entry.id, topic).log
    assert _codes(archive.back_up(rewritten, removed)) == [], "the next run compares a newer batch"


def _unnamed(copied: RangeResult) -> RangeResult:
    return msgspec.structs.replace(copied, last_batch=None)


def test_an_archive_of_an_older_release_is_continued(
    topics: Matrix, archive: Archive, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Its records do not name the last batches: they are read once from the log objects."""
    topic, last_ranges = fill(topics, "older", 2, 60), assemble._last_ranges
    with monkeypatch.context() as older:
        older.setattr(assemble, "_last_ranges", lambda done: {log: _unnamed(r) for log, r in last_ranges(done).items()})
        first = archive.back_up(topic)
    assert [r.last_batch for r in archive.record(first.entry.id).logs] == [None, None]
    add(topics, topic, 1, 20)
    second = archive.back_up(topic)
    assert (_codes(second), second.offsets) == ([], 20)
    last = [header_of(archive.batches(second.entry.id, topic, p)[-1]) for p in range(2)]
    assert [r.last_batch for r in archive.record(second.entry.id).logs] == last
    assert PACKED_RECORDS in open_format(archive.place.store).document.required_features
