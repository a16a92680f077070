"""Apply a prepared restore: stage beside the old data, prove the staged files, swap, make the receipt.

Until the swap begins the target is untouched, and staged files are removed on any error. From then on the journal
allows a continue to the new data or a rollback to the old data.
"""

from collections.abc import Callable, Sequence
from datetime import UTC, datetime

from logkeep.directories.folder import Folder
from logkeep.errors import LogkeepError, RestoreFailed, TargetUnsafe
from logkeep.formats.zookeeper.names import hex_zxid
from logkeep.model.time import Clock, TokenSource, random_token, rfc3339, utc_now
from logkeep.zookeeper.restore.disk import Disk
from logkeep.zookeeper.restore.prepare import PreparedRestore
from logkeep.zookeeper.restore.proof import prove
from logkeep.zookeeper.restore.staged_files import StagedFile
from logkeep.zookeeper.restore.swap import Cleanup, Swap
from logkeep.zookeeper.restore.target.checks import interrupted_error
from logkeep.zookeeper.restore.target.directories import JOURNAL, LiveDirectory, ServerDirectories
from logkeep.zookeeper.restore.target.journal import (
    JournalPlace,
    Phase,
    Pointer,
    RestoreJournal,
    check_members,
    consenting,
    encoded,
    journal_of,
)
from logkeep.zookeeper.restore.target.locks import locked
from logkeep.zookeeper.restore.target.running_server import find_running_servers
from logkeep.zookeeper.restore.target.state import fingerprint_of, is_empty, journal_owner, owner_like, owner_of
from logkeep.zookeeper.restore.values import RestoredServerFile, RestoredTarget, RestoreReceipt


def carry_out(
    prepared: PreparedRestore,
    *,
    replace: bool = False,
    clock: Clock = utc_now,
    token: TokenSource = random_token,
    disk: Disk | None = None,
    name: str | None = None,
    staged: Callable[[RestoreReceipt], None] = lambda _receipt: None,
) -> RestoreReceipt:
    """`replace`: the user agreed to replace the targets' data, which is kept beside the new data.

    `name`: the restore's name in the journal, made by `journal_name`, for callers that store it before the restore.
    `staged` gets the receipt before the first file is moved: an error that it raises ends the restore.
    """
    _check(prepared, replace=replace)
    steps, started = disk or Disk(), clock()
    restore = name or journal_name(started, token)
    with locked(prepared.places):
        earlier = _earlier(prepared.places, steps)
        journal = _journal(restore, prepared, earlier)
        try:
            targets = _stage(journal, prepared, steps)
            staged(_receipt(restore, prepared, targets, started, clock()))
            _check_unchanged(prepared)
        except LogkeepError:
            Cleanup(journal, prepared.places, steps).remove_staged()
            raise
        _swap(journal, prepared.places, steps)
        return _receipt(restore, prepared, targets, started, clock())


def journal_name(now: datetime, token: TokenSource) -> str:
    return f"{now.astimezone(UTC):%Y%m%d%H%M%S}-{token()[:8]}"


def _check(prepared: PreparedRestore, *, replace: bool) -> None:
    planned = prepared.planned
    if planned.obstacles:
        raise planned.obstacles[0]
    full = [p for p, held in zip(prepared.places, planned.held, strict=True) if not held.empty]
    if full and not replace:
        raise TargetUnsafe(
            "it holds data already",
            subject=", ".join(str(place.data_dir) for place in full),
            remedy="allow its replacement with --force; the old data is kept beside the restored data",
        )


def _check_unchanged(prepared: PreparedRestore) -> None:
    """Check the targets again right before the swap. Raises TargetUnsafe."""
    for refusal in find_running_servers(prepared.places, prepared.ask).refusals():
        raise refusal
    for place, held in zip(prepared.places, prepared.planned.held, strict=True):
        if fingerprint_of(place) != held.fingerprint:
            raise TargetUnsafe(
                "files changed there while the restore was prepared: something is writing to them",
                subject=str(place.data_dir),
                remedy="stop the server, also one on another host that has this directory mounted, and run again",
            )


def _earlier(places: Sequence[ServerDirectories], disk: Disk) -> RestoreJournal | None:
    """The journal of the restore before this one, if it completed. Staged files of one that died early are removed."""
    found = None
    for place in places:
        journal = journal_of(place.data_folder, place.opened)
        if journal is not None and journal.phase is Phase.STAGING:
            theirs = [each.place(place.opened) for each in journal.places]
            check_members(journal, theirs)
            Cleanup(journal, theirs, disk).remove_staged()
            journal = journal_of(place.data_folder, place.opened)
        if journal is not None and journal.phase in (Phase.OLD, Phase.NEW):
            raise interrupted_error(journal.restore, place)
        found = journal if place is places[0] else found
    same = found is not None and [p.data_dir for p in found.places] == [str(p.data_dir) for p in places]
    return found if same else None


def _journal(restore: str, prepared: PreparedRestore, earlier: RestoreJournal | None) -> RestoreJournal:
    places = tuple(
        JournalPlace(
            str(place.data_dir),
            str(place.log_dir),
            (
                *(str(live.path) for live in place.lives if live.folder is None),
                *(str(_live_of(made, place).staged(restore) / made.name) for made in prepared.files),
            ),
            held.fingerprint,
            tuple(str(live.path) for live in place.lives if live.folder is not None and is_empty(live)),
        )
        for place, held in zip(prepared.places, prepared.planned.held, strict=True)
    )
    return RestoreJournal(restore=restore, phase=Phase.STAGING, places=places, earlier=earlier)


def _live_of(made: StagedFile, place: ServerDirectories) -> LiveDirectory:
    return place.log if made.in_log_dir else place.data


def _stage(journal: RestoreJournal, prepared: PreparedRestore, disk: Disk) -> list[RestoredTarget]:
    first, *others = prepared.places
    pointer = encoded(Pointer(str(first.data_dir)))
    for place in others:  # before the journal: once it exists, all members point to it
        disk.replace(place.data_folder, JOURNAL, pointer, journal_owner(place))
    for folder in consenting(prepared.places):
        disk.replace(folder, JOURNAL, pointer, owner_like(folder))
    disk.replace(first.data_folder, JOURNAL, encoded(journal), journal_owner(first))
    return [_stage_one(journal.restore, place, prepared, disk) for place in prepared.places]


def _stage_one(restore: str, place: ServerDirectories, prepared: PreparedRestore, disk: Disk) -> RestoredTarget:
    for live in place.lives:
        disk.make_directory(live.above, live.staged(restore).name, owner_of(live))
    files = []
    for made in prepared.files:
        live = _live_of(made, place)
        files.append((live, disk.write(_staging(live, restore), made.name, made.pieces(), owner_of(live))))
    for live in place.lives:
        disk.sync(_staging(live, restore))
    for live, file in files:
        _prove(_staging(live, restore), file, prepared)
    kept = tuple(str(live.kept(restore)) for live in place.lives if not is_empty(live))
    return RestoredTarget(
        data_dir=str(place.data_dir), log_dir=str(place.log_dir), files=tuple(file for _, file in files), kept=kept
    )


def _staging(live: LiveDirectory, restore: str) -> Folder:
    found = live.beside(live.staged(restore))
    if found is None:
        what, remedy = "the staged files were removed", "find out what removes them, and run again"
        raise RestoreFailed(what, subject=str(live.staged(restore)), remedy=remedy)
    return found


def _prove(folder: Folder, file: RestoredServerFile, prepared: PreparedRestore) -> None:
    digest = prepared.replayed.tree.digest if prepared.digests else None
    problem = prove(folder, file, prepared.planned, digest)
    if problem:
        raise RestoreFailed(
            f"the written file does not read back: {problem}",
            subject=str(folder.path / file.name),
            remedy="check the disk; the old data is untouched",
        )


def _swap(journal: RestoreJournal, places: Sequence[ServerDirectories], disk: Disk) -> None:
    swap = Swap(journal, places, disk)
    try:
        swap.note(Phase.OLD)
        swap.forward()
        Cleanup(swap.journal, places, disk).remove_empty_directories()
    except RestoreFailed as error:
        remedy = f"{error.remedy.partition(',')[0]}, then continue restore {journal.restore}, or roll it back"
        raise RestoreFailed(error.what, subject=error.subject, remedy=remedy) from error


def _proof(prepared: PreparedRestore) -> str:
    wrong = prepared.replayed.first_mismatch
    if wrong is not None:
        return f"disproven: the server's digest at {hex_zxid(wrong.zxid)} differs, which was accepted"
    return ", ".join([prepared.path.proof, *prepared.path.labels])


def _receipt(
    restore: str, prepared: PreparedRestore, targets: Sequence[RestoredTarget], started: datetime, now: datetime
) -> RestoreReceipt:
    planned, replayed = prepared.planned, prepared.replayed
    return RestoreReceipt(
        restore=restore,
        backup=planned.backup,
        zxid=planned.zxid,
        named_zxid=planned.named,
        epoch=planned.epoch,
        sessions=planned.sessions,
        form=planned.form,
        proof=_proof(prepared),
        nodes=planned.nodes,
        transactions=replayed.transactions,
        digest=replayed.tree.digest,
        digests_compared=replayed.digests_compared,
        dropped_sessions=prepared.dropped.sessions,
        dropped_ephemerals=prepared.dropped.ephemerals,
        started=rfc3339(started),
        finished=rfc3339(now),
        targets=tuple(targets),
        findings=planned.findings,
        unchecked=planned.unchecked,
    )
