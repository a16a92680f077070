"""A verified path to a point in time: planned, every byte read and compared, replayed, digests compared.

A damaged object is left out, and another path is searched: another snapshot, another member.
"""

from dataclasses import dataclass
from typing import BinaryIO

from logkeep.errors import RestoreFailed
from logkeep.formats.zookeeper.names import hex_zxid
from logkeep.zookeeper.model.archived import ArchivedFile, ArchivedLog, ArchivedSnapshot, BackupView, Member
from logkeep.zookeeper.model.findings import FileFinding
from logkeep.zookeeper.timeline.object_check import ObjectChecks, check_data
from logkeep.zookeeper.timeline.plan import RestorePath, RestoreRefused, Target, plan
from logkeep.zookeeper.timeline.proof import proven_path
from logkeep.zookeeper.timeline.replay import ReplayedTree
from logkeep.zookeeper.timeline.survey import LogTimes, survey


@dataclass(frozen=True)
class VerifiedPath:
    path: RestorePath
    replayed: ReplayedTree
    passed_over: tuple[FileFinding, ...]
    """Damage that the path avoids."""


@dataclass(frozen=True)
class _Along:
    """The objects of one path, as a view of their own."""

    whole: BackupView
    snapshots: tuple[ArchivedSnapshot, ...]
    logs: tuple[ArchivedLog, ...]

    @property
    def name(self) -> str:
        return self.whole.name

    @property
    def members(self) -> tuple[Member, ...]:
        return tuple(self.whole.members)

    def open(self, kept: ArchivedFile) -> BinaryIO:
        return self.whole.open(kept)

    def salvage(self, kept: ArchivedLog) -> BinaryIO:
        return self.whole.salvage(kept)

    def unsealed(self, _kept: ArchivedFile) -> bool:
        """Irrelevant here: the content that is restored is undamaged."""
        return False


def choose(view: BackupView, target: Target, *, believe: bool = False, accept_mismatch: bool = False) -> VerifiedPath:
    """Raises RestoreFailed, which names what can be restored instead, also if damage leaves only an earlier moment.

    `accept_mismatch`: if there is no other path, accept a tree that the digests of the server contradict.
    """
    unusable, seen, good = list[ArchivedFile](), list[FileFinding](), set[ArchivedFile]()
    moments, meant = LogTimes(view), 0
    while True:
        holdings = survey(view, without=unusable)
        path = plan(holdings, target, moments, believe=believe)
        if isinstance(path, RestoreRefused):
            raise path.error(view.name)
        meant = max(meant, path.until)
        along = _along(view, path, good)
        checks = check_data(along, ObjectChecks(), lambda _: None)
        if not checks.unusable:
            break
        checked: set[ArchivedFile] = {*along.snapshots, *along.logs}
        good |= checked - set(checks.unusable)
        unusable += checks.unusable
        seen += checks.seen
    found = proven_path(view, holdings, target, moments, believe=believe)
    if isinstance(found, RestoreRefused) and accept_mismatch:
        found = proven_path(view, holdings, target, moments, believe=believe, accept_mismatch=True)
    if isinstance(found, RestoreRefused):
        raise found.error(view.name)
    _check_moment(view, meant, found.path.until)
    return VerifiedPath(found.path, found.replayed, tuple(seen))


def _check_moment(view: BackupView, meant: int, reached: int) -> None:
    """The caller asked for what the backup claims to hold, not for what is left of it."""
    if reached < meant:
        raise RestoreFailed(
            f"it should reach to {hex_zxid(meant)}, and only {hex_zxid(reached)} can be proven: something is damaged",
            subject=view.name,
            remedy=f"run verify to see what; --to-zxid {hex_zxid(reached)} restores what is left",
        )


def _along(view: BackupView, path: RestorePath, good: set[ArchivedFile]) -> _Along:
    """The files of a path as the view has them: a survey adds borders to logs."""
    wanted = {(piece.log.member, piece.log.history, piece.log.first) for piece in path.slices}
    base = () if path.base.snapshot is None or path.base.snapshot in good else (path.base.snapshot,)
    logs = (log for log in view.logs if (log.member, log.history, log.first) in wanted)
    return _Along(view, base, tuple(log for log in logs if log not in good))
