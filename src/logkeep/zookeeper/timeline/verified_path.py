"""The way to a point in time that holds up: planned, every byte of it read and compared, replayed, digests compared.

An object that is not what was kept is left out, and another way is looked for: another snapshot, another member.
"""

from dataclasses import dataclass
from typing import BinaryIO

from logkeep.errors import RestoreFailed
from logkeep.formats.zookeeper.names import hex_zxid
from logkeep.model.work import Progress
from logkeep.zookeeper.model.archived import ArchivedLog, ArchivedSnapshot, BackupView, Member
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
    """Damage that another way leads around."""


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

    def open(self, kept: ArchivedSnapshot | ArchivedLog) -> BinaryIO:
        return self.whole.open(kept)

    def salvage(self, kept: ArchivedLog) -> BinaryIO:
        return self.whole.salvage(kept)

    def unsealed(self, _kept: ArchivedSnapshot | ArchivedLog) -> bool:
        """No matter: what is restored is whole."""
        return False


def choose(
    view: BackupView,
    target: Target,
    *,
    believe: bool = False,
    accept_mismatch: bool = False,
    progress: Progress = lambda _: None,
) -> VerifiedPath:
    """Raises RestoreFailed, with what can be restored to instead: also where damage leaves only an earlier moment.

    `accept_mismatch`: where nothing else leads there, also a tree that the digests of the server contradict.
    """
    unusable, seen, good = (
        list[ArchivedLog | ArchivedSnapshot](),
        list[FileFinding](),
        set[ArchivedLog | ArchivedSnapshot](),
    )
    moments, meant = LogTimes(view), 0
    while True:
        holdings = survey(view, without=unusable)
        path = plan(holdings, target, moments, believe=believe)
        if isinstance(path, RestoreRefused):
            raise path.error(view.name)
        meant = max(meant, path.until)
        along = _along(view, path, good)
        checks = check_data(along, ObjectChecks(), progress)
        if not checks.unusable:
            break
        looked_at: set[ArchivedLog | ArchivedSnapshot] = {*along.snapshots, *along.logs}
        good |= looked_at - set(checks.unusable)
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
    """What the backup holds by its own account is what was asked for, not what is left of it."""
    if reached < meant:
        raise RestoreFailed(
            f"it should reach to {hex_zxid(meant)}, and only {hex_zxid(reached)} can be proven: something is damaged",
            subject=view.name,
            remedy=f"run verify to see what; --to-zxid {hex_zxid(reached)} restores what is left",
        )


def _along(view: BackupView, path: RestorePath, good: set[ArchivedLog | ArchivedSnapshot]) -> _Along:
    """As the view has them: a survey adds to what it says of logs."""
    wanted = {(piece.log.member, piece.log.history, piece.log.first) for piece in path.slices}
    base = () if path.base.snapshot is None or path.base.snapshot in good else (path.base.snapshot,)
    logs = (log for log in view.logs if (log.member, log.history, log.first) in wanted)
    return _Along(view, base, tuple(log for log in logs if log not in good))
