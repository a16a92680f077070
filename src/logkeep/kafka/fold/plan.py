"""Which logs are folded, with which barriers, and why others are not. Pure.

A log is folded if its topic was compacted in every kept backup that holds it. Logs in the cut of an application are not
folded: a restore of such a backup ends each log before the backup's end, and appends records after it. Kafka's own
topics are archived for their history: they are folded only if --topics names them.
"""

from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from itertools import pairwise

from logkeep.errors import UsageError
from logkeep.formats.compaction.barriers import Barrier, Barriers
from logkeep.kafka.client.topology import is_internal
from logkeep.kafka.fold.units import TombstoneRule
from logkeep.kafka.record.deletion_times import rule_of
from logkeep.kafka.record.documents import APPLICATION_CUT, ClusterRecord, PartitionRecord, TopicRecord
from logkeep.kafka.topic_selection import compiled, topic_filter
from logkeep.model.plurals import first_names
from logkeep.model.ranges import Range
from logkeep.model.segments import Collection as LogCollection
from logkeep.model.segments import LogName, Segment
from logkeep.repository.backups.manifest import Manifest
from logkeep.repository.chain.actions import ObjectRef
from logkeep.repository.chain.fold import Folded, FoldedLog

_LAG = "min.compaction.lag.ms"
ALREADY = "already folded for these backups"


@dataclass(frozen=True)
class FoldOptions:
    include: tuple[str, ...] = ()
    exclude: tuple[str, ...] = ()
    drop_tombstones: bool = False
    configured: bool = False
    """Whether `include` comes from a configuration: then a pattern may match no topic."""


@dataclass(frozen=True)
class KeptBackup:
    """A backup that is in the chain when the fold is planned."""

    manifest: Manifest
    record: ClusterRecord
    dense: Collection[LogName] = ()
    """Logs in which every offset was archived, so no deletion was missed; used where the record has no times."""

    @property
    def id(self) -> int:
        return self.manifest.id

    def cuts(self) -> Iterator[tuple[LogName, Range]]:
        return ((c.log, Range(c.start, c.end)) for c in self.manifest.cut if c.start < c.end)

    def topic(self, log: LogName) -> TopicRecord | None:
        return next((t for t in self.record.topics if t.name == log.name), None)

    def partition(self, log: LogName) -> PartitionRecord | None:
        wanted = log.name, log.partition, log.history
        return next((p for p in self.record.logs if (p.topic, p.partition, p.history) == wanted), None)

    def cut_ms(self, log: LogName) -> int:
        """When the cut of a log was taken, or a little earlier."""
        partition = self.partition(log)
        known = partition.deletions.cut_ms if partition is not None and partition.deletions is not None else -1
        return known if known >= 0 else int(datetime.fromisoformat(self.manifest.started).timestamp() * 1000)


@dataclass(frozen=True)
class LogToFold:
    """One log, before its objects are read."""

    log: LogName
    rows: tuple[Segment, ...]
    barriers: Barriers
    buried: tuple[tuple[ObjectRef, ...], ...]
    """Objects with buried offsets, for each of `barriers.burials`."""
    young_ms: int | None
    """Records with this time or a later one are kept, because of `min.compaction.lag.ms`. None: the topic does not have
    this config."""
    tombstones: TombstoneRule | None
    """Which tombstones the fold may remove. None: it keeps all of them."""
    proven: bool
    """Whether the newest backup has read every deletion of the log."""
    dense: bool
    """Whether the backups without recorded times have every offset of the log."""


@dataclass(frozen=True)
class SkippedLog:
    log: LogName
    reason: str


@dataclass(frozen=True)
class FoldPlan:
    logs: tuple[LogToFold, ...]
    skipped: tuple[SkippedLog, ...]


def holders(kept: Iterable[KeptBackup]) -> dict[LogName, list[tuple[KeptBackup, Range]]]:
    """By log, the backups that hold it, in order, and their cuts."""
    found: dict[LogName, list[tuple[KeptBackup, Range]]] = {}
    for backup in sorted(kept, key=lambda each: each.id):
        for log, span in backup.cuts():
            if log.collection is LogCollection.TOPICS:
                found.setdefault(log, []).append((backup, span))
    return found


def chosen_logs(kept: Sequence[KeptBackup], options: FoldOptions) -> tuple[set[LogName], list[SkippedLog]]:
    """Logs that a fold may touch, and those of selected topics that it may not. Raises UsageError."""
    selects = topic_filter(options.include, options.exclude, internal=True)
    found = holders(kept)
    _refuse_unknown(options, sorted({log.name for log in found}))
    chosen, skipped = set[LogName](), list[SkippedLog]()
    for log, own in sorted(found.items()):
        if not selects(log.name, False):
            continue
        reason = _why_not(log, own, options)
        if reason:
            skipped.append(SkippedLog(log, reason))
        else:
            chosen.add(log)
    if options.include and not options.configured and not chosen and skipped:
        raise UsageError(
            f"{skipped[0].log.name} cannot be folded: {skipped[0].reason}",
            remedy="`logkeep info` shows the policy of each topic; a fold needs cleanup.policy=compact in all backups",
        )
    return chosen, skipped


def _refuse_unknown(options: FoldOptions, names: Sequence[str]) -> None:
    for pattern in () if options.configured else options.include:
        if not any(compiled(pattern).fullmatch(name) for name in names):
            remedy = f"patterns are regular expressions for whole names; the archive has: {first_names(names)}"
            raise UsageError(f"no archived topic matches {pattern}", remedy=remedy)


def _why_not(log: LogName, own: Sequence[tuple[KeptBackup, Range]], options: FoldOptions) -> str:
    for backup, _ in own:
        if any(ref.role == APPLICATION_CUT for ref in backup.manifest.attachments):
            return f"backup {backup.id} is the cut of an application, whose restore needs superseded records"
        topic = backup.topic(log)
        if topic is None:
            return f"backup {backup.id} has no record of the topic"
        if not rule_of(topic).compacts:
            return f"the topic was not compacted in backup {backup.id}"
        if is_internal(topic.name, topic.internal) and topic.name not in options.include:
            return "it is one of Kafka's own topics, and --topics does not name it"
    return ""


def plan_fold(
    kept: Sequence[KeptBackup],
    folded: Folded,
    rows: Mapping[LogName, Sequence[Segment]],
    chosen: Collection[LogName],
    options: FoldOptions,
) -> FoldPlan:
    """`rows` are those that the kept backups need, by log, in order."""
    logs, skipped, before = list[LogToFold](), list[SkippedLog](), folded.folded_logs()
    for log, own in sorted(holders(kept).items()):
        if log not in chosen:
            continue
        barriers = _barriers(log, own, folded)
        mine = tuple(rows.get(log, ()))
        reason = _unfit(mine, barriers, before.get(log), options)
        if reason:
            skipped.append(SkippedLog(log, reason))
        elif mine:
            logs.append(_log_to_fold(log, own, folded, mine, barriers, options))
    return FoldPlan(tuple(logs), tuple(skipped))


def _barriers(log: LogName, own: Iterable[tuple[KeptBackup, Range]], folded: Folded) -> Barriers:
    firsts = sorted({burial.first for burial in folded.buried or () if burial.log == log})
    return Barriers(tuple(Barrier(backup.id, span.start, span.end) for backup, span in own), tuple(firsts))


def _unfit(rows: Sequence[Segment], barriers: Barriers, before: FoldedLog | None, options: FoldOptions) -> str:
    for row, after in pairwise(rows):
        if after.start < row.end:
            return f"it was copied twice: rows overlap at offset {after.start}"
    honoured = {(cut.id, cut.start, cut.end) for cut in before.cuts} if before else set()
    return ALREADY if not options.drop_tombstones and honoured == set(map(tuple, barriers.cuts)) else ""


def _log_to_fold(
    log: LogName,
    own: Sequence[tuple[KeptBackup, Range]],
    folded: Folded,
    rows: tuple[Segment, ...],
    barriers: Barriers,
    options: FoldOptions,
) -> LogToFold:
    newest = own[-1][0]
    partition = newest.partition(log)
    times = partition.deletions if partition is not None else None
    proven = times.unproven is None if times is not None else log in newest.dense
    untimed = [each for each, _ in own if (p := each.partition(log)) is None or p.deletions is None]
    buried = tuple(
        tuple(b.object for b in folded.buried or () if b.log == log and b.first == first) for first in barriers.burials
    )
    return LogToFold(
        log,
        rows,
        barriers,
        buried,
        _young_ms(log, newest),
        _tombstones(log, [backup for backup, _ in own], barriers) if options.drop_tombstones else None,
        proven,
        bool(untimed) and all(log in backup.dense for backup in untimed),
    )


def _young_ms(log: LogName, newest: KeptBackup) -> int | None:
    topic = newest.topic(log)
    text = {**topic.inherited, **topic.configs}.get(_LAG, "") if topic is not None else ""
    return newest.cut_ms(log) - int(text) if text.isdecimal() and int(text) > 0 else None


def _tombstones(log: LogName, own: Sequence[KeptBackup], barriers: Barriers) -> TombstoneRule:
    """A tombstone may be removed only when all groups of all kept backups have read it."""
    read = [
        commit.offset
        for backup in own
        for group in backup.record.groups
        for commit in group.commits
        if (commit.topic, commit.partition) == (log.name, log.partition)
    ]
    topics = [topic for backup in own if (topic := backup.topic(log)) is not None]
    ends = {cut.backup: cut.end for cut in barriers.cuts}
    return TombstoneRule(
        min(read, default=barriers.last),
        max((rule_of(topic).retention_ms for topic in topics), default=0),
        tuple((ends[backup.id], backup.cut_ms(log)) for backup in own),
    )
