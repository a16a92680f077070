"""Compare the archived trees of two moments: by the digests that servers wrote, else by replaying both.

Servers from 3.6 on write a digest of their whole tree into every transaction. If both sides are read from the same
archived bytes and end with the same digest, nothing has to be replayed. Equal digests alone do not prove that members
have equal trees: followers log the leader's digest, whatever their own tree is. Nor do they prove that two moments are
equal: they cover neither ACLs nor the nodes below `/zookeeper`, so these nodes are always replayed. A digest does not
show whether a node exists: for a path one of two equal trees is replayed.
"""

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import islice
from typing import BinaryIO, Literal

from logkeep.errors import UsageError
from logkeep.formats.zookeeper import shown
from logkeep.formats.zookeeper.txnlog import digest_in, tables
from logkeep.zookeeper.history.tree_diff import DifferenceKind, NodeDifference, differences
from logkeep.zookeeper.model.archived import ArchivedLog, ArchivedSnapshot, BackupView, Member
from logkeep.zookeeper.model.paths import is_system
from logkeep.zookeeper.model.tree import Tree
from logkeep.zookeeper.timeline.plan import RestorePath, RestoreRefused, Slice, Target, plan
from logkeep.zookeeper.timeline.survey import LogTimes, survey
from logkeep.zookeeper.timeline.verified_path import VerifiedPath, choose


@dataclass(frozen=True)
class TreeSide:
    view: BackupView
    target: Target
    believe: bool = False
    """Accept unproven ends of epochs."""


@dataclass(frozen=True)
class TreeComparison:
    before: RestorePath
    after: RestorePath
    by: Literal["digest", "replay"]
    counted: Counter[DifferenceKind]
    """Number of nodes by kind of difference; one node may have several kinds."""
    total: int
    differences: tuple[NodeDifference, ...]
    """The first ones."""


@dataclass(frozen=True)
class OneMember:
    """The files of one member, as a backup of its own."""

    whole: BackupView
    member: str

    @property
    def name(self) -> str:
        return f"{self.whole.name}:{self.member}"

    @property
    def members(self) -> Sequence[Member]:
        return tuple(one for one in self.whole.members if one.name == self.member)

    @property
    def snapshots(self) -> Sequence[ArchivedSnapshot]:
        return tuple(one for one in self.whole.snapshots if one.member == self.member)

    @property
    def logs(self) -> Sequence[ArchivedLog]:
        return tuple(one for one in self.whole.logs if one.member == self.member)

    def open(self, kept: ArchivedSnapshot | ArchivedLog) -> BinaryIO:
        return self.whole.open(kept)

    def salvage(self, kept: ArchivedLog) -> BinaryIO:
        return self.whole.salvage(kept)

    def unsealed(self, kept: ArchivedSnapshot | ArchivedLog) -> bool:
        return self.whole.unsealed(kept)


def one_member(view: BackupView, member: str) -> OneMember:
    known = sorted(one.name for one in view.members)
    if member not in known:
        raise UsageError("this member is not in the backup", subject=member, remedy=f"choose among {', '.join(known)}")
    return OneMember(view, member)


def compare(before: TreeSide, after: TreeSide, below: bytes, most: int) -> TreeComparison:
    """`below`: see `tree_diff.differences`.

    Raises RestoreFailed where a moment cannot be reached, and UsageError where neither tree has the node: nothing would
    be compared, and a typing error would read as `equal`.
    """
    one, other = _plan_path(before), _plan_path(after)
    shortcut = not is_system(below) and _rests_on(one) == _rests_on(other)
    digest = written_digest(before.view, one) if shortcut else None
    if digest is not None and digest == written_digest(after.view, other):
        if below:  # the trees are equal, so one of them shows whether the node exists
            _require(below, [_chosen(before).replayed.tree])
        return TreeComparison(one, other, "digest", Counter(), 0, ())
    chosen = [_chosen(side) for side in (before, after)]
    trees = [each.replayed.tree for each in chosen]
    _require(below, trees)
    counted, total = Counter[DifferenceKind](), 0
    for each in differences(trees[0], trees[1], below):
        total += 1
        counted.update(each.kinds)
    first = tuple(islice(differences(trees[0], trees[1], below), most))
    return TreeComparison(chosen[0].path, chosen[1].path, "replay", counted, total, first)


def _require(below: bytes, trees: Sequence[Tree]) -> None:
    if not any(below in tree.nodes for tree in trees):
        remedy = "name a node that one of them has; `logkeep zookeeper history` shows when it existed"
        raise UsageError("this node is in neither of the two trees", subject=shown(below), remedy=remedy)


def _chosen(side: TreeSide) -> VerifiedPath:
    """Of one member also a tree that its digests contradict, with a label: the comparison shows what differs."""
    return choose(side.view, side.target, believe=side.believe, accept_mismatch=isinstance(side.view, OneMember))


def _plan_path(side: TreeSide) -> RestorePath:
    path = plan(survey(side.view), side.target, LogTimes(side.view), believe=side.believe)
    if isinstance(path, RestoreRefused):
        raise path.error(side.view.name)
    return path


def _rests_on(path: RestorePath) -> tuple[object, ...]:
    """The bytes that a replay would read, by their hashes."""
    base = path.base.snapshot
    begins = (path.base.zxid, None if base is None else base.sha256, path.with_config)
    return (begins, *((piece.log.sha256, piece.first, piece.last) for piece in path.slices))


def written_digest(view: BackupView, path: RestorePath) -> int | None:
    """The digest of the tree at the end of a path that a server wrote; None where none did."""
    if path.slices:
        return _logged_digest(view, path.slices[-1])
    base = path.base.snapshot
    return base.digest if base is not None and base.digest_zxid == path.until else None


def _logged_digest(view: BackupView, piece: Slice) -> int | None:
    log = next(one for one in view.logs if _same(one, piece.log))
    with view.open(log) as source:
        return digest_in(tables(source), piece.last)


def _same(one: ArchivedLog, other: ArchivedLog) -> bool:
    """By identity: a survey fills in other fields of a log."""
    return (one.member, one.history, one.first) == (other.member, other.history, other.first)
