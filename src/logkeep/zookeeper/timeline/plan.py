"""Restore planner: which snapshot and which logs restore a point in time, or why none do. Pure.

The point is the end of the archive, a zxid, or a time (the longest run of transactions from the start of which none is
later). The result is a `RestorePath`, with the strength of its proof, or a `RestoreRefused` that lists what can be
restored instead. A path may contain borders of epochs that only its replay proves: `replay.unproven` lists the rest.
"""

from collections.abc import Collection, Sequence
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from typing import Protocol

from logkeep.errors import RestoreFailed
from logkeep.formats.zookeeper.names import counter_of, epoch_of, hex_zxid
from logkeep.model.segments import Proof
from logkeep.model.time import rfc3339
from logkeep.zookeeper.model.archived import ArchivedLog
from logkeep.zookeeper.model.spans import contains
from logkeep.zookeeper.timeline.holdings import Border, BorderProof, Holdings, Timeline
from logkeep.zookeeper.timeline.reachable import Reach, ReplayBase, reaches_of
from logkeep.zookeeper.timeline.timeline import end_is_open, line_of

RANK = {Proof.UNPROVEN: 0, Proof.BOUNDED: 1, Proof.PROVEN: 2}
"""Strength of a proof, for comparison."""
NO_DIGEST = "bounded, no digest"
AWAITS_DIGEST = "exact only if a digest in the logs matches"
EPOCH_BELIEVED = "the end of an epoch is believed, not proven"
TAIL_UNPROVEN = "no server was asked whether the last transactions were committed"
TAIL_AGREED = "the last transactions are agreed by a majority"
END_OPEN = "the end of this epoch is missing: whether its last transactions here were committed is not known"


@dataclass(frozen=True)
class ToEnd:
    """The last archived transaction."""


@dataclass(frozen=True)
class ToZxid:
    zxid: int


@dataclass(frozen=True)
class ToTime:
    """In ms since 1970, on the clocks of the leaders. They may jump, so the result names the neighbours."""

    time_ms: int


Target = ToEnd | ToZxid | ToTime


class TransactionTimes(Protocol):
    """Times of transactions. Reads a log only if its bounds are not enough."""

    def time_of(self, log: ArchivedLog, zxid: int) -> int | None: ...

    def first_later(self, log: ArchivedLog, first: int, last: int, time_ms: int) -> tuple[int, int] | None:
        """Zxid and time of the first record from `first` to `last` that is later than `time_ms`."""


def shown_time(time_ms: int) -> str:
    """RFC 3339, or milliseconds if the stored number is not a valid date."""
    try:
        return rfc3339(datetime.fromtimestamp(time_ms / 1000, UTC))
    except (ValueError, OverflowError, OSError):
        return f"{time_ms} ms"


@dataclass(frozen=True)
class Moment:
    zxid: int
    time_ms: int | None

    def __str__(self) -> str:
        return hex_zxid(self.zxid) if self.time_ms is None else f"{hex_zxid(self.zxid)} ({shown_time(self.time_ms)})"


@dataclass(frozen=True)
class Slice:
    """The transactions `first` to `last` of a log; others in it are not applied."""

    log: ArchivedLog
    first: int
    last: int

    def continues_with(self, zxid: int) -> bool:
        """Whether the log has no transaction between the last one and this one."""
        return zxid == self.last + 1 or (self.last, zxid) in self.log.borders


@dataclass(frozen=True, kw_only=True)
class RestorePath:
    history: str
    base: ReplayBase
    slices: tuple[Slice, ...]
    until: int
    proof: Proof
    labels: tuple[str, ...]
    """What weakens the proof, as text for users."""
    borders: tuple[Border, ...]
    last_restored: Moment
    """The last transaction that is restored."""
    next_left_out: Moment | None
    """The first one that is not; None if nothing later is archived."""
    with_config: bool = True
    """Whether a server that started empty had /zookeeper/config."""
    asked_ms: int | None = None
    """The requested time, if the backup ends before it: what happened in between is unknown."""


@dataclass(frozen=True)
class Interval:
    """Every transaction from the first to the last can be restored to."""

    first: Moment
    last: Moment
    proof: Proof
    end_is_open: bool = False
    """See `END_OPEN`."""

    def __str__(self) -> str:
        labels = {Proof.PROVEN: "", Proof.BOUNDED: f", {NO_DIGEST}", Proof.UNPROVEN: f", {AWAITS_DIGEST}"}
        return f"{self.first} to {self.last}{labels[self.proof]}" + (f", {END_OPEN}" if self.end_is_open else "")


@dataclass(frozen=True)
class RestoreRefused:
    what: str
    reachable: tuple[Interval, ...]
    neighbours: tuple[Moment, ...] = ()
    """The archived transactions directly before and after a time that falls into a hole."""

    def error(self, subject: str) -> RestoreFailed:
        listed = "; ".join(str(interval) for interval in self.reachable)
        remedy = f"what can be restored to: {listed}" if listed else "no point in time can be restored from this backup"
        return RestoreFailed(self.what, subject=subject, remedy=remedy)


def plan(
    holdings: Holdings,
    target: Target,
    moments: TransactionTimes,
    *,
    history: str | None = None,
    only: Collection[str] | None = None,
    believe: bool = False,
) -> RestorePath | RestoreRefused:
    """`history`: the newest by default. `only`: these members alone. `believe`: accept unproven ends of epochs."""
    if not holdings.histories:
        return RestoreRefused("the backup holds neither snapshots nor logs", ())
    line = line_of(holdings, history or holdings.histories[-1], only)
    reaches = reaches_of(holdings, line, only=only, believe=believe)
    aim = _target_zxid(target, _end(holdings, line, only), line, reaches, moments)
    if isinstance(aim, str):
        return RestoreRefused(aim, reachable(holdings, line, reaches, moments))
    if isinstance(aim, tuple):
        return RestoreRefused(
            "the transactions of that time are not archived", reachable(holdings, line, reaches, moments), aim
        )
    able = [reach for reach in reaches if reach.has(aim)]
    if not able:
        return RestoreRefused(_why_not(aim, line, reaches), reachable(holdings, line, reaches, moments))
    best = max(able, key=lambda reach: (RANK[reach.base.proof], reach.base.zxid, reach.base.snapshot is not None))
    return _with_asked_time(path_along(holdings, line, best, aim, moments), target)


def _with_asked_time(path: RestorePath, target: Target) -> RestorePath:
    if not isinstance(target, ToTime) or path.next_left_out is not None or path.last_restored.time_ms == target.time_ms:
        return path
    return replace(path, asked_ms=target.time_ms)


def reachable(
    holdings: Holdings, line: Timeline, reaches: Sequence[Reach], moments: TransactionTimes
) -> tuple[Interval, ...]:
    """Intervals that are not inside another one with the same or a better proof, oldest first."""
    shown: list[Reach] = []
    for reach in sorted(reaches, key=lambda r: (-RANK[r.base.proof], r.first, -r.last)):
        if not any(other.first <= reach.first and reach.last <= other.last for other in shown):
            shown.append(reach)
    found = (
        Interval(
            _at(line, r.first, moments), _at(line, r.last, moments), r.base.proof, end_is_open(holdings, line, r.last)
        )
        for r in shown
    )
    return tuple(sorted(found, key=lambda interval: (interval.first.zxid, interval.last.zxid)))


def _end(holdings: Holdings, line: Timeline, only: Collection[str] | None) -> int | None:
    """The last known transaction. Snapshots may contain later ones than the archived logs."""
    known = [] if line.last is None else [line.last]
    for snapshot in holdings.snapshots:
        if snapshot.history != line.history or (only is not None and snapshot.member not in only):
            continue
        inside = (zxid for zxid in (snapshot.zxid, snapshot.fuzzy_end) if zxid is not None)
        known += [zxid for zxid in inside if counter_of(zxid) or not known]
    return max((zxid for zxid in known if not contains(line.abandoned, zxid)), default=None)


def _target_zxid(
    target: Target, end: int | None, line: Timeline, reaches: Sequence[Reach], moments: TransactionTimes
) -> int | str | tuple[Moment, ...]:
    """A zxid; or what is wrong; or, for a time that falls into a hole, the transactions around it."""
    if end is None:
        return "no transaction is held, and no snapshot"
    if isinstance(target, ToZxid):
        return _held_zxid(target.zxid, line, reaches)
    if isinstance(target, ToTime):
        later = _first_later(line, target.time_ms, moments)
        return end if later is None else _before(line, later, moments)
    return end


def _held_zxid(zxid: int, line: Timeline, reaches: Sequence[Reach]) -> int | str:
    if line.holds(zxid) or any(reach.first == zxid for reach in reaches):
        return zxid
    for border in (border for reach in reaches for border in reach.borders):
        # no transaction has this number: the epoch is known to have ended before it
        if border.before < zxid < border.after and border.proof in (BorderProof.MAJORITY, BorderProof.BEGINNING):
            return border.before
    return f"transaction {hex_zxid(zxid)} is not archived"


def _first_later(line: Timeline, time_ms: int, moments: TransactionTimes) -> Moment | None:
    for stretch in line.stretches:
        at = stretch.first
        while at <= stretch.last:
            span = max(line.holders(at), key=lambda span: span.last)
            last = min(span.last, stretch.last)
            if span.log.max_time_ms > time_ms and (found := moments.first_later(span.log, at, last, time_ms)):
                return Moment(*found)
            at = last + 1
    return None


def _before(line: Timeline, later: Moment, moments: TransactionTimes) -> int | tuple[Moment, ...]:
    previous: int | None = None
    for stretch in line.stretches:
        if stretch.first == later.zxid:
            if stretch.border is not None:
                return stretch.border.before
            return (later,) if previous is None else (_at(line, previous, moments), later)
        if stretch.first < later.zxid <= stretch.last:
            return later.zxid - 1
        previous = stretch.last
    return (later,)


def _why_not(aim: int, line: Timeline, reaches: Sequence[Reach]) -> str:
    stops = [reach.stopped_by for reach in reaches if reach.last < aim and reach.stopped_by is not None]
    for stop in stops:
        if isinstance(stop, Border):
            return (
                f"nothing proves that epoch {epoch_of(stop.before)} ended with {hex_zxid(stop.before)}, "
                f"so {hex_zxid(aim)} is out of reach"
            )
    if stops:
        holes = ", ".join(f"{hex_zxid(h.after)} and {hex_zxid(h.before)}" for h in line.holes)
        return f"transactions are missing between {holes or 'a snapshot and the first log'}"
    return f"no snapshot is exact at or before {hex_zxid(aim)}"


def path_along(holdings: Holdings, line: Timeline, reach: Reach, until: int, moments: TransactionTimes) -> RestorePath:
    borders = tuple(border for border in reach.borders if border.after <= until)
    proof, labels = _strength(holdings, line, reach, until, borders)
    slices = tuple(slices_of(line, reach.base, until, borders))
    return RestorePath(
        history=line.history,
        base=reach.base,
        slices=slices,
        until=until,
        proof=proof,
        labels=labels,
        borders=borders,
        last_restored=_at(line, until, moments),
        next_left_out=_next(line, until, moments),
        with_config=_with_config(holdings, slices),
    )


def _strength(
    holdings: Holdings, line: Timeline, reach: Reach, until: int, borders: Sequence[Border]
) -> tuple[Proof, tuple[str, ...]]:
    found: list[tuple[Proof, str]] = []
    if reach.base.proof is Proof.BOUNDED:
        found.append((Proof.BOUNDED, NO_DIGEST))
    if reach.base.awaits_digest:
        found.append((Proof.UNPROVEN, AWAITS_DIGEST))
    if any(border.proof is BorderProof.UNPROVEN for border in borders):
        found.append((Proof.UNPROVEN, EPOCH_BELIEVED))
    if end_is_open(holdings, line, until):
        found.append((Proof.UNPROVEN, END_OPEN))
    around = [span.log.proof for span in line.spans if span.last >= until and span.first <= reach.last]
    tail = max(around, key=RANK.__getitem__, default=Proof.PROVEN)
    if tail is not Proof.PROVEN:
        found.append((tail, TAIL_UNPROVEN if tail is Proof.UNPROVEN else TAIL_AGREED))
    proof = min((proof for proof, _ in found), key=RANK.__getitem__, default=Proof.PROVEN)
    return proof, tuple(label for _, label in found)


def slices_of(line: Timeline, base: ReplayBase, until: int, borders: Sequence[Border]) -> list[Slice]:
    """Use a log to its end, then prefer logs of the member that wrote the snapshot."""
    following = {border.before: border.after for border in borders}
    found: list[Slice] = []
    at, end = base.zxid, until
    while at < end:
        at = following.get(at, at + 1)
        log = found[-1].log if found else None
        span = max(line.holders(at), key=lambda span: (span.log == log, span.log.member == base.member, span.last))
        last = min(span.last, end, *(before for before in following if before >= at), end)
        if found and found[-1].log == span.log and found[-1].continues_with(at):
            found[-1] = Slice(span.log, found[-1].first, last)
        else:
            found.append(Slice(span.log, at, last))
        at = last
    return found


def _with_config(holdings: Holdings, slices: Sequence[Slice]) -> bool:
    if not slices:
        return True
    log = slices[0].log
    version = next((member.version for member in holdings.members if member.name == log.member), "")
    return not version.startswith("3.4") if version else log.digests is True


def _at(line: Timeline, zxid: int, moments: TransactionTimes) -> Moment:
    holders = line.holders(zxid)
    return Moment(zxid, moments.time_of(holders[0].log, zxid) if holders else None)


def _next(line: Timeline, zxid: int, moments: TransactionTimes) -> Moment | None:
    for stretch in line.stretches:
        if stretch.last > zxid:
            return _at(line, max(stretch.first, zxid + 1), moments)
    return None
