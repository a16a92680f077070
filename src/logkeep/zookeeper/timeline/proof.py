"""Plan and replay a path, and accept it only if the digests match; used by restore and verification.

If members' logs disagree on the end of an epoch and no majority decides, the digests do: the other ends are tried one
after the other, and the one that they prove is used. If no digest matches at all, the snapshot itself is in doubt, and
the next older one is tried.
"""

from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from functools import partial

from logkeep.formats.zookeeper.names import epoch_of, hex_zxid
from logkeep.model.segments import Proof
from logkeep.zookeeper.model.archived import BackupView
from logkeep.zookeeper.timeline.holdings import Border, Holdings
from logkeep.zookeeper.timeline.plan import (
    AWAITS_DIGEST,
    END_OPEN,
    EPOCH_BELIEVED,
    NO_DIGEST,
    TAIL_AGREED,
    TAIL_UNPROVEN,
    Interval,
    Moment,
    RestorePath,
    RestoreRefused,
    Target,
    TransactionTimes,
    plan,
    reachable,
)
from logkeep.zookeeper.timeline.reachable import reaches_of
from logkeep.zookeeper.timeline.replay import ReplayedTree, replay, unproven
from logkeep.zookeeper.timeline.timeline import end_is_open, line_of

_MOST_TRIES = 16
MISMATCH = "the digests of the server contradict it"
_STRENGTH = {
    NO_DIGEST: Proof.BOUNDED,
    TAIL_AGREED: Proof.BOUNDED,
    AWAITS_DIGEST: Proof.UNPROVEN,
    EPOCH_BELIEVED: Proof.UNPROVEN,
    TAIL_UNPROVEN: Proof.UNPROVEN,
    END_OPEN: Proof.UNPROVEN,
}


@dataclass(frozen=True)
class ProvenPath:
    """A path whose replay contradicts no digest, and the replayed tree."""

    path: RestorePath
    replayed: ReplayedTree
    holdings: Holdings
    """With the ends of epochs that the replay proved."""


def proven_path(
    view: BackupView,
    holdings: Holdings,
    target: Target,
    moments: TransactionTimes,
    *,
    believe: bool = False,
    accept_mismatch: bool = False,
) -> ProvenPath | RestoreRefused:
    """`believe`: accept unproven ends of epochs. `accept_mismatch`: accept a tree that digests contradict. Both are
    labelled. Raises Damaged if the bytes are not those that were archived."""
    believed, reason, spent = holdings, None, set[tuple[int, int]]()
    for _ in range(_MOST_TRIES):
        path = plan(believed, target, moments, believe=believe)
        if isinstance(path, RestoreRefused):
            return reason or path
        replayed = replay(view, path)
        doubtful = () if believe else unproven(path, replayed)
        fits = replayed.first_mismatch is None and not _unsettled(path, replayed)
        if (fits or accept_mismatch) and not doubtful:
            return ProvenPath(labelled(path, replayed), replayed, believed)
        reason = reason or _refusal(path, replayed, doubtful, believed, moments)
        spent |= {(border.before, border.after) for border in path.borders}
        another = _next_try(path, replayed, spent, believed)
        if another is None:
            return reason
        believed = another
    return reason or RestoreRefused("too many ends of epochs are in doubt", ())


def labelled(path: RestorePath, replayed: ReplayedTree) -> RestorePath:
    """With what the replay proved: a matching digest makes a bound unnecessary; without one a path is bounded at
    best."""
    weak = {label: _STRENGTH[label] for label in path.labels}
    if replayed.proven_until is not None:
        weak.pop(NO_DIGEST, None)
        weak.pop(AWAITS_DIGEST, None)
    elif path.base.snapshot is not None:
        weak.setdefault(NO_DIGEST, Proof.BOUNDED)
    if replayed.first_mismatch is not None or _unsettled(path, replayed):
        weak[MISMATCH] = Proof.UNPROVEN
    order = [Proof.UNPROVEN, Proof.BOUNDED]
    proof = next((proof for proof in order if proof in weak.values()), Proof.PROVEN)
    return replace(path, proof=proof, labels=tuple(weak))


def _unsettled(path: RestorePath, replayed: ReplayedTree) -> bool:
    """No digest matched, and nothing else shows where the tree of the snapshot is exact."""
    return path.base.awaits_digest and replayed.proven_until is None


def _next_try(
    path: RestorePath, replayed: ReplayedTree, spent: set[tuple[int, int]], holdings: Holdings
) -> Holdings | None:
    """What to try next: another end of an epoch or, if no digest matched, the path without this snapshot."""
    other = _other_end(path, replayed, spent)
    if other is not None:
        return replace(holdings, ends={**holdings.ends, other[1]: other[0]})
    wrong = replayed.first_mismatch is not None or _unsettled(path, replayed)
    if wrong and replayed.proven_until is None and path.base.snapshot is not None:
        return replace(holdings, snapshots=tuple(each for each in holdings.snapshots if each != path.base.snapshot))
    return None


def _other_end(path: RestorePath, replayed: ReplayedTree, spent: set[tuple[int, int]]) -> tuple[int, int] | None:
    """Another possible last transaction of an epoch, at a border where the digests stop to match."""
    wrong, proven = replayed.first_mismatch, replayed.proven_until
    if wrong is None:
        return None
    for border in path.borders:
        if border.after <= wrong.zxid and (proven is None or border.after > proven):
            untried = [before for before in border.otherwise if (before, border.after) not in spent]
            if untried:
                return untried[0], border.after
    return None


def _refusal(
    path: RestorePath,
    replayed: ReplayedTree,
    doubtful: tuple[Border, ...],
    holdings: Holdings,
    moments: TransactionTimes,
) -> RestoreRefused:
    line = line_of(holdings, path.history)
    intervals = reachable(holdings, line, reaches_of(holdings, line), moments)
    doubted = partial(end_is_open, holdings, line)
    if (wrong := replayed.first_mismatch) is not None:
        what = f"the digest that the server wrote at {hex_zxid(wrong.zxid)} is not the one of the replayed tree"
        return RestoreRefused(what, tuple(_clipped(intervals, replayed.proven_until, wrong.zxid, doubted)))
    if not doubtful:
        return RestoreRefused("no digest on the way shows where its tree is exact", intervals)
    border = doubtful[0]
    what = f"nothing proves that epoch {epoch_of(border.before)} ended with {hex_zxid(border.before)}"
    return RestoreRefused(what, tuple(_clipped(intervals, border.before, border.after, doubted)))


def _clipped(
    intervals: tuple[Interval, ...], good: int | None, bad: int, doubted: Callable[[int], bool]
) -> Iterator[Interval]:
    """Intervals cut at the first mismatch; those that begin after it were not replayed and stay."""
    for interval in intervals:
        if not interval.first.zxid < bad <= interval.last.zxid:
            yield interval
        elif good is not None and good >= interval.first.zxid:
            yield replace(interval, last=Moment(good, None), end_is_open=doubted(good))
