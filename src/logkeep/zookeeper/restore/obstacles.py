"""The refusals and the findings of a restore, decided from all that was read before it. Pure."""

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass

from logkeep.errors import LogkeepError, TargetUnsafe
from logkeep.formats.zookeeper.names import SnapshotPacking, hex_zxid, parse_name
from logkeep.model.findings import Finding, Severity
from logkeep.model.plurals import plural
from logkeep.zookeeper.restore.limits import TreeContent, parse_version, tree_findings, tree_obstacles, warning
from logkeep.zookeeper.restore.target.directories import ServerDirectories
from logkeep.zookeeper.restore.target.running_server import RunningServers
from logkeep.zookeeper.restore.values import Form, TargetContents, ZooKeeperRestoreOptions
from logkeep.zookeeper.timeline.plan import RestorePath, shown_time
from logkeep.zookeeper.timeline.replay import Mismatch

_PACKED_SINCE = (3, 6)


@dataclass(frozen=True, kw_only=True)
class RestoreSituation:
    options: ZooKeeperRestoreOptions
    path: RestorePath
    content: TreeContent
    mismatch: Mismatch | None
    targets: tuple[tuple[ServerDirectories, TargetContents], ...]
    seen: RunningServers
    epoch: int | None
    highest_used: int
    """The largest known zxid of another tree, in the targets and in the backup."""
    members: int
    """Of the ensemble, as far as the backup knows."""
    separate_logs: str
    """The log directory of a server of the backup, if it is not the data directory."""
    surveyed: int
    """Number of targets, and of members that were surveyed on other hosts; all members where a plan was agreed."""
    missing_acls: int
    """See `ReplayedTree`."""


def refusals(found: RestoreSituation) -> Iterator[LogkeepError]:
    yield from found.seen.refusals()
    for place, held in found.targets:
        yield from logs_elsewhere(place, held, found.separate_logs)
    yield from tree_obstacles(found.content, found.options)
    yield from _files_too_new(found)
    yield from _members_not_surveyed(found)


def logs_elsewhere(place: ServerDirectories, held: TargetContents, separate_logs: str = "") -> Iterator[LogkeepError]:
    """Logs that stay in an unnamed dataLogDir would be replayed on the restored tree, also if dataDir was emptied.

    `separate_logs`: the log directory of a server of the backup, if it is known.
    """
    if held.logs or place.log_dir_named:
        return
    remedy = "give the dataLogDir of zoo.cfg; if it has none, give dataDir twice"
    if held.snapshots and held.highest_zxid:
        what = "it holds snapshots and no logs: are the logs in another directory?"
        yield TargetUnsafe(what, subject=str(place.data.path), remedy=remedy)
    elif separate_logs:
        what = f"the server of this backup had its logs in another directory ({separate_logs})"
        yield TargetUnsafe(what, subject=str(place.data.path), remedy=remedy)


def unchecked_log_dirs(targets: Iterable[tuple[ServerDirectories, TargetContents]]) -> Iterator[str]:
    """An empty directory does not show whether the logs of its server are in another directory."""
    for place, held in targets:
        if held.empty and not place.log_dir_named:
            yield f"no log directory was named for {place.data_dir}: logs in a dataLogDir would be replayed"


def _files_too_new(found: RestoreSituation) -> Iterator[LogkeepError]:
    version, base = parse_version(found.options.version), found.path.base.snapshot
    if found.options.form is Form.EXACT or version is None or version >= _PACKED_SINCE:
        return
    parsed = None if base is None else parse_name(base.name)
    remedy = "restore an exact snapshot instead of the original files"
    if parsed is not None and parsed.packing is not SnapshotPacking.PLAIN:
        what = f"ZooKeeper {found.options.version} cannot read a packed snapshot"
        yield TargetUnsafe(what, subject=hex_zxid(parsed.zxid), remedy=remedy)
    elif version < (3, 5) and any(piece.log.digests is not False for piece in found.path.slices):
        what = f"ZooKeeper {found.options.version} may not support all transactions of these logs"
        yield TargetUnsafe(what, remedy=remedy)


def _members_not_surveyed(found: RestoreSituation) -> Iterator[LogkeepError]:
    """A member that was not surveyed may have a later epoch; then its old data would replace the restored data."""
    if found.epoch is None or found.options.min_epoch or found.surveyed >= max(found.members, 2):
        return
    yield TargetUnsafe(
        f"only {found.surveyed} of the ensemble's members could be checked: another may have a later epoch",
        remedy="survey every host with `logkeep zookeeper restore survey` and make one plan of all; or give the "
        "highest epoch that any of them has (currentEpoch in version-2) with --min-epoch; here it is "
        f"{found.epoch - 1}",
    )


def findings_of(found: RestoreSituation) -> Iterator[Finding]:
    path, options = found.path, found.options
    if found.mismatch is not None:
        what = f"from here on the tree differs from the server's tree; this was accepted: {options.accept_mismatch}"
        where = hex_zxid(found.mismatch.zxid)
        yield Finding(code="digest-mismatch", severity=Severity.DAMAGE, where=where, what=what)
    yield from tree_findings(found.content, options)
    for place, held in found.targets:
        yield from _about_target(place, held)
    if path.asked_ms is not None:
        what = (
            f"the backup ends at {path.last_restored}: changes between then and {shown_time(path.asked_ms)} are missing"
        )
        yield warning("time-behind-the-end", what, "if that matters, restore from a later backup")
    for label in path.labels:
        yield warning("proof", label, "", where=hex_zxid(path.until))
    yield from _about_others(found)
    if options.form is Form.ORIGINAL:
        yield from _about_original_files(found)


def _about_original_files(found: RestoreSituation) -> Iterator[Finding]:
    until, base = found.path.until, found.path.base.snapshot
    if found.highest_used > until:
        what = f"zxids above {hex_zxid(until)} were in use, and will be used again"
        yield warning("zxids-reused", what, "restore an exact snapshot: its zxid is above them")
    if found.epoch is not None:
        what = "a member that is not restored and has a later snapshot keeps that tree, whatever the leader has"
        yield warning("forgotten-members", what, "restore an exact snapshot: it makes the leader send the whole tree")
    if found.missing_acls and base is not None:
        what = f"it lacks the ACLs of {plural(found.missing_acls, 'node')}: ZooKeeper 3.9.5 may refuse to start from it"
        yield warning("missing-acls", what, "restore an exact snapshot: it holds all of them", where=base.name)


def _about_others(found: RestoreSituation) -> Iterator[Finding]:
    if found.epoch is None or len(found.targets) != 1:
        return
    what = f"it is a member of an ensemble: every member must be restored, with epoch {found.epoch}"
    remedy = "stop all members, restore all of them with one plan, then start them"
    yield warning("ensemble-member", what, remedy, where=str(found.targets[0][0].data_dir))


def numbers_beside(where: str, files: Sequence[str]) -> Iterator[Finding]:
    """Explains a zxid or an epoch of the plan that no server has."""
    if files:
        what = f"files beside version-2 hold later numbers than its own files, and are counted: {', '.join(files)}"
        remedy = "correct if servers ran on these files; otherwise move them away and plan again"
        yield Finding(code="numbers-beside", severity=Severity.NOTE, where=where, what=what, remedy=remedy)


def _about_target(place: ServerDirectories, held: TargetContents) -> Iterator[Finding]:
    where = str(place.data_dir)
    yield from numbers_beside(where, held.raised_by)
    if held.strays:
        what = f"a server would read these files, but no server wrote them: {', '.join(held.strays)}"
        yield warning("stray-files", what, "they are moved away with the old data", where)
    if not held.exactly:
        what = "a log that is replaced is damaged: its last zxid is an upper estimate"
        yield Finding(code="replaced-damaged", severity=Severity.NOTE, where=where, what=what)
