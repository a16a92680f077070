"""Verification level `replay`: every reachable transaction is applied, and every digest compared.

Each run of reachable transactions is replayed once, from its oldest snapshot to its end. All other snapshots in it are
replayed only to the end of their own window, and must then have the digest of the long replay at that point: this
proves them even if no server wrote digests.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace

from logkeep.errors import Damaged
from logkeep.formats.zookeeper.names import hex_zxid
from logkeep.model.findings import Severity
from logkeep.zookeeper.model.archived import BackupView
from logkeep.zookeeper.model.findings import Class, FileFinding
from logkeep.zookeeper.timeline.holdings import Holdings
from logkeep.zookeeper.timeline.plan import RestoreRefused, ToEnd, TransactionTimes, path_along
from logkeep.zookeeper.timeline.proof import proven_path
from logkeep.zookeeper.timeline.reachable import Reach, reaches_of
from logkeep.zookeeper.timeline.replay import ReplayedTree, replay, unproven
from logkeep.zookeeper.timeline.timeline import line_of

_DO_NOT_USE = "nothing is restored from it; an older point, another member or an earlier backup may be undamaged"


@dataclass(frozen=True)
class ReplayChecks:
    seen: tuple[FileFinding, ...] = ()
    transactions: int = 0
    digests_compared: int = 0
    end_proven: bool = True
    holdings: Holdings | None = None
    """With the ends of epochs that digests proved."""


def check_replay(view: BackupView, holdings: Holdings, moments: TransactionTimes) -> ReplayChecks:
    decided, end_proven = _decide_ends(view, holdings, moments)
    checks = _Checks(view, decided, moments)
    for history in decided.histories:
        line = line_of(decided, history)
        for family in _families(reaches_of(decided, line)):
            checks.replay(history, family)
    return ReplayChecks(tuple(checks.seen), checks.transactions, checks.compared, end_proven, decided)


def _decide_ends(view: BackupView, holdings: Holdings, moments: TransactionTimes) -> tuple[Holdings, bool]:
    """Let digests decide between possible ends of epochs first: everything else depends on it."""
    if not holdings.histories:
        return holdings, False
    try:
        end = proven_path(view, holdings, ToEnd(), moments)
    except Damaged:
        return holdings, False
    return (holdings, False) if isinstance(end, RestoreRefused) else (end.holdings, True)


def _families(reaches: Sequence[Reach]) -> Iterator[list[Reach]]:
    """Reaches that end at the same transaction, the longest first."""
    ends = sorted({reach.last for reach in reaches})
    for end in ends:
        yield sorted((r for r in reaches if r.last == end), key=lambda r: (r.first, r.base.snapshot is None))


class _Checks:
    def __init__(self, view: BackupView, holdings: Holdings, moments: TransactionTimes) -> None:
        self._view, self._holdings, self._moments = view, holdings, moments
        self.seen: list[FileFinding] = []
        self.transactions = self.compared = 0

    def replay(self, history: str, family: Sequence[Reach]) -> None:
        oldest, others = family[0], family[1:]
        long = self._replay_one(history, oldest, oldest.last, frozenset(reach.first for reach in others))
        for reach in others:
            short = self._replay_one(history, reach, reach.first, frozenset({reach.first}))
            if long is not None and short is not None:
                self._compare(reach, long, short)

    def _replay_one(self, history: str, reach: Reach, until: int, note_at: frozenset[int]) -> ReplayedTree | None:
        line = line_of(self._holdings, history)
        path = path_along(self._holdings, line, reach, until, self._moments)
        where = _base_name(reach)
        try:
            replayed = replay(self._view, path, note_at=note_at)
        except Damaged as error:
            self.seen.append(_damage(Class.REPLAY_FAILED, where, str(error), reach.base.zxid))
            return None
        self.transactions += replayed.transactions
        self.compared += replayed.digests_compared
        self._judge(where, replayed)
        for border in unproven(path, replayed):
            what = f"nothing proves that an epoch ended with {hex_zxid(border.before)} before {hex_zxid(border.after)}"
            self.seen.append(
                FileFinding(
                    kind=Class.EPOCH_END_UNPROVEN,
                    severity=Severity.WARNING,
                    where=where,
                    what=what,
                    remedy="back up a majority of the voters",
                    zxid=border.before,
                )
            )
        return replayed

    def _judge(self, where: str, replayed: ReplayedTree) -> None:
        wrong = replayed.first_mismatch
        if wrong is not None:
            what = (
                f"at {hex_zxid(wrong.zxid)} the server wrote the digest {wrong.written:x}, and the replay has "
                f"{wrong.replayed:x}: transactions are missing or changed before it"
            )
            self.seen.append(_damage(Class.DIGEST_MISMATCH, where, what, replayed.proven_until))

    def _compare(self, reach: Reach, long: ReplayedTree, short: ReplayedTree) -> None:
        at = reach.first
        if long.digests_at.get(at) != short.digests_at.get(at):
            what = f"at {hex_zxid(at)} its tree is not the one that an older snapshot leads to"
            found = _damage(Class.TREES_DIFFER, _base_name(reach), what, reach.base.zxid)
            contents = long.contents_at.get(at), short.contents_at.get(at)
            if contents[0] is not None and contents[0] == contents[1]:
                # no damage: servers before 3.6 themselves count children again in the window
                what += ", in counters of children only"
                found = replace(found, severity=Severity.WARNING, what=what, remedy="")
            self.seen.append(found)


def _base_name(reach: Reach) -> str:
    snapshot = reach.base.snapshot
    return "the empty tree" if snapshot is None else f"{snapshot.member}/{snapshot.name}"


def _damage(kind: Class, where: str, what: str, zxid: int | None) -> FileFinding:
    return FileFinding(kind=kind, severity=Severity.DAMAGE, where=where, what=what, remedy=_DO_NOT_USE, zxid=zxid)
