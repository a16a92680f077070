"""Whether the logs of a cluster continue their archive: asks leaders, reads the archive where needed, decides nothing.

`history_check` says which batches to compare and what follows, `past_check` what a comparison means.
"""

from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import TypeVar

import msgspec

from logkeep.errors import Damaged, TopicMissing
from logkeep.formats.kafka.plain_records import bodies_of
from logkeep.kafka.admin.offsets import At, EpochEnd, FoundOffset, list_offsets, offset_for_leader_epoch
from logkeep.kafka.backup.continuity.archived_batch import by_log, header_of, read_batch, rows_in
from logkeep.kafka.backup.continuity.last_batches import BatchRequest, FetchedBatch, fetch_again
from logkeep.kafka.backup.continuity.past_check import (
    ArchivedBatch,
    Bodies,
    JudgedPasts,
    PastVerdict,
    ToCompare,
    compacted_topics,
    compare_bodies,
    compare_headers,
    partition_of,
)
from logkeep.kafka.backup.facts import Facts
from logkeep.kafka.backup.units import CopyResult, RangeResult
from logkeep.kafka.client.cluster import Cluster
from logkeep.kafka.client.topology import TopicPartition
from logkeep.kafka.logs.last_batch import LastBatch
from logkeep.kafka.record.documents import ArchivedReach, ClusterRecord
from logkeep.model.ranges import Range
from logkeep.model.segments import Collection as Kind
from logkeep.model.segments import LogName, Segment
from logkeep.repository.chain.commits import SourceRef
from logkeep.repository.chain.fold import BackupEntry
from logkeep.repository.parts import SegmentTable

T = TypeVar("T")
_AT_ONCE = 16
_TOGETHER = 2_000
"""Batches whose answers are held in memory at the same time."""


@dataclass
class LogContinuity:
    """Compares the logs of one cluster with one source of a repository, for one run."""

    cluster: Cluster
    place: SourceRef
    bytes_per_s: int = 0
    """How fast batches may be fetched; 0: no limit."""
    _judged: dict[ArchivedBatch, PastVerdict] = field(default_factory=dict)

    def epoch_ends(self, wanted: Mapping[TopicPartition, int]) -> dict[TopicPartition, EpochEnd]:
        """The ends of epochs, from the leaders. Topics that were deleted since they were listed are left out: the copy
        will find and report that."""
        try:
            return offset_for_leader_epoch(self.cluster, wanted)
        except TopicMissing:
            found: dict[TopicPartition, EpochEnd] = {}
            for of_topic in _by_topic(wanted):
                with suppress(TopicMissing):
                    found |= offset_for_leader_epoch(self.cluster, of_topic)
            return found

    def went_back(self, gap_ends: Mapping[LogName, int]) -> set[LogName]:
        """The logs that begin before the end of a gap that was found in them."""
        found: dict[TopicPartition, FoundOffset] = {}
        for of_topic in _by_topic({partition_of(log): log for log in gap_ends}):
            with suppress(TopicMissing):
                found |= list_offsets(self.cluster, list(of_topic), At.EARLIEST)
        starts = {log: found[partition_of(log)].offset for log in gap_ends if partition_of(log) in found}
        return {log for log, start in starts.items() if start < gap_ends[log]}

    def unrecorded(
        self, entry: BackupEntry, reached: Mapping[TopicPartition, ArchivedReach]
    ) -> dict[TopicPartition, ArchivedReach]:
        """The logs whose last batch an older release did not record, with that batch, read from the archive."""
        unknown = {log: r for log, r in reached.items() if r.last_batch is None and r.last_epoch >= 0}
        if not unknown:
            return {}
        names = {log: LogName(Kind.TOPICS, log.topic, r.history, log.partition) for log, r in unknown.items()}
        spans = {names[log]: Range(r.start, r.end) for log, r in unknown.items()}
        rows = by_log(rows_in(self.place, entry).covering(spans).to_segments())
        with ThreadPoolExecutor(_AT_ONCE) as pool:
            read = pool.map(lambda log: self._header(rows.get(names[log], ()), unknown[log].end - 1), unknown)
            return {log: replace(unknown[log], last_batch=b) for log, b in zip(unknown, read, strict=True)}

    def copied(self, earlier: Iterable[CopyResult]) -> list[CopyResult]:
        """The same results of an interrupted run, with last batches that an older release did not record."""
        return [
            msgspec.structs.replace(r, ranges=tuple(self._with_last_batch(each, r.segments) for each in r.ranges))
            for r in earlier
        ]

    def _with_last_batch(self, copied: RangeResult, segments: Iterable[Segment]) -> RangeResult:
        if copied.last_batch is not None or not copied.epochs:
            return copied
        rows = [s for s in by_log(segments).get(copied.log, ()) if s.start < copied.reached and s.end > copied.lo]
        return msgspec.structs.replace(copied, last_batch=self._header(rows, copied.reached - 1))

    def _header(self, rows: Sequence[Segment], offset: int) -> LastBatch | None:
        found = read_batch(self.place, rows, offset)
        return header_of(found) if found is not None else None

    def before_plan(
        self, wanted: ToCompare, archived: "ArchivedRows", facts: Facts, record: ClusterRecord | None
    ) -> JudgedPasts:
        """Each batch is asked for once in a run, however often it is planned."""
        new = [each for each in wanted.batches if each not in self._judged]
        self._judged |= dict(self._compared(new, compacted_topics(facts, record), archived))
        return wanted.judged((each, self._judged[each]) for each in wanted.batches if each in self._judged)

    def before_commit(
        self, wanted: ToCompare, archived: "ArchivedRows", facts: Facts, record: ClusterRecord | None
    ) -> JudgedPasts:
        return wanted.judged(self._compared(wanted.batches, compacted_topics(facts, record), archived))

    def _compared(
        self, wanted: Sequence[ArchivedBatch], compacted: Collection[str], archived: "ArchivedRows"
    ) -> Iterator[tuple[ArchivedBatch, PastVerdict]]:
        """Logs whose topic is gone are left out. A request names a log once, so several batches take several."""
        waiting = list(dict.fromkeys(wanted))
        while waiting:
            now = {each.partition: each for each in reversed(waiting[:_TOGETHER])}
            for log, fetched in self._fetch(now, compacted).items():
                yield now[log], self._verdict(now[log], fetched, archived, compacted=log.topic in compacted)
            waiting = [each for each in waiting if now.get(each.partition) is not each]

    def _verdict(
        self, each: ArchivedBatch, fetched: FetchedBatch, archived: "ArchivedRows", *, compacted: bool
    ) -> PastVerdict:
        if not fetched.readable:
            return PastVerdict.UNDECIDED
        found = compare_headers(each.batch, fetched.at_leader, compacted=compacted)
        if found is not PastVerdict.BY_RECORDS:
            return found
        stored = bodies_in(archived.batch_before(each.log, each.batch.base_offset + 1))
        return compare_bodies(stored, bodies_in(fetched.data or None))

    def _fetch(
        self, wanted: Mapping[TopicPartition, ArchivedBatch], compacted: Collection[str]
    ) -> dict[TopicPartition, FetchedBatch]:
        requests = {
            log: BatchRequest(each.topic_id, each.batch, log.topic in compacted) for log, each in wanted.items()
        }
        try:
            return fetch_again(self.cluster, requests, self.bytes_per_s)
        except TopicMissing:
            found: dict[TopicPartition, FetchedBatch] = {}
            for of_topic in _by_topic(requests):
                with suppress(TopicMissing):
                    found |= fetch_again(self.cluster, of_topic, self.bytes_per_s)
            return found


@dataclass(frozen=True)
class ArchivedRows:
    """Where archived batches are: the rows of the last backup, and those that were copied since."""

    place: SourceRef
    entry: BackupEntry | None = None
    copied: Sequence[CopyResult] = ()

    @cached_property
    def _stored(self) -> SegmentTable | None:
        """Read only where compaction has changed a batch."""
        return rows_in(self.place, self.entry) if self.entry is not None else None

    def batch_before(self, log: LogName, end: int) -> bytes | None:
        """The last archived batch of a log that begins before an offset; None if there is none or it is lost."""
        stored = self._stored.covering({log: Range(0, end)}).to_segments() if self._stored is not None else ()
        copied = [s for r in self.copied for s in r.segments if s.log == log and s.start < end]
        return read_batch(self.place, by_log([*stored, *copied]).get(log, []), end - 1)


def bodies_in(batch: bytes | None) -> Bodies | None:
    """The records of a batch; None if they cannot be read."""
    with suppress(Damaged):
        return bodies_of(batch) if batch is not None else None
    return None


def _by_topic(wanted: Mapping[TopicPartition, T]) -> Iterator[dict[TopicPartition, T]]:
    for topic in sorted({log.topic for log in wanted}):
        yield {log: each for log, each in wanted.items() if log.topic == topic}
