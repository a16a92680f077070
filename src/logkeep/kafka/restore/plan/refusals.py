"""Reasons to refuse a restore: invalid topic names, and targets that must not be written to. Pure.

All reasons are returned, so that one run shows everything to fix; what makes any plan impossible is raised.
"""

from collections import defaultdict
from collections.abc import Collection, Iterable, Mapping, Sequence

from logkeep.errors import Damaged, LogkeepError, TargetUnsafe, UsageError
from logkeep.kafka.client.topology import KAFKA_OWN
from logkeep.kafka.record.documents import TopicRecord
from logkeep.kafka.restore.facts.survey_task import Cut, LogSurvey
from logkeep.kafka.restore.facts.target import TargetFacts, TargetTopic
from logkeep.kafka.topic_selection import is_topic_name
from logkeep.model.plurals import plural

_NAMED = 5


def refused_names(
    topics: Sequence[TopicRecord], renamed: Mapping[str, str], present: Collection[str]
) -> list[UsageError]:
    """Target names that are invalid, internal, or clash. `renamed`: source to target; other names stay."""
    targets = {t.name: renamed.get(t.name, t.name) for t in topics}
    return [*_internal(topics, targets), *_illegal(targets), *_doubled(targets), *_alike(targets, present)]


def _internal(topics: Sequence[TopicRecord], targets: Mapping[str, str]) -> list[UsageError]:
    """Coordinators keep their state in memory, and would not notice records written to their topics."""
    found = sorted({t.name for t in topics if t.internal or not KAFKA_OWN.isdisjoint({t.name, targets[t.name]})})
    return [
        UsageError(
            "an internal topic is never written to; groups are restored through their coordinators",
            subject=targets[name],
            remedy="leave it out of --topics and --rename; groups are restored with --what groups",
        )
        for name in found
    ]


def _illegal(targets: Mapping[str, str]) -> list[UsageError]:
    return [
        UsageError(
            f"topic {source} would get a name that is invalid in Kafka",
            subject=target,
            remedy="use 1 to 249 letters, digits, dots, underscores and dashes in --rename",
        )
        for source, target in sorted(targets.items())
        if not is_topic_name(target)
    ]


def _doubled(targets: Mapping[str, str]) -> list[UsageError]:
    sources: defaultdict[str, list[str]] = defaultdict(list)
    for source, target in sorted(targets.items()):
        sources[target].append(source)
    return [
        UsageError(
            f"{join_names(some)} would be restored to one topic",
            subject=target,
            remedy="change --rename, or restore them separately",
        )
        for target, some in sorted(sources.items())
        if len(some) > 1
    ]


def _alike(targets: Mapping[str, str], present: Collection[str]) -> list[UsageError]:
    """Kafka refuses two topics whose names differ only in dots and underscores: their metrics would collide."""
    names: defaultdict[str, set[str]] = defaultdict(set)
    for name in (*present, *targets.values()):
        names[name.replace(".", "_")].add(name)
    wanted = {target.replace(".", "_") for target in targets.values()}
    return [
        UsageError(
            "Kafka refuses topics whose names differ only in dots and underscores",
            subject=join_names(sorted(some)),
            remedy="choose another name with --rename",
        )
        for plain, some in sorted(names.items())
        if len(some) > 1 and plain in wanted
    ]


def refused_targets(
    facts: TargetFacts, partitions: Mapping[str, int], *, into_existing: bool, append: bool, preserve: bool
) -> list[LogkeepError]:
    """Existing topics that must not be written to. `partitions`: the number that each target topic needs.

    `append` allows records after existing ones, which never keeps offsets.
    """
    there = [facts.topics[name] for name in sorted(partitions) if name in facts.topics]
    filled = [t for t in there if (preserve and not t.untouched) or (t.records and not append)]
    idle = [t for t in there if t not in filled]
    return [
        *_filled(filled, preserve=preserve),
        *(_existing(idle) if not into_existing else _narrow(idle, partitions)),
    ]


def _filled(topics: Sequence[TargetTopic], *, preserve: bool) -> list[LogkeepError]:
    if not topics:
        return []
    shown = join_names([f"{t.name} ({plural(t.records, 'record') if t.records else 'emptied'})" for t in topics])
    why = "offsets can only be kept in topics that never held a record" if preserve else "they hold records"
    return [
        TargetUnsafe(
            f"{plural(len(topics), 'target topic is', 'target topics are')} not empty: {why}",
            subject=shown,
            remedy="restore under other names with --rename, or delete these topics first; nothing was changed",
        )
    ]


def _existing(topics: Sequence[TargetTopic]) -> list[LogkeepError]:
    if not topics:
        return []
    return [
        TargetUnsafe(
            f"{plural(len(topics), 'target topic exists', 'target topics exist')} already, without records",
            subject=join_names([t.name for t in topics]),
            remedy="use them as they are with --into-existing, rename with --rename, or delete them first",
        )
    ]


def _narrow(topics: Iterable[TargetTopic], partitions: Mapping[str, int]) -> list[LogkeepError]:
    return [
        TargetUnsafe(
            f"it has {plural(t.partitions, 'partition')}, and {partitions[t.name]} are needed",
            subject=t.name,
            remedy="add partitions with kafka-topics --alter, or restore under another name with --rename",
        )
        for t in topics
        if t.partitions < partitions[t.name]
    ]


def join_names(names: Sequence[str]) -> str:
    return ", ".join(names[:_NAMED]) + (f" … ({len(names)} in all)" if len(names) > _NAMED else "")


def refuse_damage(surveys: Sequence[LogSurvey]) -> None:
    """Raises Damaged when a log could not be surveyed."""
    for survey in surveys:
        if survey.damage:
            raise Damaged(survey.damage, subject=str(survey.log))


def refuse_nothing_before(surveys: Sequence[LogSurvey]) -> None:
    """Refuse a time that is before all selected records."""
    if surveys and all(s.cut is Cut.BEFORE or not s.records for s in surveys):
        raise UsageError(
            "no selected record is older than this time: nothing would be restored",
            subject="--until-time",
            remedy="`logkeep info ID` shows the time range of each topic",
        )
