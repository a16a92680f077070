"""Repairs the metadata of a repository by listing; continues after lost commits only if the user accepts the loss.

Everything outside the chain that `repair` changes is a copy or a cache: the second format object, checkpoints, a
source's own document, the lease. It rewrites what is damaged. Lost commits are different: with `accept_loss` a repair
commit continues after the last good one, replays the readable commits after the loss (holds, deletions, merges and
all), restores backups whose manifests are intact, and garbage collection spares old objects for 30 days.
"""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from datetime import timedelta

import msgspec

from logkeep.errors import Damaged, FormatTooNew, ObjectMissing
from logkeep.model.ids import BackupId
from logkeep.model.time import Clock, TokenSource
from logkeep.repository.backups.content import PartReader, rows_of
from logkeep.repository.backups.holds import HoldDocument
from logkeep.repository.backups.journal import read_request
from logkeep.repository.backups.manifest import Manifest
from logkeep.repository.backups.source import SourceFacts, read_facts
from logkeep.repository.backups.verification import Verification
from logkeep.repository.chain import layout
from logkeep.repository.chain.actions import (
    BackupAction,
    CheckpointAction,
    Commit,
    DeleteAction,
    FailedAction,
    ObjectRef,
    PartRef,
    RepairAction,
    ReplaceAction,
    ReplayedAction,
    Summary,
    TrimAction,
)
from logkeep.repository.chain.commits import (
    Link,
    SourceRef,
    append,
    checkpoints,
    follow,
    open_commit,
    read_checkpoint,
    read_links,
    read_whole_chain,
    walk,
)
from logkeep.repository.chain.documents import Document, open_in_place, read, seal, seal_of
from logkeep.repository.chain.fold import Folded, Folding
from logkeep.repository.chain.format import FormatDocument
from logkeep.repository.chain.lease import NOTHING_SEEN, Head, acquire, check_seen, read_lease
from logkeep.repository.chain.owner import this_process
from logkeep.repository.chain.write_session import writing
from logkeep.repository.parts import total
from logkeep.repository.upkeep.marks import GarbageMark
from logkeep.store.base import Store


@dataclass(frozen=True)
class RepositoryRepairStep:
    """One step of a repair, or of its dry run."""

    what: str
    where: str


@dataclass(frozen=True)
class ChainBreak:
    """The point after which a chain is broken."""

    good: Folded
    """Everything up to the last commit that fits."""
    highest: int
    """The largest generation that was ever seen."""
    why: str
    links: tuple[Link, ...]
    """The commit objects after the break, not opened."""


def repair_format(store: Store, document: FormatDocument, dry_run: bool) -> Iterator[RepositoryRepairStep]:
    """Make both copies of the format object intact and equal."""
    data = seal(document)
    for name in (layout.FORMAT, layout.FORMAT_COPY):
        try:
            if store.get(name, FormatDocument.limit) == data:
                continue
            what = "rewrite the damaged format object"
        except (ObjectMissing, Damaged):
            what = "write the missing format object"
        yield RepositoryRepairStep(what, name)
        if not dry_run:
            store.delete(name)
            store.put_new(name, data)


def find_break(place: SourceRef) -> ChainBreak | None:
    """Where the chain is broken, shorter than it was, or another than it was; None if it is intact."""
    links = read_links(place, 0)
    walked, seen = walk(place, Folded(), links), _remembered(place)
    numbers = [p.number for link in links if (p := layout.placed(link.name))]
    highest = max([*numbers, seen.generation])
    if walked.broken is not None:
        return ChainBreak(walked.folded, highest, str(walked.broken), tuple(links[walked.taken :]))
    try:
        check_seen(place, walked.folded, seen)
    except Damaged as damage:
        return ChainBreak(walked.folded, highest, damage.what, ())
    return None


def _remembered(place: SourceRef) -> Head:
    try:
        lease = read_lease(place)
    except Damaged:
        return NOTHING_SEEN
    return lease[0].head if lease else NOTHING_SEEN


def replayable(place: SourceRef, broken: ChainBreak) -> list[ReplayedAction]:
    """What can be saved after a break: readable commits, and backups whose manifests are intact."""
    readable = _readable(place, broken)
    merged = _with_manifests(readable, _lost_backups(place, broken, readable))
    folding, kept = Folding(broken.good), list[ReplayedAction]()
    for found in merged:
        each = _of_known_backups(found, folding)
        try:
            folding.replay(each, place.source)
        except Damaged:
            continue  # it refers to something that is lost
        kept.append(each)
    return kept


def _of_known_backups(each: ReplayedAction, folding: Folding) -> ReplayedAction:
    """The action without backups that are lost. A trim still applies to the others: without it, they would need objects
    that may be gone."""
    if not isinstance(each.action, TrimAction):
        return each
    known = {entry.id for entry in folding.result().completed}
    left = tuple(backup for backup in each.action.backups if backup.id in known)
    return msgspec.structs.replace(each, action=msgspec.structs.replace(each.action, backups=left))


def _readable(place: SourceRef, broken: ChainBreak) -> list[ReplayedAction]:
    """The readable commits after the break, each once: an earlier repair may have replayed commits that are still
    there, and its order counts."""
    found: dict[tuple[int, str, type], ReplayedAction] = {}
    for link in broken.links:
        try:
            commit = open_commit(place, link)
        except Damaged:
            continue
        for each in _actions(commit):
            key = each.generation, each.time, type(each.action)
            found.pop(key, None)
            found[key] = each
    return list(found.values())


def _actions(commit: Commit) -> tuple[ReplayedAction, ...]:
    if isinstance(commit.action, RepairAction):
        return commit.action.replayed
    if isinstance(commit.action, CheckpointAction):
        return ()
    return (ReplayedAction(commit.generation, commit.time, commit.action),)


def _lost_backups(place: SourceRef, broken: ChainBreak, readable: list[ReplayedAction]) -> dict[int, ReplayedAction]:
    """Backups after the break without a readable commit, whose manifest and parts are intact."""
    committed = {i for each in readable for i in _ids(each)}
    instead, found = _replaced_parts(broken, readable), dict[int, ReplayedAction]()
    after = layout.backups(place.source) + layout.padded(broken.good.last_id + 1)
    for info in place.store.list(layout.backups(place.source), after):
        backup_id = layout.backup_of(info.name)
        if layout.is_manifest(info.name) and backup_id is not None and backup_id not in committed:
            # It was committed after the last good commit; as early as possible, so that every later replacement of
            # its parts counts for it, and stays as long as it does.
            whole = _from_manifest(place, info.name, broken.good.generation + 1, instead)
            if whole is not None and (backup_id not in found or found[backup_id].time < whole.time):
                found[backup_id] = whole
    return found


def _replaced_parts(broken: ChainBreak, readable: list[ReplayedAction]) -> dict[str, tuple[PartRef, ...]]:
    """What is read in place of each part after a merge or a fold: the part itself may be gone."""
    instead = {each.old: each.new for each in broken.good.replacements}
    for action in (each.action for each in readable if isinstance(each.action, ReplaceAction)):
        news = {part.old: part.new for part in action.parts}
        moved = {old: [ref for one in new for ref in news.get(one.token, (one,))] for old, new in instead.items()}
        instead = {**{old: tuple(new) for old, new in moved.items()}, **news}
    return instead


def _ids(each: ReplayedAction) -> tuple[int, ...]:
    match each.action:
        case BackupAction(id=backup_id) | FailedAction(id=backup_id):
            return (backup_id,)
        case DeleteAction(ids=ids):
            return ids
    return ()


def _with_manifests(readable: list[ReplayedAction], found: dict[int, ReplayedAction]) -> list[ReplayedAction]:
    """Ids are decided in order: each found backup goes right after the readable one with the next smaller id.

    So what was committed about it after it (a hold, a trim, a merge or fold of its parts) finds it there.
    """
    merged = list(readable)
    for backup_id in sorted(found):
        decided = [
            (at, each.action.id)
            for at, each in enumerate(merged)
            if isinstance(each.action, BackupAction | FailedAction)
        ]
        larger = next((at for at, other in decided if other > backup_id), len(merged))
        merged.insert(max((at + 1 for at, _ in decided if at < larger), default=0), found[backup_id])
    return merged


def _from_manifest(
    place: SourceRef, name: str, generation: int, instead: Mapping[str, tuple[PartRef, ...]]
) -> ReplayedAction | None:
    """The commit of a backup, rebuilt from its manifest, with its own time and tags; None if it is damaged."""
    try:
        data = place.store.get(name, Manifest.limit)
        manifest = open_in_place(data, name, Manifest, place.repository)
        served = dict.fromkeys(ref for part in manifest.parts for ref in instead.get(part.token, (part,)))
        rows = rows_of(PartReader(place), manifest, tuple(served))
    except (Damaged, ObjectMissing):
        return None
    summary = Summary(
        started=manifest.started,
        logs=len(manifest.cut),
        segments=len(rows),
        records=total(rows, "records"),
        stored_bytes=total(rows, "stored_bytes"),
        new_bytes=0,
        warnings=len(manifest.findings) + len(manifest.gaps),
        tags=_tags(place, BackupId(manifest.id)),
        group=manifest.group,
    )
    ref = ObjectRef(layout.document_token(name) or "", len(data), seal_of(data))
    return ReplayedAction(generation, manifest.finished, BackupAction(manifest.id, ref, summary))


def _tags(place: SourceRef, backup_id: BackupId) -> tuple[str, ...]:
    try:
        request = read_request(place, backup_id)
    except Damaged:
        return ()
    return request.tags if request else ()


def repair_chain(
    place: SourceRef, broken: ChainBreak, run: str, clock: Clock, tokens: TokenSource, dry_run: bool
) -> Iterator[RepositoryRepairStep]:
    """Continue after a loss. The caller holds the lease, and the user has accepted the loss."""
    saved = replayable(place, broken)
    good = broken.good.generation
    yield RepositoryRepairStep(
        f"continue after generation {good}, discard {good + 1} to {broken.highest}", layout.commits(place.source)
    )
    for each in saved:
        if isinstance(each.action, BackupAction):
            yield RepositoryRepairStep(
                f"bring backup {each.action.id} back: its commit or its manifest is intact", place.source
            )
    if not dry_run:
        action = RepairAction(good, tuple(saved), broken.why)
        append(place, broken.good, action, run=run, nonce=tokens(), now=clock(), skip_to=broken.highest + 1)


def repair_checkpoints(place: SourceRef, dry_run: bool) -> Iterator[RepositoryRepairStep]:
    """Remove checkpoints that no commit pins, or that differ from the chain."""
    for placed, name in checkpoints(place):
        try:
            if read_checkpoint(place, placed) == follow(place, Folded(), until=placed.number):
                continue
        except (Damaged, ObjectMissing, FormatTooNew):
            pass  # unusable
        yield RepositoryRepairStep("remove a checkpoint that does not fit the chain", name)
        if not dry_run:
            place.store.delete(name)


def repair_source(place: SourceRef, folded: Folded, dry_run: bool) -> Iterator[RepositoryRepairStep]:
    """Rebuild a source's own document from the newest readable manifest."""
    try:
        if read_facts(place) is not None:
            return
    except Damaged:
        pass
    name = layout.source_document(place.source)
    for entry in reversed(folded.completed):
        found = _facts_from(place, layout.manifest(place.source, BackupId(entry.id), entry.manifest.token))
        if found is not None:
            yield RepositoryRepairStep("rebuild the source's document from a manifest", name)
            if not dry_run:
                place.store.delete(name)
                place.store.put_new(name, seal(found))
            return


def _facts_from(place: SourceRef, manifest_name: str) -> SourceFacts | None:
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


def repair_lease(place: SourceRef, dry_run: bool) -> Iterator[RepositoryRepairStep]:
    """Remove an unreadable lease: it blocks every writer. The next writer creates a new one."""
    try:
        read_lease(place)
    except Damaged:
        yield RepositoryRepairStep("remove a lease that cannot be read", layout.lease(place.source))
        if not dry_run:
            place.store.delete(layout.lease(place.source))


def repair(
    place: SourceRef, clock: Clock, tokens: TokenSource, ttl: timedelta, *, accept_loss: bool, dry_run: bool
) -> list[RepositoryRepairStep]:
    """Rebuild every cache of a source. Raises Damaged if commits are lost and the loss is not accepted."""
    steps = list(repair_lease(place, dry_run))
    broken = find_break(place)
    if broken is not None:
        if not accept_loss:
            raise _not_accepted(place, broken)
        steps += _continue_after(place, broken, clock, tokens, ttl, dry_run)
    if dry_run:
        folded = broken.good if broken else read_whole_chain(place)
        return [
            *steps,
            *repair_source(place, folded, True),
            *repair_leftovers(place, True),
            *repair_checkpoints(place, True),
        ]
    with writing(place, "repair", clock, tokens, ttl) as session:
        steps += repair_source(place, session.folded, False)
        steps += repair_leftovers(place, False)
        stale = list(repair_checkpoints(place, False))
        if stale:
            session.fence("repair")
    return [*steps, *stale]


def _not_accepted(place: SourceRef, broken: ChainBreak) -> Damaged:
    back = ", ".join(str(s.action.id) for s in replayable(place, broken) if isinstance(s.action, BackupAction))
    return Damaged(
        f"{broken.why}; the chain is intact up to generation {broken.good.generation} of {broken.highest}",
        subject=layout.commits(place.source),
        remedy="restore the objects from the store's versions or a copy; if they are lost for good, "
        f"`logkeep repair --accept-loss` continues without them (backups it can recover: {back or 'none'})",
    )


def _continue_after(
    place: SourceRef, broken: ChainBreak, clock: Clock, tokens: TokenSource, ttl: timedelta, dry_run: bool
) -> list[RepositoryRepairStep]:
    if dry_run:
        return list(repair_chain(place, broken, "", clock, tokens, True))
    lease = acquire(place, this_process(tokens()), "repair", clock, ttl)
    try:
        steps = list(repair_chain(place, broken, lease.run, clock, tokens, False))
        folded = read_whole_chain(place)
        lease.remember(Head(folded.generation, folded.head))
    finally:
        lease.release()
    return steps


def repair_leftovers(place: SourceRef, dry_run: bool) -> Iterator[RepositoryRepairStep]:
    """Remove unreadable marks, holds and verifications: they have no effect any more."""
    kinds: tuple[tuple[str, type[Document]], ...] = (
        (layout.garbage(place.source), GarbageMark),
        (layout.holds(place.source), HoldDocument),
        (layout.verifications(place.source), Verification),
    )
    for prefix, kind in kinds:
        for info in place.store.list(prefix):
            try:
                read(place.store, info.name, kind, place.repository)
            except ObjectMissing:
                continue
            except Damaged:
                yield RepositoryRepairStep(f"remove a {kind.__struct_config__.tag} that cannot be read", info.name)
                if not dry_run:
                    place.store.delete(info.name)
