"""What an export does, and what it refuses. Pure.

A log is continued from the dataset's own last record. What the document says counts only while the dataset still ends
with the record that it names: then offsets without a visible record, after the last one, are known to be exported.
"""

from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace

from logkeep.errors import TargetUnsafe, UsageError
from logkeep.kafka.datasets.documents import RESERVED
from logkeep.kafka.datasets.formats import DatasetEnd
from logkeep.kafka.datasets.values import ExportableLog, ExportableLogs, ExportedLog, LogToExport
from logkeep.kafka.record.dataset_document import DatasetDocument, DatasetLog, NotedLog
from logkeep.kafka.record.deletion_times import rule_of
from logkeep.kafka.record.history_names import topic_id_of
from logkeep.model.findings import Finding, Severity
from logkeep.model.ranges import Range

DROPPED = "records-dropped"
"""Code of findings about records that a topic loses when it is rewritten."""
UNIT_BYTES = 128 << 20
UNIT_LOGS = 200
_ELSEWHERE = "write to an empty directory or prefix"


@dataclass(frozen=True)
class ExportPlan:
    logs: tuple[LogToExport, ...]

    @property
    def new(self) -> tuple[LogToExport, ...]:
        """Logs with something to read, that are not part of the dataset yet, or that a killed run did not finish."""
        return tuple(each for each in self.logs if each.offsets or not each.joined or each.unfinished)

    @property
    def older_topics(self) -> frozenset[str]:
        """Topics that the source describes at an earlier time than the dataset: an older backup, which ends before the
        dataset does. Topics of such a backup in which nothing was written since count too; those with new records do
        not.
        """
        older = {each.log.topic for each in self.logs if each.joined and each.start > each.source.end}
        newer = {each.log.topic for each in self.logs if not each.joined or each.offsets}
        joined = {each.log.topic for each in self.logs if each.joined}
        return frozenset(older | (joined - newer) if older else ())

    @property
    def offsets(self) -> int:
        return sum(each.offsets for each in self.logs)

    @property
    def size_bytes(self) -> int:
        return sum(each.size_bytes for each in self.logs)


def refuse_other_dataset(document: DatasetDocument, wanted: DatasetDocument, url: str) -> None:
    """Raises TargetUnsafe if the dataset is not one that a run with these settings may continue."""
    for what, there, here in (
        ("format", document.format, wanted.format),
        ("schema", document.schema, wanted.schema),
        ("isolation", document.isolation, wanted.isolation),
        ("cluster", document.cluster_id, wanted.cluster_id),
    ):
        if there != here:
            raise TargetUnsafe(f"its {what} is {there or 'none'}, not {here or 'none'}", subject=url, remedy=_ELSEWHERE)


def refuse_other_histories(
    document: DatasetDocument | None, facts: ExportableLogs, rewritten: Collection[str], url: str
) -> None:
    """Raises TargetUnsafe for a topic that is not the one in the dataset, UsageError for an impossible name."""
    noted = document.noted if document is not None else {}
    for each in facts.logs:
        if each.log.topic in RESERVED:
            raise UsageError(
                "a dataset has no place for a topic of this name", subject=each.log.topic, remedy="add it to --exclude"
            )
        known = noted.get(each.log)
        if known is None or each.log.topic in rewritten or same_history(known, each):
            continue
        raise TargetUnsafe(
            f"{each.log} is another log than the one in the dataset: the topic was created again, or its log lost its "
            "end",
            subject=url,
            remedy=f"--rewrite {each.log.topic} writes the topic anew; or {_ELSEWHERE}",
        )


def same_history(known: NotedLog, source: ExportableLog) -> bool:
    """A cluster knows only the topic id, which a history begins with. Two backups name the whole history."""
    short, long = sorted((known.history, source.history), key=len)
    if short == long or (known.archived and not source.live):
        return short == long
    return len(short) == 32 and topic_id_of(long) == short


def plan_export(
    facts: ExportableLogs, ends: Mapping[DatasetLog, DatasetEnd], noted: Mapping[DatasetLog, NotedLog], url: str
) -> ExportPlan:
    """What to read of each log. Raises TargetUnsafe for a log of a cluster that ends before the dataset does."""
    return ExportPlan(tuple(_planned(each, ends[each.log], noted.get(each.log), facts, url) for each in facts.logs))


def _planned(
    source: ExportableLog, own: DatasetEnd, note: NotedLog | None, facts: ExportableLogs, url: str
) -> LogToExport:
    last = -1 if own.last is None else own.last
    reached = reached_by(own, note)
    passed = tuple(Range(*span) for span in note.pending if span[0] < span[1] <= last) if note is not None else ()
    planned = LogToExport(source, min(source.start, source.end), own.joined, last, own.unfinished, passed=passed)
    if reached is None:
        return planned
    if reached > source.end and facts.live:
        raise TargetUnsafe(
            f"{source.log} ends at offset {source.end}, before the dataset, which has offsets up to {reached}: "
            "the log lost its end, or it is another one",
            subject=url,
            remedy=f"--rewrite {source.log.topic} writes the topic anew; or {_ELSEWHERE}",
        )
    if source.start > reached:
        hole = Range(reached, min(source.start, source.end))
        return replace(planned, start=hole.end, hole=hole if hole.start < hole.end else None)
    return replace(planned, start=min(reached, max(source.end, reached)))


def reached_by(own: DatasetEnd, note: NotedLog | None) -> int | None:
    """The offset from which a log is read; None: from its start."""
    if note is not None and note.covered >= 0 and note.last == (-1 if own.last is None else own.last):
        return max(note.covered, own.next or 0)
    return own.next


def ends_to_compare(plan: ExportPlan, noted: Mapping[DatasetLog, NotedLog]) -> list[LogToExport]:
    """The last records of logs that a cluster began and a backup continues. A topic id is the same in all histories of
    a topic, so only the records show whether the backup has the one of the dataset."""
    return [
        _only_last(each)
        for each in plan.logs
        if not each.source.live
        and each.source.start <= each.last < each.source.end
        and not any(span.start <= each.last < span.end for span in each.source.lost)
        and not (each.log in noted and noted[each.log].archived)
    ]


def refuse_without_last(compared: Iterable[ExportedLog], facts: ExportableLogs, url: str) -> None:
    """Raises TargetUnsafe if a backup has no record where the dataset ends. In a compacted topic it may be gone."""
    compacted = {topic.name for topic in facts.topics if rule_of(topic).compacts}
    for each in compared:
        if not each.records and each.topic not in compacted:
            raise TargetUnsafe(
                f"{each.log} has no record at offset {each.last}, with which the dataset ends: the log lost its end "
                "and grew again, or it is another one",
                subject=url,
                remedy=f"--rewrite {each.topic} writes the topic anew; or {_ELSEWHERE}",
            )


def _only_last(planned: LogToExport) -> LogToExport:
    whole, last = planned.source, planned.last
    size = whole.size_bytes // (whole.end - whole.start)
    return replace(planned, source=replace(whole, start=last, end=last + 1, size_bytes=size), start=last)


def refuse_unknown_rewrites(rewritten: Collection[str], topics: Iterable[str]) -> None:
    unknown = sorted(set(rewritten) - set(topics))
    if unknown:
        raise UsageError(
            f"{unknown[0]} is not among the exported topics", subject="--rewrite", remedy="give the names of topics"
        )


def refuse_partial_rewrites(
    rewritten: Collection[str], facts: ExportableLogs, noted: Mapping[DatasetLog, NotedLog]
) -> None:
    """Raise UsageError if a topic of --rewrite has a partition, in the source or in the dataset, that is not selected:
    topics are exchanged as a whole. Partitions of a topic that was deleted since and created again do not count: the
    new topic replaces them."""
    selected = {each.log for each in facts.logs}
    for topic in (each for each in facts.topics if each.name in rewritten):
        found = {DatasetLog(topic.name, number) for number in range(topic.partitions)}
        same = {log for log, note in noted.items() if topic_id_of(note.history) == topic.id}
        found |= {log for log in same if log.topic == topic.name}
        missing = sorted(found - selected)
        if missing:
            raise UsageError(
                f"{missing[0]} is not among the exported partitions, and a topic is replaced as a whole",
                subject=f"--rewrite {topic.name}",
                remedy="select all partitions of the topic, or export to another directory",
            )


def dropped_records(
    facts: ExportableLogs, old: Mapping[DatasetLog, DatasetEnd], noted: Mapping[DatasetLog, NotedLog]
) -> list[Finding]:
    """What --rewrite would lose: records of the dataset that the source has no longer. `old`: the rewritten logs.

    Two cases are left out, because they are the reason for --rewrite: compacted topics, and other histories, which a
    run without --rewrite refuses.
    """
    compacted = {topic.name for topic in facts.topics if rule_of(topic).compacts}
    found = []
    for source in sorted(facts.logs, key=lambda each: each.log):
        own, note = old.get(source.log), noted.get(source.log)
        if own is None or own.last is None or note is None or source.log.topic in compacted:
            continue
        if not same_history(note, source):
            continue
        first, after = own.first or 0, own.last + 1
        start = max(first, min(source.start, source.end))
        found += [
            Finding(
                code=DROPPED,
                severity=Severity.WARNING,
                where=str(source.log),
                what=f"--rewrite removes the dataset's records at offsets {begin} to {end - 1}, which the "
                "source has no longer",
                remedy=f"to keep them, export without --rewrite; or {_ELSEWHERE}, and keep this dataset",
            )
            for begin, end in ((first, min(after, start)), (max(start, source.end), after))
            if begin < end
        ]
    return found


def divide_into_units(logs: Sequence[LogToExport]) -> list[tuple[LogToExport, ...]]:
    """Logs of one leader together, in order of topic and partition, about as much as one task should read.

    A log is never divided: its records are written in order.
    """
    found: list[tuple[LogToExport, ...]] = []
    held: list[LogToExport] = []
    for each in sorted(logs, key=lambda p: (p.source.broker, p.log)):
        size = sum(one.size_bytes for one in held) if held else 0
        other = bool(held) and held[0].source.broker != each.source.broker
        if held and (other or size + each.size_bytes > UNIT_BYTES or len(held) >= UNIT_LOGS):
            found.append(tuple(held))
            held = []
        held.append(each)
    return [*found, *([tuple(held)] if held else [])]
