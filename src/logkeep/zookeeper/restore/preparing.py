"""Everything about a restore that can be known before anything is written: what a dry run shows. Reads only."""

import os
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from logkeep.errors import LogkeepError, RestoreFailed, TargetUnsafe, UsageError
from logkeep.formats.zookeeper.names import Packing, hex_zxid, parse_name
from logkeep.model.findings import Finding, Severity
from logkeep.zookeeper.kept import BackupView
from logkeep.zookeeper.plan import RestorePath
from logkeep.zookeeper.replay import Replayed, replay, unproven
from logkeep.zookeeper.restore.holding import check_writable, held_by
from logkeep.zookeeper.restore.journal import Phase, read_journal
from logkeep.zookeeper.restore.limits import Content, content_of, impossible, parse_version, warning, worth_telling
from logkeep.zookeeper.restore.numbers import epoch_above, lone_name, member_name
from logkeep.zookeeper.restore.places import Place, check_swappable, place_of
from logkeep.zookeeper.restore.running import Ask, Seen, ask_server, look_for_servers
from logkeep.zookeeper.restore.sessions import Dropped, drop_sessions
from logkeep.zookeeper.restore.staged_files import Made, exact_files, original_files
from logkeep.zookeeper.restore.values import Form, Held, Planned, RestoreWish, Sessions

_PACKED_SINCE = (3, 6)


@dataclass(frozen=True)
class Prepared:
    """A plan, and all that is needed to carry it out."""

    planned: Planned
    places: tuple[Place, ...]
    files: tuple[Made, ...]
    path: RestorePath
    replayed: Replayed
    dropped: Dropped
    ask: Ask


def prepare(view: BackupView, path: RestorePath, wish: RestoreWish, *, ask: Ask = ask_server) -> Prepared:
    """Raises UsageError or TargetUnsafe for directories that no restore can go to, Damaged for a broken backup.

    What else stands in the way is in `planned.obstacles`: a dry run shows it, `carry_out` raises it.
    """
    places = _places(wish)
    held = tuple(held_by(place) for place in places)
    seen = look_for_servers(places, ask)
    replayed = replay(view, path)
    _check_replayed(path, replayed, wish)
    dropped = drop_sessions(replayed.tree) if wish.sessions is Sessions.DROP else Dropped()
    content = content_of(replayed.tree)
    epoch = _epoch(view, wish, held, seen)
    named = _named(path, wish, held, epoch)
    files = exact_files(replayed.tree, named, epoch) if wish.form is Form.EXACT else original_files(view, path, epoch)
    size_bytes = content.size_bytes if wish.form is Form.EXACT else _archived_bytes(path)
    planned = Planned(
        backup=view.name,
        zxid=path.until,
        named=named,
        epoch=epoch,
        sessions=wish.sessions,
        form=wish.form,
        nodes=content.nodes,
        size_bytes=size_bytes,
        held=held,
        findings=tuple(_findings(content, wish, path, places, held, epoch)),
        unchecked=seen.unchecked,
        obstacles=tuple(_obstacles(content, wish, path, places, held, seen, size_bytes)),
    )
    return Prepared(planned, places, tuple(files), path, replayed, dropped, ask)


def _places(wish: RestoreWish) -> tuple[Place, ...]:
    if not wish.targets:
        raise UsageError("no directory is named to restore to", remedy="name dataDir of each server")
    if wish.form is Form.ORIGINAL and wish.sessions is Sessions.DROP:
        raise UsageError("original files keep their sessions", remedy="restore an exact snapshot to drop them")
    places = tuple(place_of(target) for target in wish.targets)
    lives = [live.path for place in places for live in place.lives]
    if len(set(lives)) != len(lives):
        raise UsageError("two servers cannot have the same directory", subject=", ".join(map(str, lives)))
    for place in places:
        check_swappable(place)
    return places


def _check_replayed(path: RestorePath, replayed: Replayed, wish: RestoreWish) -> None:
    """Raises RestoreFailed for a tree that is not the server's, or is not known to be."""
    wrong = replayed.first_mismatch
    if wrong is not None:
        raise RestoreFailed(
            "the replayed tree is not the one that the server had",
            subject=f"zxid {hex_zxid(wrong.zxid)}",
            remedy="verify the backup: a transaction is missing or was changed; restore to an earlier one",
        )
    left = unproven(path, replayed)
    if left and not wish.believe:
        ends = ", ".join(hex_zxid(border.before) for border in left)
        raise RestoreFailed(
            f"nothing proves that an epoch ended with {ends}",
            subject=f"zxid {hex_zxid(path.until)}",
            remedy="back up more members, restore to a zxid before it, or say that it is to be believed",
        )


def _epoch(view: BackupView, wish: RestoreWish, held: Sequence[Held], seen: Seen) -> int | None:
    """None for a server that stands alone and always did."""
    if not (wish.ensemble or len(held) > 1 or any(each.epochs for each in held)):
        return None
    epochs = [epoch for each in held for epoch in each.epochs]
    epochs += [e for member in view.members for e in (member.current_epoch, member.accepted_epoch) if e is not None]
    zxids = [log.last for log in view.logs] + [snapshot.fuzzy_end or snapshot.zxid for snapshot in view.snapshots]
    zxids += [each.highest_zxid for each in held] + [state.zxid for state in seen.live]
    return epoch_above(epochs, zxids, wish.min_epoch)


def _named(path: RestorePath, wish: RestoreWish, held: Sequence[Held], epoch: int | None) -> int:
    if wish.form is Form.ORIGINAL:
        return path.until
    return lone_name(path.until, held[0].highest_zxid) if epoch is None else member_name(epoch)


def _archived_bytes(path: RestorePath) -> int:
    base = path.base.snapshot
    return (0 if base is None else base.size_bytes) + sum(piece.log.size_bytes for piece in path.slices)


def _obstacles(
    content: Content,
    wish: RestoreWish,
    path: RestorePath,
    places: Sequence[Place],
    held: Sequence[Held],
    seen: Seen,
    size_bytes: int,
) -> Iterator[LogkeepError]:
    for who in seen.running:
        yield TargetUnsafe(who, remedy="stop the server, of an ensemble every member, and run again")
    yield from _unfinished(places)
    yield from _logs_elsewhere(places, held)
    yield from impossible(content, wish)
    yield from _not_as_files(wish, path)
    try:
        check_writable(places)
        check_room(places, size_bytes)
    except TargetUnsafe as error:
        yield error


def _unfinished(places: Sequence[Place]) -> Iterator[LogkeepError]:
    for place in places:
        journal = read_journal(place.data_dir)
        if journal is not None and journal.phase in (Phase.OLD, Phase.NEW):
            yield interrupted(journal.restore, place)


def interrupted(restore: str, place: Place) -> TargetUnsafe:
    what = f"restore {restore} was interrupted between the old data and the new"
    return TargetUnsafe(what, subject=str(place.data_dir), remedy="continue it or roll it back first")


def _logs_elsewhere(places: Sequence[Place], held: Sequence[Held]) -> Iterator[LogkeepError]:
    """Logs that stay where they are would be replayed on the restored tree."""
    for place, each in zip(places, held, strict=True):
        if each.snapshots and each.highest_zxid and not each.logs and not place.log_dir_named:
            yield TargetUnsafe(
                "it holds snapshots and no log: are its logs in another directory?",
                subject=str(place.data.path),
                remedy="look for dataLogDir in zoo.cfg and name it; if there is none, name dataDir twice",
            )


def _not_as_files(wish: RestoreWish, path: RestorePath) -> Iterator[LogkeepError]:
    version, base = parse_version(wish.version), path.base.snapshot
    if wish.form is Form.EXACT or version is None or version >= _PACKED_SINCE:
        return
    parsed = None if base is None else parse_name(base.name)
    if parsed is not None and parsed.packing is not Packing.PLAIN:
        what = f"ZooKeeper {wish.version} cannot read a packed snapshot"
        yield TargetUnsafe(what, subject=parsed.kind, remedy="restore an exact snapshot instead of the original files")
    elif version < (3, 5) and any(piece.log.digests is not False for piece in path.slices):
        what = f"ZooKeeper {wish.version} may not know all transactions of these logs"
        yield TargetUnsafe(what, remedy="restore an exact snapshot instead of the original files")


def check_room(places: Sequence[Place], size_bytes: int) -> None:
    """Raises TargetUnsafe when a file system cannot take it; what is replaced stays."""
    wanted: dict[int, tuple[Place, int]] = {}
    for place in places:
        device = place.data_dir.stat().st_dev
        wanted[device] = (place, wanted.get(device, (place, 0))[1] + size_bytes)
    for place, size in wanted.values():
        disk = os.statvfs(place.data_dir)
        free = disk.f_bavail * disk.f_frsize
        if free < size:
            what = f"{size} bytes are to be written, and {free} are free"
            raise TargetUnsafe(what, subject=str(place.data_dir), remedy="make room; what is replaced stays there too")


def _findings(
    content: Content,
    wish: RestoreWish,
    path: RestorePath,
    places: Sequence[Place],
    held: Sequence[Held],
    epoch: int | None,
) -> Iterator[Finding]:
    yield from worth_telling(content, wish)
    for place, each in zip(places, held, strict=True):
        yield from _about(place, each)
    for label in path.labels:
        yield warning("proof", label, "", where=hex_zxid(path.until))
    if epoch is not None and not wish.ensemble and len(places) == 1:
        what = f"it is a member of an ensemble: every member must be restored, with epoch {epoch} or above"
        remedy = f"stop all members, restore each from this backup with a least epoch of {epoch - 1}, then start them"
        yield warning("ensemble-member", what, remedy, where=str(places[0].data_dir))
    if wish.form is Form.ORIGINAL and any(each.highest_zxid > path.until for each in held):
        what = f"zxids above {hex_zxid(path.until)} were in use, and are given out again"
        yield warning("zxids-reused", what, "restore an exact snapshot: it is named above them")


def _about(place: Place, held: Held) -> Iterator[Finding]:
    where = str(place.data_dir)
    if held.strays:
        what = f"a server reads them and none wrote them: {', '.join(held.strays)}"
        yield warning("stray-files", what, "they are moved away with the old data", where)
    if not held.exactly:
        what = "a log that is replaced is damaged: how far it went is only estimated, and rather too high"
        yield Finding(code="replaced-damaged", severity=Severity.NOTE, where=where, what=what)
