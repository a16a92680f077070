"""Builds the line of a history from the logs of all members: what joins, what is missing, what was never committed.

Pure. It is decided from the newest epoch backwards, because the transaction before the first one of an epoch is where
its leader began: what a member has after that point in an older epoch was never part of the history.
"""

from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence

from logkeep.formats.zookeeper.names import counter_of, epoch_of
from logkeep.model.segments import Proof
from logkeep.zookeeper.model.archived import ArchivedLog, Member
from logkeep.zookeeper.model.spans import Span, contains, joined
from logkeep.zookeeper.timeline.holdings import Border, BorderProof, Dispute, HeldSpan, Holdings, LogSpan, Timeline

_LEAST_VOTERS = 3
"""Assumed for an ensemble of which not all members were backed up. Two voters need the same majority."""
_Held = Mapping[int, Sequence[Span]]
"""Archived transactions of each epoch, as spans without a hole."""


def quorum_of(members: Collection[Member], voters: int | None) -> int:
    """How many voters must agree. If not all members were backed up, the smallest possible number is assumed."""
    numbers = [voters, *(member.voters for member in members)]
    known = max((number for number in numbers if number is not None), default=None)
    if known is None and any(member.role == "standalone" for member in members):
        return 1
    voting = sum(member.role != "observer" for member in members)
    return (known or max(voting, _LEAST_VOTERS)) // 2 + 1


def spans_of(log: ArchivedLog, disputed: Collection[Dispute] = ()) -> Iterator[LogSpan]:
    """A log as spans of one epoch each, without disputed records."""
    inside = [border for border in log.borders if border[1] != log.first]
    starts = [log.first, *(after for _, after in inside)]
    ends = [*(before for before, _ in inside), log.last]
    for first, last in zip(starts, ends, strict=True):
        at = first
        for bad in sorted(disputed, key=lambda dispute: dispute.first):
            if bad.last < at or bad.first > last:
                continue
            if at < bad.first:
                yield LogSpan(at, bad.first - 1, log)
            at = bad.last + 1
        if at <= last:
            yield LogSpan(at, last, log)


def line_of(holdings: Holdings, history: str, only: Collection[str] | None = None) -> Timeline:
    """`only`: use the logs of these members alone."""
    logs = [log for log in holdings.logs if log.history == history and (only is None or log.member in only)]
    alone = only is not None and len(only) == 1
    disputed = [] if alone else [dispute for dispute in holdings.disputed if dispute.history == history]
    spans = sorted((span for log in logs for span in spans_of(log, disputed)), key=lambda s: (s.first, s.last))
    held = _held_by_epoch(spans)
    judge = _Judge(holdings, logs, held)
    stretches, ends = _back_from_the_end(held, judge)
    return Timeline(history, stretches, tuple(spans), tuple(_beyond(held, stretches, ends)), tuple(judge.seen()))


def end_is_open(holdings: Holdings, line: Timeline, zxid: int) -> bool:
    """Whether the end of an epoch is missing, and nothing archived shows that this transaction of it was committed.

    A member that was synchronised by a snapshot may keep, before the hole, proposals that only it had. What a majority
    has was committed.
    """
    epoch = epoch_of(zxid)
    later = next((stretch for stretch in line.stretches if epoch_of(stretch.first) > epoch), None)
    if later is None or later.border is not None or known_committed(holdings, line, zxid):
        return False
    holders = {log.member for log in _logs_from(line, zxid)}
    return len(holders) < quorum_of(holdings.members, holdings.voters)


def known_committed(holdings: Holdings, line: Timeline, zxid: int) -> bool:
    """Committed is what a snapshot contains, what a server reported as processed, and what an observer has."""
    snapshots = (each for each in holdings.snapshots if each.history == line.history)
    applied = (found for each in snapshots for found in (each.zxid, each.fuzzy_end) if found is not None)
    if any(epoch_of(found) == epoch_of(zxid) and found >= zxid for found in applied):
        return True
    watching = {member.name for member in holdings.members if member.role == "observer"}
    return any(log.proof is Proof.PROVEN or log.member in watching for log in _logs_from(line, zxid))


def _logs_from(line: Timeline, zxid: int) -> list[ArchivedLog]:
    """Logs that have this transaction, or later ones of its epoch."""
    return [span.log for span in line.spans if epoch_of(span.first) == epoch_of(zxid) and span.last >= zxid]


def _held_by_epoch(spans: Iterable[LogSpan]) -> _Held:
    held: dict[int, list[Span]] = {}
    for span in spans:
        held.setdefault(epoch_of(span.first), []).append((span.first, span.last))
    return {epoch: joined(runs) for epoch, runs in held.items()}


class _Judge:
    """Decides which transaction came directly before the first one of an epoch."""

    def __init__(self, holdings: Holdings, logs: Sequence[ArchivedLog], held: _Held) -> None:
        self._held, self._ends = held, holdings.ends
        self._quorum = quorum_of(holdings.members, holdings.voters)
        self._watching = {member.name for member in holdings.members if member.role == "observer"}
        self._seen: dict[int, dict[int, set[str]]] = {}
        self._silent: set[int] = set()
        """First transactions of epochs that are known to carry no digest."""
        for log in logs:
            for before, after in log.borders:
                self._seen.setdefault(after, {}).setdefault(before, set()).add(log.member)
            if log.digests is False:
                self._silent.update(after for after in _epoch_starts(log))

    def border(self, after: int) -> Border | None:
        votes = {before: who for before, who in self._seen.get(after, {}).items() if self._is_held(before)}
        below = [epoch for epoch in self._held if epoch < epoch_of(after)]
        if below:
            votes.setdefault(self._held[max(below)][-1][1], set())
        if not votes:
            return None
        before, proof = self._choose(after, votes)
        otherwise = tuple(sorted(votes.keys() - {before}, key=lambda zxid: (-len(votes[zxid]), -zxid)))
        return Border(before, after, frozenset(votes.get(before, ())), proof, otherwise)

    def seen(self) -> Iterator[Border]:
        """Every border that a member's disk shows, also after transactions that are no longer in any log."""
        for after, votes in self._seen.items():
            for before, who in votes.items():
                yield Border(before, after, frozenset(who), self._proof(after, who))

    def _proof(self, after: int, who: Collection[str]) -> BorderProof:
        if len(set(who) - self._watching) >= self._quorum:
            return BorderProof.MAJORITY
        return BorderProof.UNPROVEN if after in self._silent else BorderProof.BY_DIGEST

    def _choose(self, after: int, votes: Mapping[int, set[str]]) -> tuple[int, BorderProof]:
        if (proven := self._ends.get(after)) is not None and self._is_held(proven):
            return proven, BorderProof.BY_DIGEST
        likely = max(votes, key=lambda before: (len(votes[before] - self._watching), len(votes[before]), before))
        return likely, self._proof(after, votes[likely])

    def _is_held(self, zxid: int) -> bool:
        return contains(self._held.get(epoch_of(zxid), ()), zxid)


def _epoch_starts(log: ArchivedLog) -> Iterator[int]:
    yield log.first
    yield from (after for _, after in log.borders)


def _back_from_the_end(held: _Held, judge: _Judge) -> tuple[tuple[HeldSpan, ...], dict[int, int]]:
    """The newest epoch is in the history; the borders, one after the other, show what is before it."""
    found: list[HeldSpan] = []
    ends: dict[int, int] = {}
    epoch: int | None = max(held, default=None)
    while epoch is not None:
        runs = [run for run in held[epoch] if run[0] <= ends.get(epoch, run[0])]
        border = judge.border(runs[0][0]) if counter_of(runs[0][0]) == 1 else None
        for number, (first, last) in reversed(list(enumerate(runs))):
            found.append(HeldSpan(first, min(last, ends.get(epoch, last)), None if number else border))
        if border is not None:
            ends[epoch_of(border.before)] = border.before
        lower = (other for other in held if other < epoch)
        epoch = max(lower, default=None) if border is None else epoch_of(border.before)
    return tuple(reversed(found)), ends


def _beyond(held: _Held, stretches: Sequence[HeldSpan], ends: Mapping[int, int]) -> Iterator[Span]:
    """Spans after the accepted end of their epoch."""
    on_line = {epoch_of(stretch.first) for stretch in stretches}
    for epoch, runs in sorted(held.items()):
        for first, last in runs:
            start = max(first, ends.get(epoch, last) + 1) if epoch in on_line else first
            if start <= last:
                yield start, last
