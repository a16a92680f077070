"""The generations of compacted topics in a repository, and the beginning of new ones. Asks no cluster."""

from collections.abc import Collection, Iterable, Iterator, Mapping
from dataclasses import dataclass
from enum import StrEnum

from logkeep.errors import UnknownBackup, UsageError
from logkeep.kafka.backup.assemble import earlier_results
from logkeep.kafka.backup.generations.plan import new_catch_up
from logkeep.kafka.backup.generations.round import commit_generations
from logkeep.kafka.client.topology import is_internal
from logkeep.kafka.record.deletion_times import compacted_topics_of
from logkeep.kafka.record.documents import ClusterRecord
from logkeep.kafka.record.history_names import history_name, history_number
from logkeep.kafka.record.stored_record import read_record
from logkeep.kafka.topic_selection import TopicFilter
from logkeep.model.ranges import Range
from logkeep.model.segments import Collection as Kind
from logkeep.model.segments import LogName, Segment
from logkeep.repository.backups.catch_ups import catch_up_receipts
from logkeep.repository.backups.content import PartReader, rows_of, served_parts
from logkeep.repository.backups.manifest import Manifest
from logkeep.repository.backups.source import read_manifest
from logkeep.repository.chain.actions import BegunCatchUp, EndedCatchUp, GenerationsAction
from logkeep.repository.chain.commits import SourceRef
from logkeep.repository.chain.fold import CatchUp, Folded
from logkeep.repository.chain.write_session import Writing


class GenerationState(StrEnum):
    ACTIVE = "Active"
    CATCH_UP = "Catch-up"
    PASSIVE = "Passive"


@dataclass(frozen=True)
class Generation:
    """One log in one generation."""

    log: LogName
    state: GenerationState
    reached: int
    size_bytes: int
    backups: tuple[int, ...] = ()
    """Kept backups that need it."""

    @property
    def number(self) -> int:
        return history_number(self.log.history)


def newest_record(place: SourceRef, folded: Folded) -> tuple[Manifest, ClusterRecord]:
    """Manifest and record of the newest backup. Raises UnknownBackup if there is none, UsageError if it is none of a
    Kafka cluster."""
    if not folded.completed:
        raise UnknownBackup("there is no completed backup", subject=place.source, remedy="take one: `kafka backup`")
    manifest = read_manifest(place, folded.completed[-1])
    record = read_record(place, manifest)
    if record is None:
        raise UsageError("the newest backup is not one of a Kafka cluster", subject=place.source)
    return manifest, record


def list_generations(place: SourceRef, folded: Folded, selects: TopicFilter) -> list[Generation]:
    """All generations of the selected topics, sorted by log and number."""
    newest, record = newest_record(place, folded)
    topics = {t.name for t in record.topics if selects(t.name, t.internal)}
    open_ones = [c for c in folded.catch_ups or () if c.topic in topics]
    topics &= compacted_topics_of(record) | {c.topic for c in open_ones}
    manifests = [newest if e is folded.completed[-1] else read_manifest(place, e) for e in folded.completed]
    kept = [*_archived(place, folded, manifests, topics)]
    caught = [row for c in open_ones for row in _catching_up(place, c, newest)]
    return sorted([*kept, *caught], key=lambda g: (g.log.name, g.log.partition, g.number))


def _archived(
    place: SourceRef, folded: Folded, manifests: list[Manifest], topics: Collection[str]
) -> Iterator[Generation]:
    ends, backups = dict[LogName, int](), dict[LogName, list[int]]()
    for manifest in manifests:
        for cut in (c for c in manifest.cut if c.log.name in topics):
            ends[cut.log] = max(cut.end, ends.get(cut.log, 0))
            backups.setdefault(cut.log, []).append(manifest.id)
    sizes = _stored_bytes(place, folded, manifests, ends)
    active = {c.log for c in manifests[-1].cut}
    for log, end in ends.items():
        state = GenerationState.ACTIVE if log in active else GenerationState.PASSIVE
        yield Generation(log, state, end, sizes.get(log, 0), tuple(backups[log]))


def _stored_bytes(
    place: SourceRef, folded: Folded, manifests: Iterable[Manifest], ends: Mapping[LogName, int]
) -> dict[LogName, int]:
    """Stored bytes by log. Every object counts once, however many backups share it; a part is read once."""
    reader, objects = PartReader(place), dict[str, Segment]()
    seen: set[tuple[str, ...]] = set()
    for manifest in manifests:
        parts = served_parts(manifest, folded)
        if parts and tuple(p.token for p in parts) not in seen:
            seen.add(tuple(p.token for p in parts))
            rows = rows_of(reader, manifest, parts).covering({log: Range(0, end) for log, end in ends.items()})
            objects |= {s.token: s for s in rows.to_segments() if s.has_object}
    return _sizes(objects.values())


def _sizes(segments: Iterable[Segment]) -> dict[LogName, int]:
    found: dict[LogName, int] = {}
    for each in segments:
        found[each.log] = found.get(each.log, 0) + each.stored_bytes
    return found


def _catching_up(place: SourceRef, catch_up: CatchUp, newest: Manifest) -> Iterator[Generation]:
    receipts = list(catch_up_receipts(place, catch_up))
    sizes = _sizes({s.token: s for r in receipts for s in r.segments if s.has_object}.values())
    ranges = [each for result in earlier_results(receipts) for each in result.ranges]
    history = history_name(catch_up.topic_id, catch_up.number)
    for cut in (c for c in newest.cut if c.log.name == catch_up.topic):
        log = LogName(Kind.TOPICS, catch_up.topic, history, cut.log.partition)
        reached = max((r.hi for r in ranges if r.log == log), default=0)
        yield Generation(log, GenerationState.CATCH_UP, reached, sizes.get(log, 0))


@dataclass(frozen=True)
class NewGenerations:
    """What `kafka generations new` begins."""

    begun: tuple[BegunCatchUp, ...]
    under_way: tuple[CatchUp, ...]
    """Catch-ups of selected topics that were begun before."""


def plan_new(
    place: SourceRef, folded: Folded, named: Collection[str], selects: TopicFilter, tokens: Iterator[str]
) -> NewGenerations:
    """The catch-ups to begin. Raises UsageError if no topic is selected, or if none of them is compacted."""
    manifest, record = newest_record(place, folded)
    chosen = [t.name for t in record.topics if selects(t.name, t.internal)]
    if not chosen:
        names = ", ".join(sorted(t.name for t in record.topics)[:5]) or "none"
        raise UsageError(
            f"no topic matches {' or '.join(named)}",
            remedy=f"patterns are regular expressions for whole names; the newest backup has: {names}",
        )
    compacted = compacted_topics_of(record)
    refused = [name for name in chosen if name not in compacted and (name in named or not compacted & set(chosen))]
    if refused:
        raise UsageError(
            "the topic is not compacted, or is one of Kafka's own: a new copy would save nothing",
            subject=refused[0],
            remedy="select topics with `compact` in cleanup.policy; `kafka generations` lists them",
        )
    under_way = {c.topic: c for c in folded.catch_ups or ()}
    logs = [c.log for c in manifest.cut]
    begun = [
        new_catch_up(folded, name, logs, next(tokens), "asked for by `kafka generations new`")
        for name in chosen
        if name in compacted and name not in under_way
    ]
    return NewGenerations(tuple(begun), tuple(under_way[name] for name in chosen if name in under_way))


def plan_cancel(folded: Folded, named: Collection[str], selects: TopicFilter) -> tuple[CatchUp, ...]:
    """The catch-ups of these topics. Raises UsageError if there is none."""
    found = tuple(c for c in folded.catch_ups or () if selects(c.topic, is_internal(c.topic, flagged=False)))
    if not found:
        names = ", ".join(sorted(c.topic for c in folded.catch_ups or ())) or "none"
        raise UsageError(
            f"no catch-up of a topic matches {' or '.join(named)}",
            remedy=f"patterns are regular expressions for whole names; topics with a catch-up: {names}",
        )
    return found


def cancel(session: Writing, named: Collection[str], selects: TopicFilter) -> tuple[CatchUp, ...]:
    """End catch-ups: the active copies stay active, and what the catch-ups copied becomes garbage."""
    found = plan_cancel(session.folded, named, selects)
    ended = tuple(EndedCatchUp(c.token, "cancelled by `kafka generations cancel`") for c in found)
    commit_generations(session, GenerationsAction(ended=ended))
    return found


def begin_new(session: Writing, named: Collection[str], selects: TopicFilter) -> NewGenerations:
    """Commit the beginning; the next runs copy."""
    planned = plan_new(session.place, session.folded, named, selects, iter(session.tokens, ""))
    commit_generations(session, GenerationsAction(begun=planned.begun))
    return planned
