"""Findings about one log, from the result of its scan. Pure.

The normal end of a log that is being written is distinguished from lost transactions. `history_check` covers all files
together.
"""

from collections.abc import Iterator, Sequence

from logkeep.formats.zookeeper.names import epoch_of, follows
from logkeep.formats.zookeeper.scanned_log import DamageKind, LogDamage, ScannedLog
from logkeep.model.findings import Severity
from logkeep.zookeeper.model.archived import ArchivedLog
from logkeep.zookeeper.model.findings import Class, FileFinding

FROM_ANOTHER = "only another member or an earlier backup can have these transactions: back up more members, or splice"
_KINDS = {
    DamageKind.CHECKSUM: "a record does not have the checksum that was written with it",
    DamageKind.LENGTH: "an impossible length",
    DamageKind.END_MARK: "a record without its end mark",
    DamageKind.ORDER: "a record whose zxid is not above the one before it",
    DamageKind.GAP: "a record that does not follow the one before it",
    DamageKind.TORN: "the last record is incomplete",
    DamageKind.BAD_HEADER: "the first 16 bytes are not those of a transaction log",
}


def log_findings(
    where: str, scanned: ScannedLog, *, newest: bool, before: int | None = None, next_first: int | None = None
) -> Iterator[FileFinding]:
    """`newest`: this member has no later log. `before`, `next_first`: the last zxid of the log before it, and the first
    of the log after it."""
    if not scanned.records and not scanned.damage:
        yield FileFinding(kind=Class.LOG_EMPTY, severity=Severity.NOTE, where=where, what="a log without a record")
    for each in scanned.damage:
        yield _log_finding(where, each, newest, each.after_zxid or before, next_first)


def _log_finding(where: str, each: LogDamage, newest: bool, last: int | None, next_first: int | None) -> FileFinding:
    if each.kind is DamageKind.TORN:
        return _torn(where, each, newest, last, next_first)
    if each.kind is DamageKind.BAD_HEADER:
        whole = each.resumes_at is not None
        return FileFinding(
            kind=Class.LOG_HEADER,
            severity=Severity.DAMAGE,
            where=where,
            what=_KINDS[each.kind],
            remedy="the header holds no information: --fix writes it again" if whole else "nothing in it can be read",
            position=0,
        )
    return FileFinding(
        kind=Class.LOG_DAMAGED,
        severity=Severity.DAMAGE,
        where=where,
        what=_KINDS[each.kind],
        remedy=FROM_ANOTHER,
        position=each.position,
        zxid=last,
        lost=each.lost,
    )


def _torn(where: str, each: LogDamage, newest: bool, last: int | None, next_first: int | None) -> FileFinding:
    if newest:
        return FileFinding(
            kind=Class.ACTIVE_TAIL,
            severity=Severity.NOTE,
            where=where,
            what="the last record was being written, or the server was stopped while it was",
            remedy="nothing is lost: the record had not been acknowledged; it is left out",
            position=each.position,
            zxid=last,
        )
    whole = last is not None and next_first is not None and follows(last, next_first)
    lost = None if whole or last is None or next_first is None else _lost(last, next_first)
    return FileFinding(
        kind=Class.TORN_LOG,
        severity=Severity.NOTE if whole else Severity.DAMAGE,
        where=where,
        what="the log ends within a record" + (", which the next log has again" if whole else ""),
        remedy="" if whole else FROM_ANOTHER,
        position=each.position,
        zxid=last,
        lost=lost,
    )


def _lost(last: int, following: int) -> tuple[int, int] | None:
    return (last + 1, following - 1) if epoch_of(last) == epoch_of(following) else None


def good_runs(scanned: ScannedLog) -> list[tuple[int, int]]:
    """First and last zxid of every stretch of good records, from a deep scan."""
    first = [(scanned.first_zxid, scanned.last_zxid)] if scanned.records else []
    return [*first, *((each.first_zxid, each.last_zxid) for each in scanned.behind if each.records)]


def lost_of(log: ArchivedLog, good: Sequence[tuple[int, int]]) -> Iterator[tuple[int, int]]:
    """First and last of each range of transactions of a log that is in none of these runs."""
    following, earlier = dict(log.borders), {after: before for before, after in log.borders}
    wanted = log.first
    for first, last in sorted(good):
        if first > wanted:
            yield wanted, earlier.get(first, first - 1)
        if last >= log.last:
            return
        wanted = max(wanted, following.get(last, last + 1))
    yield wanted, log.last
