"""Apply a prepared restore: stage beside the old data, prove the staged files, swap, make the receipt.

Until the swap begins the target is untouched, and staged files are removed on any error. From then on the journal
allows a continue to the new data or a rollback to the old data.
"""

import os
from collections.abc import Callable, Sequence
from datetime import UTC, datetime
from pathlib import Path

from logkeep.errors import LogkeepError, RestoreFailed, TargetUnsafe
from logkeep.formats.zookeeper.names import hex_zxid
from logkeep.model.time import Clock, TokenSource, random_token, rfc3339, utc_now
from logkeep.zookeeper.restore.disk import Disk
from logkeep.zookeeper.restore.journal import JournalPlace, Phase, Pointer, RestoreJournal, encoded, read_journal
from logkeep.zookeeper.restore.locks import locked
from logkeep.zookeeper.restore.prepare import PreparedRestore
from logkeep.zookeeper.restore.proof import prove
from logkeep.zookeeper.restore.running_server import find_running_servers
from logkeep.zookeeper.restore.swap import Cleanup, Swap
from logkeep.zookeeper.restore.target_dirs import ServerDirectories
from logkeep.zookeeper.restore.target_state import fingerprint_of, interrupted_error, is_empty, owner_of
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
            Cleanup(journal, steps).remove_staged()
            raise
        _swap(journal, steps)
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
        journal = read_journal(place.data_dir)
        if journal is not None and journal.phase is Phase.STAGING:
            Cleanup(journal, disk).remove_staged()
            journal = read_journal(place.data_dir)
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
            tuple(str(live.path) for live in place.lives if not live.path.exists()),
            held.fingerprint,
            tuple(str(live.path) for live in place.lives if live.path.exists() and is_empty(live)),
        )
        for place, held in zip(prepared.places, prepared.planned.held, strict=True)
    )
    return RestoreJournal(restore=restore, phase=Phase.STAGING, places=places, earlier=earlier)


def _stage(journal: RestoreJournal, prepared: PreparedRestore, disk: Disk) -> list[RestoredTarget]:
    first, *others = prepared.places
    for place in others:  # before the journal: once it exists, all members point to it
        disk.replace(place.journal, encoded(Pointer(str(first.data_dir))), owner_of(place.data))
    disk.replace(first.journal, encoded(journal), owner_of(first.data))
    return [_stage_one(journal.restore, place, prepared, disk) for place in prepared.places]


def _stage_one(restore: str, place: ServerDirectories, prepared: PreparedRestore, disk: Disk) -> RestoredTarget:
    for live in place.lives:
        disk.make_directory(live.staged(restore), owner_of(live))
    files = []
    for made in prepared.files:
        live = place.log if made.in_log_dir else place.data
        files.append((live, disk.write(live.staged(restore) / made.name, made.pieces(), owner_of(live))))
    for live in place.lives:
        disk.sync(live.staged(restore))
    for live, file in files:
        _prove(live.staged(restore), file, prepared)
    kept = tuple(str(live.kept(restore)) for live in place.lives if live.path.exists() and not is_empty(live))
    return RestoredTarget(
        data_dir=str(place.data_dir), log_dir=str(place.log_dir), files=tuple(file for _, file in files), kept=kept
    )


def _prove(directory: Path, file: RestoredServerFile, prepared: PreparedRestore) -> None:
    digest = prepared.replayed.tree.digest if prepared.digests else None
    problem = prove(directory / file.name, file, prepared.planned, digest)
    if problem:
        raise RestoreFailed(
            f"the written file does not read back: {problem}",
            subject=os.fspath(directory / file.name),
            remedy="check the disk; the old data is untouched",
        )


def _swap(journal: RestoreJournal, disk: Disk) -> None:
    swap = Swap(journal, disk)
    try:
        swap.note(Phase.OLD)
        swap.forward()
        Cleanup(swap.journal, disk).remove_empty_directories()
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
