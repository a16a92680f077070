"""Reads the groups of a backup at a time, their history, or their records as they are.

Every answer says for which times it is complete: see `completeness`.
"""

from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import TypeVar

import msgspec

from logkeep.errors import UsageError
from logkeep.formats.kafka.internal_topics.coordinator_records import DECODED_TOPICS, GROUP_OFFSETS, SHARE_STATE
from logkeep.kafka.group_history.answers import (
    CommitHistory,
    CompleteTimes,
    GroupQuestion,
    GroupsAt,
    RawRecords,
    SurePosition,
)
from logkeep.kafka.group_history.completeness import (
    NEVER,
    ArchivedLogFacts,
    ReadRun,
    TimeSpan,
    complete_around,
    completeness,
    every_record_since,
    nearest_complete,
)
from logkeep.kafka.group_history.history_task import read_history, read_raw
from logkeep.kafka.group_history.positions_task import read_positions_at
from logkeep.kafka.group_history.read_runs import kept_runs
from logkeep.kafka.group_history.values import (
    MOST_ROWS,
    ArchivedCommit,
    ArchivedPosition,
    GroupLogUnit,
    LogHistory,
    LogPositions,
    LogRecords,
    LogShape,
)
from logkeep.kafka.record.documents import ClusterRecord, PartitionRecord
from logkeep.model.ranges import Range
from logkeep.model.segments import LogName, Segment
from logkeep.model.time import rfc3339
from logkeep.model.work import EngineFor, Progress
from logkeep.repository.backups.manifest import LogCut, Manifest
from logkeep.repository.chain.actions import ObjectRef
from logkeep.repository.chain.commits import SourceRef
from logkeep.repository.chain.fold import BackupEntry

LogResult = TypeVar("LogResult", LogPositions, LogHistory, LogRecords)
Listing = TypeVar("Listing", LogHistory, LogRecords)
Named = TypeVar("Named", ArchivedPosition, ArchivedCommit)
_SHOWN = 5


@dataclass(frozen=True)
class ArchivedGroups:
    """A backup with archived logs of Kafka's own topics."""

    place: SourceRef
    manifest: Manifest
    record: ClusterRecord
    earlier: Sequence[BackupEntry]
    """Kept backups before this one."""
    segments: Mapping[LogName, Sequence[Segment]]
    buried: Mapping[LogName, tuple[ObjectRef, ...]]
    engine: EngineFor

    def positions(self, question: GroupQuestion) -> GroupsAt:
        """The offsets of groups at a time. Raises UsageError for a time before the archive, and for patterns without a
        group; Damaged; StoreErrors."""
        cuts = self._cuts(GROUP_OFFSETS, SHARE_STATE)
        results = self._map(read_positions_at, cuts, question, LogPositions)
        if question.at_ms is not None:
            _refuse_before(question.at_ms, (r.shape for r in results))
        if question.groups and not any(r.seen for r in results):
            raise _no_group(question, (name for r in results for name in r.names))
        facts = self._facts(cuts, [r.shape for r in results])
        logs = [completeness(r.shape, each) for r, each in zip(results, facts, strict=True)]
        until_ms = min(log.until_ms for log in logs)
        at_ms = until_ms if question.at_ms is None else question.at_ms
        topics = self._topics(r.topics for r in results)
        sure = [
            SurePosition(_with_topic(p, topics), log.sure(at_ms, p.record_offset))
            for r, log in zip(results, logs, strict=True)
            for p in r.positions
        ]
        return GroupsAt(
            at_ms=at_ms,
            positions=tuple(sure),
            kinds={name: kind for r in results for name, kind in r.kinds.items()},
            complete=CompleteTimes(complete_around(logs, at_ms), tuple(nearest_complete(logs, at_ms)), until_ms),
            unknown=_summed(r.unknown for r in results),
        )

    def history(self, question: GroupQuestion) -> CommitHistory:
        """All commits of groups. Raises UsageError for patterns without a group, and for too many commits; Damaged;
        StoreErrors."""
        cuts = self._cuts(GROUP_OFFSETS, SHARE_STATE)
        results = self._listed(read_history, cuts, question, LogHistory, "commits")
        if question.groups and not any(r.seen for r in results):
            raise _no_group(question, (name for r in results for name in r.names))
        topics = self._topics(r.topics for r in results)
        rows = [_with_topic(c, topics) for r in results for c in r.commits]
        rows.sort(key=lambda c: (c.written_ms, c.group, c.record_offset))
        complete = self._every_record(cuts, [r.shape for r in results])
        return CommitHistory(tuple(rows), complete, _summed(r.unknown for r in results))

    def raw(self, question: GroupQuestion) -> RawRecords:
        """All records of groups as they are. Raises UsageError for patterns without a group, and for too many records;
        Damaged; StoreErrors."""
        cuts = self._cuts(*DECODED_TOPICS)
        results = self._listed(read_raw, cuts, question, LogRecords, "records")
        if question.groups and not any(r.seen for r in results):
            raise _no_group(question, (name for r in results for name in r.names))
        rows = [row for r in results for row in r.records]
        rows.sort(key=lambda r: (r.time_ms, r.topic, r.partition, r.offset))
        complete = self._every_record(cuts, [r.shape for r in results])
        return RawRecords(tuple(rows), complete, _summed(r.unknown for r in results))

    def _cuts(self, *topics: str) -> list[LogCut]:
        found = [c for c in self.manifest.cut if c.log.name in topics]
        if not any(c.log.name == GROUP_OFFSETS for c in found):
            raise UsageError(
                f"{GROUP_OFFSETS} is not in this backup",
                subject=f"backup {self.manifest.id}",
                remedy="`logkeep info` shows where groups were; for their history, take backups with --internal",
            )
        return sorted(found, key=lambda c: c.log)

    def _map(
        self,
        task: Callable[[GroupLogUnit, Progress], LogResult],
        cuts: Sequence[LogCut],
        question: GroupQuestion,
        result: type[LogResult],
        most_rows: int = MOST_ROWS,
    ) -> list[LogResult]:
        units = [self._unit(cut, question, most_rows) for cut in cuts]
        engine = self.engine(sum(unit.size_bytes for unit in units))
        return engine.map(task, units, result, label="read groups", weight=lambda unit: unit.size_bytes)

    def _listed(
        self,
        task: Callable[[GroupLogUnit, Progress], Listing],
        cuts: Sequence[LogCut],
        question: GroupQuestion,
        result: type[Listing],
        what: str,
    ) -> list[Listing]:
        """All rows. Memory holds at most as many as are listed: each log first returns at most its share of them. Once
        it is known that the sum of all logs is not too large, logs with more rows are read again."""
        share = MOST_ROWS // max(1, len(cuts))
        results = self._map(task, cuts, question, result, share)
        _refuse_many(sum(r.total for r in results), what)
        long = [number for number, found in enumerate(results) if found.total > share]
        if long:
            again = self._map(task, [cuts[number] for number in long], question, result)
            for number, found in zip(long, again, strict=True):
                results[number] = found
        return results

    def _unit(self, cut: LogCut, question: GroupQuestion, most_rows: int) -> GroupLogUnit:
        own = self._partition(cut.log)
        return GroupLogUnit(
            place=self.place,
            log=cut.log,
            start=cut.start,
            end=cut.end,
            segments=tuple(self.segments.get(cut.log, ())),
            transactional=own is None or own.traits is None or own.traits.transactional,
            buried=self.buried.get(cut.log, ()),
            groups=question.groups,
            at_ms=question.at_ms,
            since_ms=question.since_ms,
            most_rows=most_rows,
        )

    def _partition(self, log: LogName) -> PartitionRecord | None:
        own = (log.name, log.partition)
        return next((each for each in self.record.logs if (each.topic, each.partition) == own), None)

    def _facts(self, cuts: Sequence[LogCut], shapes: Sequence[LogShape]) -> list[ArchivedLogFacts]:
        """The facts of each log. Earlier backups are read only if offsets are missing, to know until when that
        matters."""
        missing = any(shape.holes or cut.start for cut, shape in zip(cuts, shapes, strict=True))
        runs = kept_runs(self.place, self.earlier if missing else (), self.record, [c.log for c in cuts])
        return [self._facts_of(cut, runs[cut.log]) for cut in cuts]

    def _facts_of(self, cut: LogCut, runs: list[ReadRun]) -> ArchivedLogFacts:
        own = self._partition(cut.log)
        times = own.deletions if own is not None and cut.log not in self.buried else None
        # A coordinator deletes only replaced records of this topic; in others what is below the log start is lost.
        moved = (run.cut_ms for run in runs if run.start >= cut.start and run.cut_ms is not None)
        return ArchivedLogFacts(
            runs=runs,
            unproven=times.unproven if times is not None else Range(cut.start, cut.end),
            lost=tuple(Range(gap.start, gap.end) for gap in self.manifest.gaps if gap.log == cut.log),
            front=Range(0, cut.start),
            front_until_ms=next(moved, NEVER) if cut.log.name == SHARE_STATE else NEVER,
        )

    def _every_record(self, cuts: Sequence[LogCut], shapes: Sequence[LogShape]) -> CompleteTimes:
        facts = self._facts(cuts, shapes)
        pairs = list(zip(shapes, facts, strict=True))
        until_ms = min(completeness(shape, each).until_ms for shape, each in pairs)
        since_ms = max(every_record_since(shape, each) for shape, each in pairs)
        return CompleteTimes(TimeSpan(since_ms, until_ms) if since_ms <= until_ms else None, (), until_ms)

    def _topics(self, found: Iterable[Mapping[str, str]]) -> dict[str, str]:
        """The names of topics, by id."""
        names = {t.id: t.name for t in self.record.topics}
        for some in found:
            names |= some
        return names


def _with_topic(row: Named, topics: Mapping[str, str]) -> Named:
    """The row with the name of a share group's topic, or its id if no archived record names it."""
    return row if row.topic else msgspec.structs.replace(row, topic=topics.get(row.topic_id, row.topic_id))


def _summed(some: Iterable[Mapping[str, int]]) -> dict[str, int]:
    whole = Counter[str]()
    for each in some:
        whole.update(each)
    return dict(sorted(whole.items()))


def _refuse_before(at_ms: int, shapes: Iterable[LogShape]) -> None:
    known = [shape.first_ms for shape in shapes if shape.first_ms >= 0]
    if not known or at_ms < min(known):
        first = rfc3339(datetime.fromtimestamp(min(known) / 1000, UTC)) if known else ""
        raise UsageError(
            f"the first archived record was written at {first}, which is later" if known else "no record is archived",
            subject="--at",
            remedy="name a later time; `logkeep kafka groups --history` shows what is archived",
        )


def _refuse_many(found: int, what: str) -> None:
    if found > MOST_ROWS:
        raise UsageError(
            f"there are {found:,} {what}, and at most {MOST_ROWS:,} are listed",
            remedy="select groups with --group, or later ones with --since",
        )


def _no_group(question: GroupQuestion, names: Iterable[str]) -> UsageError:
    shown = ", ".join(sorted(set(names))[:_SHOWN]) or "none"
    when = "" if question.at_ms is None else " at that time or before"
    return UsageError(
        f"no group matches {' or '.join(question.groups)}{when}",
        remedy=f"patterns are regular expressions for whole names; among them are: {shown}",
    )
