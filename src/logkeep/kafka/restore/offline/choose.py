"""Which logs of a backup come back, under which names and up to where. Pure."""

import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from logkeep.errors import UsageError
from logkeep.kafka.record import ClusterRecord, TopicRecord
from logkeep.kafka.restore.offline.values import OfflineWish
from logkeep.kafka.selection import meant_by
from logkeep.kafka.values import TopicPartition
from logkeep.kafka.verify_records import Piece
from logkeep.model.segments import LogName, Segment
from logkeep.repository.manifest import LogCut, Manifest

_TOPIC = re.compile(r"[A-Za-z0-9._-]{1,249}")


@dataclass(frozen=True)
class ChosenTopic:
    """An archived topic and what it is called in the target."""

    record: TopicRecord
    name: str


@dataclass(frozen=True)
class ChosenLog:
    log: LogName
    topic: str
    partition: int
    start: int
    end: int
    segments: tuple[Segment, ...]

    @property
    def target(self) -> TopicPartition:
        return TopicPartition(self.topic, self.partition)

    @property
    def name(self) -> str:
        return str(self.target)


def choose_topics(record: ClusterRecord, wish: OfflineWish) -> tuple[ChosenTopic, ...]:
    """By pattern, never internal ones. Raises UsageError."""
    meant = meant_by(wish.include, wish.exclude, internal=False)
    chosen = [t for t in sorted(record.topics, key=lambda t: t.name) if meant(t.name, t.internal)]
    if not chosen:
        known = ", ".join(t.name for t in record.topics[:5]) or "none"
        raise UsageError(
            f"no topic of the backup matches {' or '.join(wish.include) or 'what is not excluded'}",
            remedy=f"patterns match whole names, internal topics are never restored; the backup has: {known}",
        )
    return _named(chosen, dict(wish.renames))


def _named(topics: list[TopicRecord], renames: Mapping[str, str]) -> tuple[ChosenTopic, ...]:
    unknown = renames.keys() - {t.name for t in topics}
    if unknown:
        raise UsageError(f"{min(unknown)} is to be renamed, and is not among the chosen topics")
    found = tuple(ChosenTopic(t, renames.get(t.name, t.name)) for t in topics)
    names = [t.name for t in found]
    for name in names:
        if not _TOPIC.fullmatch(name) or name in {".", ".."}:
            raise UsageError(f"{name[:300]!r} is not a topic name")
        if names.count(name) > 1:
            raise UsageError(f"two topics would be called {name}")
    return found


def choose_logs(
    manifest: Manifest, topics: Iterable[ChosenTopic], pieces: Iterable[Piece], wish: OfflineWish
) -> tuple[ChosenLog, ...]:
    """Every log of these topics with the segments that reach into it. Raises UsageError."""
    named = {t.record.name: t.name for t in topics}
    wanted = [c for c in manifest.cut if c.log.name in named and _meant(c, wish)]
    if not wanted:
        raise UsageError("the chosen topics have none of these partitions in the backup")
    ends = _ends(wanted, wish)
    by_log: dict[LogName, list[Segment]] = {c.log: [] for c in wanted}
    for piece in pieces:
        if piece.segment.has_object and piece.segment.log in by_log and piece.start < ends[piece.segment.log]:
            by_log[piece.segment.log].append(piece.segment)
    return tuple(
        ChosenLog(c.log, named[c.log.name], c.log.partition, c.start, ends[c.log], tuple(by_log[c.log])) for c in wanted
    )


def _meant(cut: LogCut, wish: OfflineWish) -> bool:
    return not wish.partitions or cut.log.partition in wish.partitions


def _ends(cuts: Iterable[LogCut], wish: OfflineWish) -> dict[LogName, int]:
    earlier = {(e.topic, e.partition): e.end for e in wish.ends}
    found: dict[LogName, int] = {}
    for cut in cuts:
        end = earlier.pop((cut.log.name, cut.log.partition), cut.end)
        if not cut.start <= end <= cut.end:
            raise UsageError(
                f"the backup has offsets [{cut.start}, {cut.end}), so it cannot end at {end}", subject=str(cut.log)
            )
        found[cut.log] = end
    if earlier:
        topic, partition = min(earlier)
        raise UsageError(f"an end is named for {topic}/{partition}, which is not among the chosen logs")
    return found
