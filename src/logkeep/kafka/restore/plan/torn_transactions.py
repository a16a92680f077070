"""Transactions that a restore to a point in time would bring back in part, by comparing the restored logs. Pure.

With transaction.version 2 a producer has another epoch in each transaction: producer id and epoch identify it. Without
it, order and marker times decide: the markers of one transaction are written at about the same time, one to a log, and
before anything of the producer's next transaction. So neighbouring markers of one producer belong together, unless a
log has two of them: then the widest pauses separate them. A short pause that is not clearly wider than the times on
both sides separates nothing for certain: the transactions on both sides count as one that is possibly torn. So do
markers that are more than a second apart: either a broker was slow, or they are of two transactions.
"""

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field

import msgspec
import numpy as np
import numpy.typing as npt

from logkeep.formats.kafka.transaction_scan import Rows
from logkeep.formats.kafka.transactions import AbortedRange
from logkeep.kafka.restore.plan.refusals import join_names
from logkeep.model.findings import Finding, Severity
from logkeep.model.segments import LogName

LONGEST_MS = 15 * 60_000
"""The default of transaction.max.timeout.ms: a longer pause of a producer is always between two transactions."""
TOGETHER_MS = 1_000
"""Within this time the markers of one transaction are written for certain, unless a broker is slow."""
CLEAR_MS = 50
"""A shorter pause never separates two transactions for certain: clocks of brokers differ."""
_NEAR_MS = 2 * TOGETHER_MS
"""Where transactions cannot be separated, only parts so close to one beyond the cut count as torn, not all of them."""
_CLEARLY = 4
"""How much wider than the times on both sides a pause must be."""

_TORN, _POSSIBLY_TORN = "transaction-torn", "transaction-possibly-torn"
TORN_CODES = frozenset({_TORN, _POSSIBLY_TORN})
"""Codes of findings about transactions that are restored in part."""

Numbers = npt.NDArray[np.intp]


class TornTransactions(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Transactions of one producer that are restored in the same logs, and missing in the same logs."""

    producer_id: int
    transactions: int
    restored: tuple[str, ...]
    """Logs in which records of them are before the cut, as TOPIC/PARTITION of the source."""
    missing: tuple[str, ...]
    certain: bool = True
    """False: it is not known which parts belong together; they may be several transactions, none of them torn."""


@dataclass(frozen=True)
class TearReport:
    torn: tuple[TornTransactions, ...] = ()
    ranges: Mapping[LogName, tuple[AbortedRange, ...]] = field(default_factory=dict)
    """Restored parts of torn transactions, in order: leaving them out leaves no part of one."""


def find_torn(found: Mapping[LogName, Rows]) -> TearReport:
    """Compare the transactions of all restored logs."""
    logs = [log for log in sorted(found) if len(found[log])]
    if not logs:
        return TearReport()
    rows = np.concatenate([found[log] for log in logs])
    where = np.repeat(np.arange(len(logs)), [len(found[log]) for log in logs])
    torn = [
        (group, certain)
        for group, certain in _same_transactions(rows, where)
        if rows["restored"][group].any() and rows["missing"][group].any()
    ]
    return TearReport(tuple(_summary(rows, where, logs, torn)), _ranges(rows, where, logs, torn))


def _same_transactions(rows: Rows, where: Numbers) -> Iterator[tuple[Numbers, bool]]:
    """Rows that belong, or may belong, to one transaction; and whether that is certain."""
    for group in _grouped(rows):
        ended = rows["marker_epoch"][group] >= 0
        exact = ended & (rows["marker_epoch"][group] == rows["epoch"][group] + 1)
        if exact.any():
            one = group[exact | ~ended]
            yield one, bool(rows["certain"][one].all())
        timed = group[ended & ~exact]
        if len(timed):
            yield from _by_time(rows, where, timed)


def _grouped(rows: Rows) -> Iterator[Numbers]:
    """The rows of each producer and epoch of which some are restored and some are missing."""
    order = np.lexsort((rows["epoch"], rows["producer_id"]))
    keys = np.column_stack((rows["producer_id"][order], rows["epoch"][order].astype(np.int64)))
    firsts = np.append(0, np.flatnonzero((keys[1:] != keys[:-1]).any(axis=1)) + 1)
    afters = np.append(firsts[1:], len(order))
    some, lacking = (np.logical_or.reduceat(rows[name][order], firsts) for name in ("restored", "missing"))
    for at in np.flatnonzero(some & lacking).tolist():
        yield order[firsts[at] : afters[at]]


def _by_time(rows: Rows, where: Numbers, some: Numbers) -> Iterator[tuple[Numbers, bool]]:
    times = _rising(rows["marker_ms"][some], where[some])
    order = np.argsort(times, kind="stable")
    some, times = some[order], times[order]
    borders = np.flatnonzero(np.diff(times) > LONGEST_MS) + 1
    for run, at in zip(np.split(some, borders), np.split(times, borders), strict=True):
        if rows["restored"][run].any() and rows["missing"][run].any():
            for first, after, clear, several in _divided(at.tolist(), where[run].tolist()):
                one = run[first:after]
                if several:
                    one = one[_near(at[first:after], rows["restored"][one], rows["missing"][one])]
                yield one, clear and bool(rows["certain"][one].all())


def _near(times: npt.NDArray[np.int64], restored: npt.NDArray[np.bool_], missing: npt.NDArray[np.bool_]) -> Numbers:
    """The restored parts close to a missing one, and the missing parts close to a restored one. Times never fall."""
    close = np.zeros(len(times), np.bool_)
    for some, others in ((restored, missing), (missing, restored)):
        at = times[others]
        if some.any() and len(at):
            after = np.searchsorted(at, times[some])
            before_ms = times[some] - at[np.maximum(after - 1, 0)]
            after_ms = at[np.minimum(after, len(at) - 1)] - times[some]
            close[some] |= np.minimum(np.abs(before_ms), np.abs(after_ms)) <= _NEAR_MS
    return np.flatnonzero(close)


def _rising(times: npt.NDArray[np.int64], where: Numbers) -> npt.NDArray[np.int64]:
    """Marker times that never fall in a log: its order is certain, a broker's clock is not."""
    found = times.copy()
    for log in np.unique(where):
        own = where == log
        found[own] = np.maximum.accumulate(found[own])
    return found


def _divided(times: Sequence[int], logs: Sequence[int]) -> Iterator[tuple[int, int, bool, bool]]:
    """Divide a run of markers: `[first, after)`, whether it is one transaction for certain, or several for certain."""
    spans = _joined(times, logs)
    begin, alone, one_log = 0, True, len(set(logs)) == 1
    for number, (first, after) in enumerate(spans):
        following = spans[number + 1] if number + 1 < len(spans) else None
        if following is not None and not one_log and not _clear(times, (first, after), following):
            alone = False
            continue
        yield spans[begin][0], after, alone and times[after - 1] - times[first] <= TOGETHER_MS, not alone
        begin, alone = number + 1, True


def _joined(times: Sequence[int], logs: Sequence[int]) -> list[tuple[int, int]]:
    """Join neighbours, the closest first, as long as no log occurs twice."""
    first_of, last_of = list(range(len(times))), list(range(len(times)))  # by the last and by the first of a span
    members: dict[int, set[int]] = {at: {log} for at, log in enumerate(logs)}
    for gap in sorted(range(len(times) - 1), key=lambda at: times[at + 1] - times[at]):
        left, right = first_of[gap], gap + 1
        if members[left].isdisjoint(members[right]):
            members[left] |= members.pop(right)
            last_of[left], first_of[last_of[right]] = last_of[right], left
    return [(first, last_of[first] + 1) for first in sorted(members)]


def _clear(times: Sequence[int], left: tuple[int, int], right: tuple[int, int]) -> bool:
    """Whether the pause between two spans, which have a log in common, certainly separates transactions."""
    pause = times[right[0]] - times[left[1] - 1]
    widest = max(times[after - 1] - times[first] for first, after in (left, right))
    return pause > TOGETHER_MS or pause >= max(CLEAR_MS, _CLEARLY * widest)


_Torn = Iterable[tuple[Numbers, bool]]


def _summary(rows: Rows, where: Numbers, logs: Sequence[LogName], torn: _Torn) -> Iterator[TornTransactions]:
    seen = Counter[tuple[int, tuple[int, ...], tuple[int, ...], bool]]()
    for group, certain in torn:
        restored, missing = (tuple(np.unique(where[group[rows[n][group]]]).tolist()) for n in ("restored", "missing"))
        # Each of them has one marker in a log.
        seen[int(rows["producer_id"][group[0]]), restored, missing, certain] += int(np.bincount(where[group]).max())
    for (producer, restored, missing, certain), count in sorted(seen.items()):
        yield TornTransactions(
            producer_id=producer,
            transactions=count,
            restored=tuple(str(logs[at]) for at in restored),
            missing=tuple(str(logs[at]) for at in missing),
            certain=certain,
        )


def _ranges(
    rows: Rows, where: Numbers, logs: Sequence[LogName], torn: _Torn
) -> dict[LogName, tuple[AbortedRange, ...]]:
    found: dict[LogName, list[AbortedRange]] = {}
    for group, _ in torn:
        for at in group[rows["restored"][group]].tolist():
            first, last, producer = (int(rows[name][at]) for name in ("first_offset", "last_offset", "producer_id"))
            found.setdefault(logs[where[at]], []).append(AbortedRange(first, last, producer))
    return {log: tuple(sorted(ranges)) for log, ranges in sorted(found.items())}


def torn_findings(torn: Iterable[TornTransactions], *, left_out: bool) -> list[Finding]:
    """One finding for each producer and set of partitions."""
    return [_left_out(each) if left_out else _torn(each) for each in torn]


def _torn(each: TornTransactions) -> Finding:
    both = f"restored in {join_names(each.restored)}, missing in {join_names(each.missing)}"
    if each.certain:
        code, what = _TORN, f"the cut tears {_count(each)}: {both}"
    else:
        code = _POSSIBLY_TORN
        what = f"the cut possibly tears {_count(each)}, whose parts cannot be matched for certain: {both}"
    return Finding(
        code=code,
        severity=Severity.WARNING,
        where=f"producer {each.producer_id}",
        what=what,
        remedy="leave such transactions out with --transactions whole, or choose another time or offset",
    )


def _left_out(each: TornTransactions) -> Finding:
    """A warning where more may be left out than the cut tears."""
    doubt = "" if each.certain else "possibly "
    return Finding(
        code="transaction-left-out",
        severity=Severity.NOTE if each.certain else Severity.WARNING,
        where=f"producer {each.producer_id}",
        what=f"{_count(each)}, {doubt}torn by the cut, left out of {join_names(each.restored)}; the rest is beyond "
        f"the cut of {join_names(each.missing)}",
    )


def _count(each: TornTransactions) -> str:
    return "a transaction" if each.transactions == 1 else f"{each.transactions:,} transactions"
