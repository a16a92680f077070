"""Rebuild what can be rebuilt by listing; go on after a loss only when told to.

Everything outside the chain that `repair` touches is a copy or a cache: the second format object, checkpoints, a
source's own document, the lease. What it finds broken it writes anew, under a new name where names are not free.
Lost commits are another matter: with `accept_loss` a repair commit goes on after the last good one, brings back those
lost backups whose manifests and parts are intact, and spares old garbage for 30 days.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from datetime import timedelta

from logkeep.errors import Damaged, FormatTooNew, ObjectMissing
from logkeep.model.ids import BackupId
from logkeep.model.time import Clock, TokenSource
from logkeep.repository import layout
from logkeep.repository.actions import BackupAction, ObjectRef, RepairAction, Summary
from logkeep.repository.chain import (
    Link,
    Place,
    append,
    checkpoints,
    follow,
    open_commit,
    read_checkpoint,
    read_links,
    read_whole_chain,
    walk,
)
from logkeep.repository.content import PartReader, rows_of
from logkeep.repository.documents import open_in_place, read, seal, seal_of
from logkeep.repository.fold import Folded
from logkeep.repository.format import FormatDocument
from logkeep.repository.lease import acquire, read_lease
from logkeep.repository.manifest import Manifest
from logkeep.repository.owner import this_process
from logkeep.repository.parts import total
from logkeep.repository.source import SourceFacts, read_facts
from logkeep.repository.writing import writing
from logkeep.store.base import Store


@dataclass(frozen=True)
class Step:
    """One thing that a repair does, or would do."""

    what: str
    where: str


@dataclass(frozen=True)
class Break:
    """Where a chain stops making sense."""

    good: Folded
    """Everything up to the last commit that fits."""
    lost: tuple[int, ...]
    """Generations that are missing, damaged, or hang on one that is."""
    highest: int
    """The largest generation that was ever seen."""
    why: str
    links: tuple[Link, ...]
    """What is left of the commits after the break, unopened."""


def repair_format(store: Store, document: FormatDocument, dry_run: bool) -> Iterator[Step]:
    """Both copies of the format object, whole and equal."""
    data = seal(document)
    for name in (layout.FORMAT, layout.FORMAT_COPY):
        try:
            if store.get(name, FormatDocument.limit) == data:
                continue
            what = "rewrite the damaged format object"
        except (ObjectMissing, Damaged):
            what = "write the missing format object"
        yield Step(what, name)
        if not dry_run:
            store.delete(name)
            store.put_new(name, data)


def find_break(place: Place) -> Break | None:
    """Where the chain is broken or shorter than it was; None when it is whole."""
    remembered = _remembered(place)
    try:
        folded = read_whole_chain(place)
    except Damaged as error:
        return _break_at(place, remembered, str(error))
    if folded.generation < remembered:
        lost = tuple(range(folded.generation + 1, remembered + 1))
        return Break(folded, lost, remembered, f"generations up to {remembered} were committed once", ())
    return None


def _remembered(place: Place) -> int:
    try:
        lease = read_lease(place)
    except Damaged:
        return 0
    return lease[0].head.generation if lease else 0


def _break_at(place: Place, remembered: int, why: str) -> Break:
    links = read_links(place, 0)
    walked = walk(place, Folded(), links)
    good = walked.folded
    numbers = [p.number for link in links if (p := layout.placed(link.name))]
    highest = max([*numbers, remembered])
    return Break(good, tuple(range(good.generation + 1, highest + 1)), highest, why, tuple(links[walked.taken :]))


def recoverable(place: Place, broken: Break) -> list[BackupAction]:
    """Lost backups that are intact, from the commits that can still be read and from manifests found by listing."""
    known = {a.id: a for a in _readable_backups(place, broken)}
    found: dict[int, BackupAction] = {}
    after = layout.backups(place.source) + layout.padded(broken.good.last_id + 1)
    for info in place.store.list(layout.backups(place.source), after):
        backup_id = layout.backup_of(info.name)
        if layout.is_manifest(info.name) and backup_id is not None:
            action = _intact(place, info.name, known.get(backup_id))
            if action is not None:
                found[backup_id] = action
    return [found[i] for i in sorted(found)]


def _readable_backups(place: Place, broken: Break) -> Iterator[BackupAction]:
    for link in broken.links:
        try:
            action = open_commit(place, link).action
        except Damaged:
            continue
        if isinstance(action, BackupAction):
            yield action


def _intact(place: Place, name: str, committed: BackupAction | None) -> BackupAction | None:
    """The commit of a backup whose manifest and parts are whole, as it was or made anew; None when they are not."""
    try:
        data = place.store.get(name, Manifest.limit)
        manifest = open_in_place(data, name, Manifest, place.repository)
        rows = rows_of(PartReader(place), manifest, manifest.parts)
    except (Damaged, ObjectMissing):
        return None
    ref = ObjectRef(layout.document_token(name) or "", len(data), seal_of(data))
    if committed is not None:
        return committed if committed.manifest == ref else None
    summary = Summary(
        started=manifest.started,
        logs=len(manifest.cut),
        segments=len(rows),
        records=total(rows, "records"),
        stored_bytes=total(rows, "stored_bytes"),
        new_bytes=0,
        warnings=len(manifest.findings) + len(manifest.gaps),
        group=manifest.group,
    )
    return BackupAction(manifest.id, ref, summary)


def repair_chain(
    place: Place, broken: Break, run: str, clock: Clock, tokens: TokenSource, dry_run: bool
) -> Iterator[Step]:
    """Go on after a loss. Whoever calls this was told to accept it, and holds the lease."""
    recovered = recoverable(place, broken)
    lost = ", ".join(map(str, broken.lost[:5])) + (" …" if len(broken.lost) > 5 else "")
    yield Step(f"go on after generation {broken.good.generation}; lost: {lost}", layout.commits(place.source))
    for backup in recovered:
        yield Step(f"commit backup {backup.id} anew: its manifest and parts are intact", place.source)
    if not dry_run:
        action = RepairAction(broken.lost, tuple(recovered), broken.why)
        append(place, broken.good, action, run=run, nonce=tokens(), now=clock(), skip_to=broken.highest + 1)


def repair_checkpoints(place: Place, dry_run: bool) -> Iterator[Step]:
    """Remove checkpoints that no commit pins, or that tell another story than the chain."""
    for placed, name in checkpoints(place):
        try:
            if read_checkpoint(place, placed) == follow(place, Folded(), until=placed.number):
                continue
        except (Damaged, ObjectMissing, FormatTooNew):
            pass  # not a checkpoint that anybody can use
        yield Step("remove a checkpoint that does not fit the chain", name)
        if not dry_run:
            place.store.delete(name)


def repair_source(place: Place, folded: Folded, dry_run: bool) -> Iterator[Step]:
    """A source's own document, rebuilt from the newest readable manifest."""
    try:
        if read_facts(place) is not None:
            return
    except Damaged:
        pass
    name = layout.source_document(place.source)
    for entry in reversed(folded.completed):
        found = _facts_from(place, layout.manifest(place.source, BackupId(entry.id), entry.manifest.token))
        if found is not None:
            yield Step("write the source's document anew from a manifest", name)
            if not dry_run:
                place.store.delete(name)
                place.store.put_new(name, seal(found))
            return


def _facts_from(place: Place, manifest_name: str) -> SourceFacts | None:
    try:
        manifest = read(place.store, manifest_name, Manifest, place.repository)
    except (Damaged, ObjectMissing):
        return None
    return SourceFacts(
        repository=place.repository,
        source=place.source,
        kind=manifest.kind,
        identity=manifest.identity,
        created=manifest.started,
    )


def repair_lease(place: Place, dry_run: bool) -> Iterator[Step]:
    """A lease that cannot be read blocks every writer: remove it, the next one makes a new one."""
    try:
        read_lease(place)
    except Damaged:
        yield Step("remove a lease that cannot be read", layout.lease(place.source))
        if not dry_run:
            place.store.delete(layout.lease(place.source))


def repair(
    place: Place, clock: Clock, tokens: TokenSource, ttl: timedelta, *, accept_loss: bool, dry_run: bool
) -> list[Step]:
    """Rebuild every cache of a source. Raises Damaged when commits are lost and that was not accepted."""
    steps = list(repair_lease(place, dry_run))
    broken = find_break(place)
    if broken is not None:
        if not accept_loss:
            raise _not_accepted(place, broken)
        steps += _go_on(place, broken, clock, tokens, ttl, dry_run)
    if dry_run:
        folded = broken.good if broken else read_whole_chain(place)
        return [*steps, *repair_source(place, folded, True), *repair_checkpoints(place, True)]
    with writing(place, "repair", clock, tokens, ttl) as session:
        steps += repair_source(place, session.folded, False)
        stale = list(repair_checkpoints(place, False))
        if stale:
            session.fence("repair")
    return [*steps, *stale]


def _not_accepted(place: Place, broken: Break) -> Damaged:
    back = ", ".join(str(a.id) for a in recoverable(place, broken)) or "none"
    return Damaged(
        f"{broken.why}; generations {broken.lost[0]} to {broken.lost[-1]} are lost",
        subject=layout.commits(place.source),
        remedy="bring the objects back from the store's versions or a copy; if they are gone for good, "
        f"`logkeep repair --accept-loss` goes on without them (backups it can bring back: {back})",
    )


def _go_on(place: Place, broken: Break, clock: Clock, tokens: TokenSource, ttl: timedelta, dry_run: bool) -> list[Step]:
    if dry_run:
        return list(repair_chain(place, broken, "", clock, tokens, True))
    lease = acquire(place, this_process(tokens()), "repair", clock, ttl)
    try:
        return list(repair_chain(place, broken, lease.run, clock, tokens, False))
    finally:
        lease.release()
