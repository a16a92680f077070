"""Findings about a history: what is missing, disputed or unproven in all that a backup holds of it. Pure.

They follow from zxids, borders and windows alone. Starting a server does not show this: it starts
with most such files, has a tree that never existed, and reports nothing.
"""

from collections.abc import Collection, Iterator, Mapping

from logkeep.formats.zookeeper.names import epoch_of, hex_zxid
from logkeep.model.findings import Severity
from logkeep.zookeeper.model.findings import Class, FileFinding
from logkeep.zookeeper.timeline.holdings import Border, BorderProof, Holdings, MissingTransactions, Timeline
from logkeep.zookeeper.timeline.log_check import FROM_ANOTHER
from logkeep.zookeeper.timeline.plan import RestorePath, RestoreRefused, ToEnd, TransactionTimes, plan
from logkeep.zookeeper.timeline.reachable import Reach, ReplayBase, bases_of, reach_of, stop_of


def history_findings(holdings: Holdings, line: Timeline, moments: TransactionTimes) -> Iterator[FileFinding]:
    where = f"history {line.history}"
    end = plan(holdings, ToEnd(), moments, history=line.history)
    reaches = {base: reach_of(line, base) for base in bases_of(holdings, line)}
    stops = [stop_of(line, base) for base in reaches]
    yield from _end_findings(where, end, any(reaches.values()))
    severity = Severity.DAMAGE if isinstance(end, RestoreRefused) else Severity.WARNING
    yield from (_hole_finding(where, hole, severity) for hole in _holes(line, stops))
    yield from (_border_finding(where, border) for border in _unproven(line, stops))
    yield from _member_findings(where, holdings, line)
    yield from _snapshot_findings(holdings, line, reaches)


def _end_findings(where: str, end: RestorePath | RestoreRefused, partly: bool) -> Iterator[FileFinding]:
    if isinstance(end, RestorePath):
        return
    kind = Class.END_UNREACHABLE if partly else Class.NOT_RESTORABLE
    what = f"its end cannot be restored: {end.what}" if partly else f"nothing in it can be restored: {end.what}"
    intervals = "; ".join(str(interval) for interval in end.reachable)
    remedy = f"what can be restored to: {intervals}" if intervals else FROM_ANOTHER
    yield FileFinding(kind=kind, severity=Severity.DAMAGE, where=where, what=what, remedy=remedy)


def _holes(line: Timeline, stops: Collection[Border | MissingTransactions | None]) -> list[MissingTransactions]:
    """Between logs, and between a snapshot and the first log after it. Each is reported once."""
    found = {hole.before: hole for hole in line.holes}
    for stop in stops:
        if isinstance(stop, MissingTransactions):
            found.setdefault(stop.before, stop)
    return [found[before] for before in sorted(found)]


def _hole_finding(where: str, hole: MissingTransactions, severity: Severity) -> FileFinding:
    between = f"{hex_zxid(hole.after)} and {hex_zxid(hole.before)}"
    return FileFinding(
        kind=Class.LOST_TRANSACTIONS,
        severity=severity,
        where=where,
        what=f"transactions between {between} are missing on every member",
        remedy=FROM_ANOTHER,
        zxid=hole.after,
        lost=hole.lost,
    )


def _unproven(line: Timeline, stops: Collection[Border | MissingTransactions | None]) -> list[Border]:
    found = {border.after: border for border in line.borders if border.proof is BorderProof.UNPROVEN}
    for stop in stops:
        if isinstance(stop, Border):
            found.setdefault(stop.after, stop)
    return [found[after] for after in sorted(found)]


def _border_finding(where: str, border: Border) -> FileFinding:
    holders = ", ".join(sorted(border.seen_by)) or "no member"
    return FileFinding(
        kind=Class.EPOCH_END_UNPROVEN,
        severity=Severity.WARNING,
        where=where,
        what=f"{holders} has {hex_zxid(border.after)} directly after {hex_zxid(border.before)}: too few to know that "
        f"epoch {epoch_of(border.before)} ended there, and these logs have no digests",
        remedy="back up a majority of the voters, or take a backup after the next snapshot",
        zxid=border.before,
    )


def _member_findings(where: str, holdings: Holdings, line: Timeline) -> Iterator[FileFinding]:
    for dispute in holdings.disputed:
        if dispute.history == line.history:
            yield FileFinding(
                kind=Class.MEMBERS_DISAGREE,
                severity=Severity.DAMAGE,
                where=where,
                what=f"{', '.join(sorted(dispute.members))} hold different transactions under the same numbers, "
                f"{hex_zxid(dispute.first)} to {hex_zxid(dispute.last)}",
                remedy="they are not of one history: compare the members, and restore from one of them by name",
            )
    for first, last in line.abandoned:
        yield FileFinding(
            kind=Class.NEVER_COMMITTED,
            severity=Severity.NOTE,
            where=where,
            what=f"{hex_zxid(first)} to {hex_zxid(last)} come after the accepted end of their epoch",
            remedy="they were proposed and never committed; nothing is restored from them",
        )


def _snapshot_findings(
    holdings: Holdings, line: Timeline, reaches: Mapping[ReplayBase, Reach | None]
) -> Iterator[FileFinding]:
    for snapshot in holdings.snapshots:
        if snapshot.history != line.history:
            continue
        base = next((each for each in reaches if each.snapshot == snapshot), None)
        where = f"{snapshot.member}/{snapshot.name}"
        if base is None or base.awaits_digest:
            yield FileFinding(
                kind=Class.SNAPSHOT_UNBOUNDED,
                severity=Severity.NOTE,
                where=where,
                what="the last transaction that it may contain in part is unknown",
                remedy="digests may show it; else an older one is used until a later snapshot bounds it",
                zxid=snapshot.zxid,
            )
        elif reaches.get(base) is None:
            yield FileFinding(
                kind=Class.WINDOW_OPEN,
                severity=Severity.WARNING,
                where=where,
                what=f"logs do not reach {hex_zxid(base.settled)}, where its tree becomes exact",
                remedy="it cannot be used; an older one can, with the logs after it",
                zxid=snapshot.zxid,
            )
