"""What stands in the way of a restore, and what is worth knowing about it, by all that was found out. Pure."""

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass

from logkeep.errors import LogkeepError, TargetUnsafe
from logkeep.formats.zookeeper.names import SnapshotPacking, hex_zxid, parse_name
from logkeep.model.findings import Finding, Severity
from logkeep.zookeeper.restore.limits import Content, impossible, parse_version, warning, worth_telling
from logkeep.zookeeper.restore.running_server import RunningServers
from logkeep.zookeeper.restore.target_dirs import ServerDirectories
from logkeep.zookeeper.restore.values import Form, TargetContents, ZooKeeperRestoreOptions
from logkeep.zookeeper.timeline.plan import RestorePath, shown_time
from logkeep.zookeeper.timeline.replay import Mismatch

_PACKED_SINCE = (3, 6)


@dataclass(frozen=True, kw_only=True)
class RestoreSituation:
    wish: ZooKeeperRestoreOptions
    path: RestorePath
    content: Content
    mismatch: Mismatch | None
    targets: tuple[tuple[ServerDirectories, TargetContents], ...]
    seen: RunningServers
    epoch: int | None
    highest_used: int
    """The largest zxid of another tree that is known of, in the targets and in the backup."""
    members: int
    """Of the ensemble, as far as the backup knows."""
    separate_logs: str
    """Where a server of the backup had its logs, if not beside its snapshots."""
    looked_at: int
    """Targets, and members that were surveyed elsewhere; all of them where a plan was agreed."""
    missing_acls: int
    """See `Replayed`."""


def in_the_way(found: RestoreSituation) -> Iterator[LogkeepError]:
    yield from found.seen.refusals()
    yield from _logs_elsewhere(found)
    yield from impossible(found.content, found.wish)
    yield from _not_as_files(found)
    yield from _unsurveyed(found)


def _logs_elsewhere(found: RestoreSituation) -> Iterator[LogkeepError]:
    for place, held in found.targets:
        yield from logs_elsewhere(place, held, found.separate_logs)


def logs_elsewhere(place: ServerDirectories, held: TargetContents, separate_logs: str = "") -> Iterator[LogkeepError]:
    """Logs that stay where they are would be replayed on the restored tree: also when dataDir alone was wiped.

    `separate_logs`: where a server of the backup had its own, if that is known.
    """
    if held.logs or place.log_dir_named:
        return
    remedy = "look for dataLogDir in zoo.cfg and name it; if there is none, name dataDir twice"
    if held.snapshots and held.highest_zxid:
        what = "it holds snapshots and no log: are its logs in another directory?"
        yield TargetUnsafe(what, subject=str(place.data.path), remedy=remedy)
    elif separate_logs:
        what = f"the server of this backup had its logs in another directory ({separate_logs})"
        yield TargetUnsafe(what, subject=str(place.data.path), remedy=remedy)


def not_looked_at(targets: Iterable[tuple[ServerDirectories, TargetContents]]) -> Iterator[str]:
    """Of a directory that holds nothing nobody can tell whether logs of its server lie elsewhere."""
    for place, held in targets:
        if held.empty and not place.log_dir_named:
            yield f"no log directory was named for {place.data_dir}: logs in a dataLogDir would be replayed"


def _not_as_files(found: RestoreSituation) -> Iterator[LogkeepError]:
    version, base = parse_version(found.wish.version), found.path.base.snapshot
    if found.wish.form is Form.EXACT or version is None or version >= _PACKED_SINCE:
        return
    parsed = None if base is None else parse_name(base.name)
    remedy = "restore an exact snapshot instead of the original files"
    if parsed is not None and parsed.packing is not SnapshotPacking.PLAIN:
        what = f"ZooKeeper {found.wish.version} cannot read a packed snapshot"
        yield TargetUnsafe(what, subject=hex_zxid(parsed.zxid), remedy=remedy)
    elif version < (3, 5) and any(piece.log.digests is not False for piece in found.path.slices):
        what = f"ZooKeeper {found.wish.version} may not know all transactions of these logs"
        yield TargetUnsafe(what, remedy=remedy)


def _unsurveyed(found: RestoreSituation) -> Iterator[LogkeepError]:
    """A member that nobody looked at may have a later epoch, and would bring its old data back."""
    if found.epoch is None or found.wish.min_epoch or found.looked_at >= max(found.members, 2):
        return
    yield TargetUnsafe(
        f"only {found.looked_at} of the ensemble's members could be looked at: another may have a later epoch",
        remedy="survey every host with `logkeep zookeeper restore survey` and make one plan of all; or give the "
        "highest epoch that any of them has (currentEpoch in version-2) with --min-epoch; here it is "
        f"{found.epoch - 1}",
    )


def worth_knowing(found: RestoreSituation) -> Iterator[Finding]:
    path, wish = found.path, found.wish
    if found.mismatch is not None:
        what = f"from here on the tree is not the one that the server had; it was accepted: {wish.accept_mismatch}"
        where = hex_zxid(found.mismatch.zxid)
        yield Finding(code="digest-mismatch", severity=Severity.DAMAGE, where=where, what=what)
    yield from worth_telling(found.content, wish)
    for place, held in found.targets:
        yield from _about(place, held)
    if path.asked_ms is not None:
        what = f"the backup holds nothing later than {path.stands_at}: what happened between then and "
        remedy = "if that matters, restore from a later backup"
        yield warning("time-behind-the-end", f"{what}{shown_time(path.asked_ms)} is not known", remedy)
    for label in path.labels:
        yield warning("proof", label, "", where=hex_zxid(path.until))
    yield from _about_others(found)
    if wish.form is Form.ORIGINAL:
        yield from _about_original_files(found)


def _about_original_files(found: RestoreSituation) -> Iterator[Finding]:
    until, base = found.path.until, found.path.base.snapshot
    if found.highest_used > until:
        what = f"zxids above {hex_zxid(until)} were in use, and are given out again"
        yield warning("zxids-reused", what, "restore an exact snapshot: it is named above them")
    if found.epoch is not None:
        what = "a member that is not restored and has a later snapshot keeps that tree, whatever the leader has"
        yield warning("forgotten-members", what, "restore an exact snapshot: it makes the leader send the whole tree")
    if found.missing_acls and base is not None:
        what = f"it names ACLs of {found.missing_acls} nodes that it does not hold: 3.9.5 may refuse to start from it"
        yield warning("missing-acls", what, "restore an exact snapshot: it holds all of them", where=base.name)


def _about_others(found: RestoreSituation) -> Iterator[Finding]:
    if found.epoch is None or len(found.targets) != 1:
        return
    what = f"it is a member of an ensemble: every member must be restored, with epoch {found.epoch}"
    remedy = "stop all members, restore each from this backup by one plan, and start none before all are restored"
    yield warning("ensemble-member", what, remedy, where=str(found.targets[0][0].data_dir))


def numbers_beside(where: str, files: Sequence[str]) -> Iterator[Finding]:
    """What an operator must know who finds an epoch, or a zxid, in the plan that no server has."""
    if files:
        what = f"files beside version-2 hold later numbers than all in it, and count: {', '.join(files)}"
        remedy = "no harm where servers ran on them; if none wrote them, move them away and plan again"
        yield Finding(code="numbers-beside", severity=Severity.NOTE, where=where, what=what, remedy=remedy)


def _about(place: ServerDirectories, held: TargetContents) -> Iterator[Finding]:
    where = str(place.data_dir)
    yield from numbers_beside(where, held.raised_by)
    if held.strays:
        what = f"a server reads them and none wrote them: {', '.join(held.strays)}"
        yield warning("stray-files", what, "they are moved away with the old data", where)
    if not held.exactly:
        what = "a log that is replaced is damaged: how far it went is only estimated, and rather too high"
        yield Finding(code="replaced-damaged", severity=Severity.NOTE, where=where, what=what)
