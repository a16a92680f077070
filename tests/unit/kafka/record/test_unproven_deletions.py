"""Backups of earlier releases: their rows alone prove that no deletion was missed."""

from msgspec.structs import replace as changed

from logkeep.kafka.record.documents import PartitionRecord
from logkeep.kafka.record.unproven_deletions import deletion_findings, unproven_by_rows
from logkeep.model.ids import BackupId
from logkeep.model.segments import Collection, LogName, Segment
from logkeep.repository.backups.manifest import KnownGap, LogCut, Manifest
from logkeep.repository.parts import SegmentTable, dense_logs
from tests.golden.test_kafka_record_golden import RECORD, WITH_TIMES

LOG = LogName(Collection.TOPICS, "orders", "0" * 31 + "a", 0)
MANIFEST = Manifest(
    repository=RECORD.repository, source="shop", id=BackupId(RECORD.id), run="r", kind="kafka", identity={}, started="",
    finished="", base=None, cut=(LogCut(LOG, 2, 9),), parts=(),
)  # fmt: skip


def _rows(*rows: tuple[int, int, int]) -> SegmentTable:
    return SegmentTable.from_segments(
        [
            changed(
                Segment.without_object(LOG, start, end, f"{start:016x}"),
                records=records,
                has_object=True,
                stored_bytes=9,
            )
            for start, end, records in rows
        ]
    )


def test_a_log_with_a_record_at_every_offset_is_proven() -> None:
    rows = _rows((2, 6, 4), (6, 9, 3))
    assert dense_logs(rows) == {LOG}
    assert unproven_by_rows(RECORD, MANIFEST, lambda: dense_logs(rows)) == {}


def test_one_missing_record_is_a_finding() -> None:
    (found,) = deletion_findings(RECORD, MANIFEST, lambda: dense_logs(_rows((2, 6, 4), (6, 9, 2))))
    assert (found.code, found.where) == ("deletions-unproven", "orders/0")
    assert "[2, 9)" in found.what
    assert deletion_findings(RECORD, MANIFEST, set, only=["other/0"]) == []


def test_a_gap_is_a_finding_although_the_rows_are_dense() -> None:
    gaps = (KnownGap(LOG, 4, 6, "retention"),)
    rows = _rows((2, 4, 2), (6, 9, 3))
    assert unproven_by_rows(RECORD, changed(MANIFEST, gaps=gaps), lambda: dense_logs(rows)) != {}


def test_a_record_with_times_is_not_judged_again() -> None:
    def never() -> set[LogName]:
        raise AssertionError("the rows are read only where they are needed")

    assert unproven_by_rows(WITH_TIMES, MANIFEST, never) == {}


def test_topics_that_are_not_compacted_and_kafkas_own_are_not_judged() -> None:
    for topic in (
        changed(RECORD.topics[0], configs={}),
        changed(RECORD.topics[0], name="__consumer_offsets", internal=True),
    ):
        log = changed(RECORD.logs[0], topic=topic.name)
        assert isinstance(log, PartitionRecord)
        record = changed(RECORD, topics=(topic,), logs=(log,))
        assert unproven_by_rows(record, MANIFEST, set) == {}
