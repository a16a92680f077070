"""Garbage collection in two phases: objects are marked, and swept later if they are still garbage.

Mark stores the names of garbage that is older than the garbage age. Sweep, at least an interval later, advances the
generation (so that a writer that slept cannot commit objects that are about to be deleted) and deletes what was marked
and still is garbage. Ages are measured with the store's clock. A run that resumes or adopts never uses marked objects.
"""

from collections.abc import Callable, Iterator
from contextlib import suppress
from dataclasses import dataclass, replace
from datetime import datetime, timedelta

from logkeep.errors import Damaged, HostFailed, StoreDenied
from logkeep.repository.backups.holds import held_ids, reader_holds
from logkeep.repository.chain import layout
from logkeep.repository.chain.commits import SourceRef, checkpoints, read_whole_chain
from logkeep.repository.chain.documents import seal
from logkeep.repository.chain.fold import Folded
from logkeep.repository.chain.write_session import Writing
from logkeep.repository.upkeep.garbage_waits import GarbageWait, waiting_garbage
from logkeep.repository.upkeep.live import LiveObjects, live_objects
from logkeep.repository.upkeep.marks import GarbageMark, StoredMark, read_marks
from logkeep.store.base import ObjectInfo, sweepable

REPAIR_GRACE = timedelta(days=30)
"""After a repair without lost commits, objects that those may have named are spared for this time."""
CLOCK_TOLERANCE = timedelta(minutes=3)
_NAMES_PER_MARK = 20_000
_DELETES_PER_CONFIRM = 500
_INSTANCES_KEPT = 2
SILENT_INSTANCE = timedelta(days=30)
_CHECKPOINTS_KEPT = 2
_GRAIN = timedelta(milliseconds=5)
"""Two time stamps of a store may be in the wrong order by this much; with an interval of 0 that must not matter."""


@dataclass(frozen=True)
class GarbageRules:
    """How old garbage must be to be marked, and how old a mark to be swept."""

    age: timedelta = timedelta(hours=24)
    interval: timedelta = timedelta(hours=4)


@dataclass(frozen=True)
class GarbagePlan:
    """What a garbage collection would do now."""

    to_mark: tuple[ObjectInfo, ...]
    to_sweep: tuple[ObjectInfo, ...]
    waiting: int
    """Garbage that is not old enough to be marked or swept."""
    waits: tuple[GarbageWait, ...]
    """All garbage that this collection does not delete, by the reason why it has to wait."""
    spent_marks: tuple[str, ...]
    """Marks that can be deleted after the sweep."""
    other: tuple[str, ...]
    """Superseded checkpoints and expired holds."""


@dataclass(frozen=True)
class Swept:
    """What a garbage collection did."""

    marked: int
    deleted: int
    deleted_bytes: int
    denied: tuple[str, ...]
    """Objects that the store refused to delete (no permission, or an object lock)."""
    partials: int = 0
    """Unfinished streams of killed writers that were removed."""


def plan_garbage(writing: Writing, rules: GarbageRules) -> GarbagePlan:
    """List the whole source and plan a collection."""
    writing.catch_up()
    return _plan(writing.place, writing.folded, rules, writing.clock(), store_time(writing), lambda folded: folded)


def preview_garbage(
    place: SourceRef, folded: Folded, rules: GarbageRules, now: datetime, after: Callable[[Folded], Folded]
) -> GarbagePlan:
    """What a collection would do after a change, such as a deletion. Writes nothing, so our clock replaces the store's.

    Without an interval, what is marked is swept by the same collection.
    """
    plan = _plan(place, folded, rules, now, now, after)
    return plan if rules.interval else replace(plan, to_sweep=(*plan.to_sweep, *plan.to_mark))


def _plan(
    place: SourceRef,
    known: Folded,
    rules: GarbageRules,
    now: datetime,
    store_now: datetime,
    after: Callable[[Folded], Folded],
) -> GarbagePlan:
    folded = read_whole_chain(place)
    if folded != known:
        raise Damaged(
            "the checkpoint differs from the chain",
            subject=place.source,
            remedy="run `logkeep repair`, then prune again",
        )
    holds = reader_holds(place)
    live = live_objects(place, after(folded), held_ids(holds, store_now), now)
    garbage = list(_garbage(place, live, _spared_before(place, folded, store_now)))
    spent = (h.name for h in holds if h.expires < store_now)
    other = (*_superseded_checkpoints(place), *spent, *_silent_instances(place, store_now))
    return decide(garbage, read_marks(place), rules, store_now, other)


def decide(
    garbage: list[ObjectInfo],
    marks: list[StoredMark],
    rules: GarbageRules,
    store_now: datetime,
    other: tuple[str, ...] = (),
) -> GarbagePlan:
    """What to mark, what to sweep, what must wait. Pure."""
    now = store_now + _GRAIN
    ripe = [m for m in marks if m.marked + rules.interval <= now]
    sweepable = frozenset().union(*(m.names for m in ripe))
    marked = frozenset().union(*(m.names for m in marks))
    to_sweep = tuple(g for g in garbage if g.name in sweepable)
    to_mark = tuple(g for g in garbage if g.name not in marked and g.modified + rules.age <= now)
    return GarbagePlan(
        to_mark=to_mark,
        to_sweep=to_sweep,
        waiting=len(garbage) - len(to_mark) - len(to_sweep),
        waits=waiting_garbage(garbage, marks, rules.age, rules.interval, now),
        spent_marks=tuple(m.name for m in ripe),
        other=other,
    )


def collect(writing: Writing, rules: GarbageRules) -> Swept:
    """Mark garbage; sweep what was marked before and still is garbage."""
    plan = plan_garbage(writing, rules)
    marked = _mark(writing, plan.to_mark)
    if marked and not rules.interval:  # no interval: what is marked now may be swept now
        plan = plan_garbage(writing, rules)
    deleted, denied = _sweep(writing, plan)
    partials = _sweep_partials(writing, rules)
    return Swept(marked, len(deleted), sum(o.size for o in deleted), denied, partials)


def _sweep_partials(writing: Writing, rules: GarbageRules) -> int:
    """Remove unfinished streams of killed writers from a directory; in buckets a lifecycle rule does this."""
    sweeper = sweepable(writing.place.store)
    return sweeper.sweep_partials(store_time(writing) - rules.age) if sweeper else 0


def _mark(writing: Writing, garbage: tuple[ObjectInfo, ...]) -> int:
    place = writing.place
    for start in range(0, len(garbage), _NAMES_PER_MARK):
        mark = GarbageMark(
            repository=place.repository,
            source=place.source,
            generation=writing.folded.generation,
            names=tuple(g.name for g in garbage[start : start + _NAMES_PER_MARK]),
        )
        place.store.put_new(layout.mark(place.source, writing.folded.generation, writing.tokens()), seal(mark))
    return len(garbage)


def _sweep(writing: Writing, plan: GarbagePlan) -> tuple[list[ObjectInfo], tuple[str, ...]]:
    store, deleted, denied = writing.place.store, list[ObjectInfo](), list[str]()
    if plan.to_sweep:
        writing.fence("garbage collection")
    for at, info in enumerate(plan.to_sweep):
        if at % _DELETES_PER_CONFIRM == 0:
            writing.lease.confirm()
        try:
            store.delete(info.name)
        except StoreDenied:
            denied.append(info.name)
        else:
            deleted.append(info)
    for name in (*(() if denied else plan.spent_marks), *plan.other):
        try:
            store.delete(name)
        except StoreDenied:
            denied.append(name)
    return deleted, tuple(denied)


def store_time(writing: Writing) -> datetime:
    """The time by the store's clock, from a new object; an old object's time may be ahead of the clock.

    Raises HostFailed if the store's clock and ours differ too much: ages would mean nothing.
    """
    writing.lease.confirm()
    store, prefix = writing.place.store, f"{layout.PROBE}{writing.tokens()}/"
    name = f"{prefix}clock"
    store.put_new(name, b"")
    moment = store.head(name).modified
    with suppress(StoreDenied):
        store.delete(name)
        if (directory := sweepable(store)) is not None:
            directory.remove_empty(prefix)
    apart = abs(moment - writing.clock())
    if apart > CLOCK_TOLERANCE:
        raise HostFailed(
            f"the store's clock and ours are {apart.total_seconds():.0f} s apart, so ages of objects are unknown",
            subject=store.url,
            remedy="correct the clock of this host, then run again; nothing was deleted",
        )
    return moment


def _garbage(place: SourceRef, live: LiveObjects, spared_before: datetime | None) -> Iterator[ObjectInfo]:
    for info in place.store.list(layout.source_root(place.source)):
        spared = spared_before is not None and info.modified <= spared_before
        if layout.collectable(place.source, info.name) and not spared and not live.holds(info):
            yield info


def _spared_before(place: SourceRef, folded: Folded, store_now: datetime) -> datetime | None:
    """The time of the last repair after a loss, by the store's clock, if it is recent."""
    if not folded.repaired_generation:
        return None
    moment = place.store.head(layout.commit(place.source, folded.repaired_generation)).modified
    return moment if store_now - moment < REPAIR_GRACE else None


def _silent_instances(place: SourceRef, store_now: datetime) -> list[str]:
    """Documents of instances that have not reported for a long time, besides the two that reported last: `status` must
    not forget a standby because it is gone."""
    known = sorted(place.store.list(layout.instances(place.source)), key=lambda info: info.modified, reverse=True)
    return [info.name for info in known[_INSTANCES_KEPT:] if store_now - info.modified > SILENT_INSTANCE]


def _superseded_checkpoints(place: SourceRef) -> list[str]:
    return [name for _, name in checkpoints(place)[:-_CHECKPOINTS_KEPT]]
