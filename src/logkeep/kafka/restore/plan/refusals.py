"""Why a restore must not begin: names that cannot be, and targets that would be harmed. Pure.

All reasons are returned, so that one look shows everything that has to be mended; what makes any plan vain is raised.
"""

import re
from collections import defaultdict
from collections.abc import Collection, Iterable, Mapping, Sequence

from logkeep.errors import Damaged, LogkeepError, TargetUnsafe, UsageError
from logkeep.kafka.record.documents import TopicRecord
from logkeep.kafka.restore.facts.survey_task import Cut, LogSurvey
from logkeep.kafka.restore.facts.target import TargetFacts, TargetTopic
from logkeep.kafka.topic_selection import INTERNAL

_LEGAL = re.compile(r"[A-Za-z0-9._-]{1,249}")
_NEVER = INTERNAL | {"__cluster_metadata"}
_NAMED = 5


def refused_names(
    topics: Sequence[TopicRecord], renamed: Mapping[str, str], present: Collection[str]
) -> list[UsageError]:
    """Targets that are illegal, internal, or clash. `renamed`: source to target; without an entry a name stays."""
    targets = {t.name: renamed.get(t.name, t.name) for t in topics}
    return [*_internal(topics, targets), *_illegal(targets), *_doubled(targets), *_alike(targets, present)]


def _internal(topics: Sequence[TopicRecord], targets: Mapping[str, str]) -> list[UsageError]:
    """Coordinators keep their state in memory: what is put into their topics behind their backs is not seen."""
    found = sorted({t.name for t in topics if t.internal or t.name in _NEVER or targets[t.name] in _NEVER})
    return [
        UsageError(
            "an internal topic is never written to; what it says of groups is restored through their coordinators",
            subject=targets[name],
            remedy="leave it out of --topics and --rename; groups come back with --what groups",
        )
        for name in found
    ]


def _illegal(targets: Mapping[str, str]) -> list[UsageError]:
    return [
        UsageError(
            f"topic {source} would get a name that Kafka does not allow",
            subject=target,
            remedy="use 1 to 249 letters, digits, dots, underscores and dashes in --rename",
        )
        for source, target in sorted(targets.items())
        if not _LEGAL.fullmatch(target) or target in {".", ".."}
    ]


def _doubled(targets: Mapping[str, str]) -> list[UsageError]:
    sources: defaultdict[str, list[str]] = defaultdict(list)
    for source, target in sorted(targets.items()):
        sources[target].append(source)
    return [
        UsageError(
            f"{named(some)} would be restored to one topic",
            subject=target,
            remedy="change --rename, or restore them apart",
        )
        for target, some in sorted(sources.items())
        if len(some) > 1
    ]


def _alike(targets: Mapping[str, str], present: Collection[str]) -> list[UsageError]:
    """Kafka refuses two topics whose names differ only in dots and underscores: their metrics would be one."""
    names: defaultdict[str, set[str]] = defaultdict(set)
    for name in (*present, *targets.values()):
        names[name.replace(".", "_")].add(name)
    wanted = {target.replace(".", "_") for target in targets.values()}
    return [
        UsageError(
            "Kafka does not take topics whose names differ only in dots and underscores",
            subject=named(sorted(some)),
            remedy="choose another name with --rename",
        )
        for plain, some in sorted(names.items())
        if len(some) > 1 and plain in wanted
    ]


def refused_targets(
    facts: TargetFacts, partitions: Mapping[str, int], *, into_existing: bool, append: bool, preserve: bool
) -> list[LogkeepError]:
    """Topics that are there and must not be written to. `partitions`: how many each target topic needs.

    `append` lets records stand behind those of others, which never keeps offsets.
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
    shown = named([f"{t.name} ({t.records} records)" if t.records else f"{t.name} (emptied)" for t in topics])
    why = "offsets can only be kept in topics that nothing was ever written to" if preserve else "they hold records"
    return [
        TargetUnsafe(
            f"{len(topics)} target topics are not empty: {why}",
            subject=shown,
            remedy="restore under other names with --rename, or delete these topics first; nothing was changed",
        )
    ]


def _existing(topics: Sequence[TargetTopic]) -> list[LogkeepError]:
    if not topics:
        return []
    return [
        TargetUnsafe(
            f"{len(topics)} target topics exist already, without records",
            subject=named([t.name for t in topics]),
            remedy="use them as they are with --into-existing, rename with --rename, or delete them first",
        )
    ]


def _narrow(topics: Iterable[TargetTopic], partitions: Mapping[str, int]) -> list[LogkeepError]:
    return [
        TargetUnsafe(
            f"it has {t.partitions} partitions, and {partitions[t.name]} are needed",
            subject=t.name,
            remedy="add partitions with kafka-topics --alter, or restore under another name with --rename",
        )
        for t in topics
        if t.partitions < partitions[t.name]
    ]


def named(names: Sequence[str]) -> str:
    return ", ".join(names[:_NAMED]) + (f" … ({len(names)} in all)" if len(names) > _NAMED else "")


def refuse_damage(surveys: Sequence[LogSurvey]) -> None:
    """Raises Damaged when a log could not be surveyed: then nothing is known of it."""
    for survey in surveys:
        if survey.damage:
            raise Damaged(survey.damage, subject=str(survey.log))


def refuse_nothing_before(surveys: Sequence[LogSurvey]) -> None:
    """A time before everything that is archived is a mistake, unless some logs have something from before it."""
    if surveys and all(s.cut is Cut.BEFORE or not s.records for s in surveys):
        raise UsageError(
            "nothing that was chosen is older than this time: nothing would come back",
            subject="--until-time",
            remedy="`logkeep info ID` shows from when to when each topic reaches",
        )
