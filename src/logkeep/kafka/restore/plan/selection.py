"""Which logs of a backup are restored, under which names and up to which offset. Pure.

Patterns match whole names; `exclude` wins. Internal topics are never written: their content is restored as groups.
Renames are tried in order, and the first that matches is used.
"""

import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field

from logkeep.errors import UsageError
from logkeep.kafka.client.topology import TopicPartition, is_internal
from logkeep.kafka.record.documents import ClusterRecord, TopicRecord
from logkeep.kafka.topic_selection import compiled, is_topic_name
from logkeep.model.plurals import first_names
from logkeep.model.segments import LogName
from logkeep.repository.backups.manifest import LogCut

_UNTIL = re.compile(r"(?P<topic>[A-Za-z0-9._-]{1,249}):(?P<partition>[0-9]{1,10})=(?P<offset>[0-9]{1,19})", re.ASCII)
_NUMBERS = re.compile(r"[0-9]{1,9}(-[0-9]{1,9})?(,[0-9]{1,9}(-[0-9]{1,9})?)*", re.ASCII)
_REPARTITION = re.compile(r"(?P<topic>[A-Za-z0-9._-]{1,249})=(?P<partitions>[0-9]{1,9})", re.ASCII)
_MOST_PARTITIONS = 100_000


@dataclass(frozen=True)
class Rename:
    """`OLD=NEW` for one topic, or `s/pattern/replacement/` for all whose names match somewhere: the first match."""

    pattern: re.Pattern[str]
    replacement: str
    whole: bool

    @classmethod
    def parse(cls, text: str) -> "Rename":
        if len(text) > 3 and text[0] == "s" and not text[1].isalnum() and text[1] not in "._-=":
            parts = text[2:].split(text[1])
            if len(parts) != 3 or parts[2]:
                raise UsageError(f"{text!r} is not s/pattern/replacement/", remedy=_RENAME_REMEDY)
            return cls(compiled(parts[0]), parts[1], whole=False)
        old, sign, new = text.partition("=")
        if not (sign and old and new):
            raise UsageError(f"{text!r} is not a valid rename", remedy=_RENAME_REMEDY)
        return cls(re.compile(re.escape(old)), new, whole=True)

    def __call__(self, name: str) -> str | None:
        """The new name; None when this rename does not match the topic."""
        if self.whole:
            return self.replacement if self.pattern.fullmatch(name) else None
        try:
            # Once, as sed does: `.*` would match a second time, at the end.
            return self.pattern.sub(self.replacement, name, count=1) if self.pattern.search(name) else None
        except (re.error, IndexError) as error:
            raise UsageError(f"{self.replacement!r} cannot replace anything: {error}", remedy=_RENAME_REMEDY) from error


_RENAME_REMEDY = "write --rename old=new, or --rename 's/^prod-(.*)/dr-\\1/'"


@dataclass(frozen=True)
class RestoreSelection:
    """What the user selected, as typed; this module parses it."""

    include: tuple[str, ...] = ()
    exclude: tuple[str, ...] = ()
    renames: tuple[str, ...] = ()
    partitions: tuple[str, ...] = ()
    """`0,3-5` for all topics, or `TOPIC:0,3-5`."""
    until_offsets: tuple[str, ...] = ()
    """`TOPIC:P=N`: records before offset N of that partition."""
    repartition: tuple[str, ...] = ()
    """`TOPIC=N`: that topic gets N partitions, its records spread by their keys."""
    settled: bool = False
    """Whether a transaction counts as it ended in the archive, even if its marker is after the chosen end."""
    configured: bool = False
    """Whether `include` comes from a configuration for several backups: then a pattern may match no topic."""


@dataclass(frozen=True)
class ChosenLog:
    """One log of the backup and its target partition."""

    log: LogName
    start: int
    end: int
    target: TopicPartition
    settled_to: int = -1
    """The offset up to which transactions count as they ended; -1: the end."""

    @property
    def source(self) -> TopicPartition:
        return TopicPartition(self.log.name, self.log.partition)


@dataclass(frozen=True)
class SelectedLogs:
    topics: tuple[tuple[TopicRecord, str], ...]
    """Topics of the record with their names in the target."""
    logs: tuple[ChosenLog, ...]
    internal: tuple[str, ...] = ()
    """Selected internal topics, which are not written."""
    names: Mapping[str, str] = field(default_factory=dict)
    """Old name → new name."""
    repartitioned: Mapping[str, int] = field(default_factory=dict)
    """Old name → new number of partitions."""

    def partitions(self, topic: TopicRecord) -> int:
        """The number of partitions in the target."""
        return self.repartitioned.get(topic.name, topic.partitions)


def select_logs(record: ClusterRecord, cut: Iterable[LogCut], choice: RestoreSelection) -> SelectedLogs:
    """The logs to restore. Raises UsageError for an invalid selection."""
    cuts = {(c.log.name, c.log.partition): c for c in cut}
    selected = _select_topics(record.topics, choice)
    own = [t for t in selected if not is_internal(t.name, t.internal)]
    renames = {text: Rename.parse(text) for text in choice.renames}
    names = {t.name: _renamed(t.name, renames) for t in own}
    _refuse_unused(renames, names)
    _refuse_clashes(names)
    partitions = partition_ranges(choice.partitions, names)
    until = _until(choice.until_offsets, names)
    _refuse_absent(partitions, [(t.name, p) for t in own for p in range(t.partitions) if (t.name, p) in cuts])
    logs = [
        ChosenLog(c.log, c.start, _end(c, until), TopicPartition(names[t.name], p), c.end if choice.settled else -1)
        for t in own
        for p in range(t.partitions)
        if (c := cuts.get((t.name, p))) is not None and in_partitions(partitions, t.name, p)
    ]
    _refuse_unknown(until, logs)
    kept = {log.log.name for log in logs}
    if own and not logs:
        raise UsageError("no partition is left to restore", remedy="check --partitions; `logkeep info` lists them")
    return SelectedLogs(
        topics=tuple((t, names[t.name]) for t in own if t.name in kept),
        logs=tuple(logs),
        internal=tuple(t.name for t in selected if is_internal(t.name, t.internal)),
        names=names,
        repartitioned=_repartitioned(choice.repartition, names),
    )


def _select_topics(topics: Sequence[TopicRecord], choice: RestoreSelection) -> list[TopicRecord]:
    include, exclude = [compiled(p) for p in choice.include], [compiled(p) for p in choice.exclude]
    found = [
        t
        for t in topics
        if (not include or any(p.fullmatch(t.name) for p in include)) and not any(p.fullmatch(t.name) for p in exclude)
    ]
    if not found and (include or exclude):
        raise _no_topic(" or ".join(choice.include) or "what --exclude leaves", topics)
    idle = [p.pattern for p in include if not any(p.fullmatch(t.name) for t in topics)]
    if idle and not choice.configured:
        raise _no_topic(" or ".join(idle), topics)
    return found


def _no_topic(wanted: str, topics: Sequence[TopicRecord]) -> UsageError:
    known = [t.name for t in topics if not is_internal(t.name, t.internal)]
    remedy = f"patterns are regular expressions for whole names; the backup has: {first_names(known)}"
    return UsageError(f"no topic of the backup matches {wanted}", remedy=remedy)


def _renamed(name: str, renames: Mapping[str, Rename]) -> str:
    for text, rename in renames.items():
        new = rename(name)
        if new is not None:
            if not is_topic_name(new):
                raise UsageError(
                    f"{name} would become {new!r}, which is not a valid topic name", subject=f"--rename {text}"
                )
            return new
    return name


def _refuse_unused(renames: Mapping[str, Rename], names: Mapping[str, str]) -> None:
    """A rename that matches no topic is a mistake: the intended topic would keep its old name."""
    for text, rename in renames.items():
        if names and all(rename(name) is None for name in names):
            raise UsageError(f"--rename {text} matches none of the topics to restore", remedy="check its spelling")


def _refuse_clashes(names: Mapping[str, str]) -> None:
    seen: dict[str, str] = {}
    for old, new in names.items():
        # Metric names of topics do not distinguish '.' and '_': Kafka refuses two such topics.
        first = seen.setdefault(new.replace(".", "_"), old)
        if first != old:
            raise UsageError(f"{first} and {old} would both become {new}", remedy="check --rename")


def partition_ranges(texts: Sequence[str], names: Mapping[str, str]) -> dict[str, list[range]]:
    """The ranges of partitions by topic; `""` stands for all topics."""
    found: dict[str, list[range]] = {}
    for text in texts:
        topic, _, numbers = text.rpartition(":")
        if not _NUMBERS.fullmatch(numbers):
            raise UsageError(f"{text!r} is not a list of partitions", remedy="write --partitions 0,3-5 or TOPIC:0,3-5")
        if topic and topic not in names:
            raise UsageError(f"{topic} is not among the selected topics", subject=f"--partitions {text}")
        found.setdefault(topic, []).extend(map(_range, numbers.split(",")))
    return found


def _range(text: str) -> range:
    first, _, last = text.partition("-")
    found = range(int(first), int(last or first) + 1)
    if not found:
        raise UsageError(f"{text} ends before it begins", subject="--partitions", remedy=f"write {last}-{first}")
    return found


def _refuse_absent(partitions: Mapping[str, Sequence[range]], there: Sequence[tuple[str, int]]) -> None:
    """A number without a partition is a mistake: the intended partition would silently not be restored."""
    for topic, ranges in partitions.items():
        known = [p for name, p in there if (name == topic if topic else name not in partitions)]
        for each in ranges:
            if not any(p in each for p in known):
                numbers = f"{each[0]}-{each[-1]}" if len(each) > 1 else str(each[0])
                raise UsageError(
                    f"{topic or 'no topic'} has {'no ' if topic else ''}partition {numbers} in the backup",
                    subject="--partitions",
                    remedy="`logkeep info` lists them",
                )


def in_partitions(partitions: Mapping[str, Sequence[range]], topic: str, partition: int) -> bool:
    if not partitions:
        return True
    own = partitions.get(topic, partitions.get("", ()))
    return any(partition in some for some in own)


def _until(texts: Sequence[str], names: Mapping[str, str]) -> dict[tuple[str, int], int]:
    found: dict[tuple[str, int], int] = {}
    for text in texts:
        match = _UNTIL.fullmatch(text)
        if match is None:
            raise UsageError(
                f"{text!r} is not an end offset of a partition", remedy="write --until-offset TOPIC:PARTITION=OFFSET"
            )
        if match["topic"] not in names:
            raise UsageError(f"{match['topic']} is not among the topics to restore", subject=f"--until-offset {text}")
        found[match["topic"], int(match["partition"])] = int(match["offset"])
    return found


def _repartitioned(texts: Sequence[str], names: Mapping[str, str]) -> dict[str, int]:
    found: dict[str, int] = {}
    for text in texts:
        match = _REPARTITION.fullmatch(text)
        partitions = int(match["partitions"]) if match else 0
        if match is None or not 1 <= partitions <= _MOST_PARTITIONS:
            raise UsageError(
                f"{text!r} is not a number of partitions for a topic",
                remedy=f"write --repartition TOPIC=N, with N from 1 to {_MOST_PARTITIONS:,}",
            )
        if match["topic"] not in names:
            raise UsageError(f"{match['topic']} is not among the topics to restore", subject=f"--repartition {text}")
        if found.setdefault(match["topic"], partitions) != partitions:
            raise UsageError(f"{match['topic']} cannot have two numbers of partitions", subject=f"--repartition {text}")
    return found


def _end(cut: LogCut, until: Mapping[tuple[str, int], int]) -> int:
    wanted = until.get((cut.log.name, cut.log.partition), cut.end)
    if not cut.start <= wanted <= cut.end:
        raise UsageError(
            f"offset {wanted} is outside of the backup's range, [{cut.start}, {cut.end})",
            subject=f"{cut.log.name}/{cut.log.partition}",
            remedy="`logkeep info ID --topic …` shows every partition's range",
        )
    return wanted


def _refuse_unknown(until: Mapping[tuple[str, int], int], logs: Sequence[ChosenLog]) -> None:
    there = {(log.log.name, log.log.partition) for log in logs}
    for topic, partition in until:
        if (topic, partition) not in there:
            raise UsageError(
                f"{topic}/{partition} is not among the partitions to restore",
                subject="--until-offset",
                remedy="`logkeep info ID --topic …` shows every partition; --topics and --partitions select",
            )
