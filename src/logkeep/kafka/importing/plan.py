"""Decides what an import archives, from a survey and from what is archived already. Pure; `--dry-run` ends here.

A log continues where the last import of the same topic ended. What is archived stays as it is: a dataset that lost its
first segments, or whole topics, removes nothing from the archive.
"""

import hashlib
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass

from logkeep.errors import TargetUnsafe, UsageError
from logkeep.kafka.backup.plan import BUNDLE_BYTES, BUNDLE_RANGES
from logkeep.kafka.client.topology import TopicPartition, is_internal
from logkeep.kafka.importing.reader import DatasetGap, DatasetTopic, PartitionReader
from logkeep.kafka.importing.values import ImportRange, PartitionSurvey
from logkeep.kafka.record.documents import ClusterRecord, TopicRecord
from logkeep.kafka.topic_selection import is_topic_name
from logkeep.model.segments import Collection, LogName
from logkeep.repository.backups.manifest import KnownGap, LogCut


@dataclass(frozen=True)
class ImportPlan:
    """What is decided before the first byte is written."""

    cut: tuple[LogCut, ...]
    """The cut of all logs: imported ones, and those of the last backup that the dataset no longer has."""
    ranges: tuple[ImportRange, ...]
    gaps: tuple[KnownGap, ...]
    topics: tuple[TopicRecord, ...]

    @property
    def offsets(self) -> int:
        return sum(r.hi - r.lo for r in self.ranges)

    @property
    def size_bytes(self) -> int:
        return sum(r.size_bytes for r in self.ranges)


def check_topic_name(name: str) -> None:
    """Raises UsageError for a name that no broker accepts."""
    if not is_topic_name(name):
        remedy = "a topic has letters, digits, '.', '_' and '-'; the dataset was changed, or is another thing"
        raise UsageError("not a legal name of a topic", subject=repr(name[:100]), remedy=remedy)


def topic_id(tool: str, source: str, topic: str) -> str:
    """The id of an imported topic, which names its history: a later import of the same source continues it."""
    return hashlib.sha256("\0".join((tool, source, topic)).encode()).hexdigest()[:32]


def plan_import(
    readers: Sequence[PartitionReader],
    surveys: Sequence[PartitionSurvey],
    topics: Sequence[DatasetTopic],
    ids: Mapping[str, str],
    last: ClusterRecord | None,
    counts: Mapping[str, int],
) -> ImportPlan:
    """`ids` are those of topics, `counts` the numbers of partitions that the user named."""
    refuse_differences(surveys)
    known = {TopicPartition(r.topic, r.partition): r for r in (last.logs if last else ())}
    cut, ranges, gaps = list[LogCut](), list[ImportRange](), list[KnownGap]()
    for reader, survey in zip(readers, surveys, strict=True):
        history = ids[survey.topic]
        old = known.pop(TopicPartition(survey.topic, survey.partition), None)
        old = old if old is not None and old.history == history else None
        log = LogName(Collection.TOPICS, survey.topic, history, survey.partition)
        lo, hi = (old.end if old else survey.start), max(survey.end, old.end if old else survey.start)
        lost = tuple(_lost(survey, lo, hi))
        cut.append(LogCut(log, old.start if old else survey.start, hi))
        gaps += [KnownGap(log, g.start, g.end, g.reason) for g in lost]
        if lo < hi:
            ranges.append(ImportRange(reader, log, lo, hi, lost))
    cut += [LogCut(r.log, r.start, r.end) for r in known.values()]
    found = _topic_records(topics, surveys, ids, last, counts)
    return ImportPlan(tuple(cut), tuple(ranges), tuple(gaps), found)


def refuse_differences(surveys: Iterable[PartitionSurvey]) -> None:
    """Raise TargetUnsafe if a record is not equal to the archived one."""
    for each in surveys:
        if each.differs_at >= 0:
            raise TargetUnsafe(
                f"the record at offset {each.differs_at} is not the one that is archived",
                subject=f"{each.topic}/{each.partition}",
                remedy="this is another dataset, or its topic was re-created: import it with another --source",
            )


def _lost(survey: PartitionSurvey, lo: int, hi: int) -> Iterator[DatasetGap]:
    """The gaps of `[lo, hi)`, in order and without overlaps."""
    reached = lo
    if survey.start > lo and survey.end > survey.start:
        yield DatasetGap(lo, survey.start, "the dataset begins after what was imported before")
        reached = survey.start
    for gap in sorted(survey.gaps):
        start, end = max(gap.start, reached), min(gap.end, hi)
        if start < end:
            yield DatasetGap(start, end, gap.reason)
            reached = end


def _topic_records(
    topics: Sequence[DatasetTopic],
    surveys: Sequence[PartitionSurvey],
    ids: Mapping[str, str],
    last: ClusterRecord | None,
    counts: Mapping[str, int],
) -> tuple[TopicRecord, ...]:
    before = {(t.name, t.id): t for t in (last.topics if last else ())}
    unknown = sorted(set(counts) - {t.name for t in topics})
    if unknown:
        raise UsageError("the dataset has no such topic", subject=f"--partition-count {unknown[0]}=…")
    found = []
    for topic in topics:
        old = before.pop((topic.name, ids[topic.name]), None)
        known = topic if topic.configs or topic.inherited or old is None else old
        least = max([0, *(s.partition + 1 for s in surveys if s.topic == topic.name)])
        found.append(
            TopicRecord(
                name=topic.name,
                id=ids[topic.name],
                internal=is_internal(topic.name, False),
                partitions=max(_count(topic, counts.get(topic.name), least), old.partitions if old else 0),
                replication_factor=topic.replication_factor or (old.replication_factor if old else 0),
                configs=dict(known.configs),
                inherited=dict(known.inherited),
            )
        )
    return (*found, *before.values())


def _count(topic: DatasetTopic, named: int | None, least: int) -> int:
    if named is not None and named < least:
        raise UsageError(
            f"the dataset has records of partition {least - 1}",
            subject=f"--partition-count {topic.name}={named}",
            remedy=f"name a number of at least {least}",
        )
    return named if named is not None else max(topic.partitions or 0, least)


def bundles(ranges: Iterable[ImportRange]) -> list[tuple[ImportRange, ...]]:
    """Ranges of one unit each: small ones together."""
    found, waiting = list[tuple[ImportRange, ...]](), list[ImportRange]()
    for each in ranges:
        if each.size_bytes >= BUNDLE_BYTES:
            found.append((each,))
            continue
        if len(waiting) >= BUNDLE_RANGES or sum(r.size_bytes for r in waiting) + each.size_bytes > BUNDLE_BYTES:
            found.append(tuple(waiting))
            waiting = []
        waiting.append(each)
    return [*found, tuple(waiting)] if waiting else found


def unit_name(ranges: Iterable[ImportRange]) -> str:
    text = ";".join(f"{r.log.name}/{r.log.history}/{r.log.partition}/{r.lo}-{r.hi}" for r in ranges)
    return hashlib.sha256(text.encode()).hexdigest()[:32]
