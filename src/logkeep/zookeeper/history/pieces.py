"""Choose parts of logs that hold every archived transaction exactly once. Pure.

Members of an ensemble hold the same transactions: where several do, the log with the best proof is read.
"""

from collections.abc import Iterable, Iterator, Sequence
from heapq import heappop, heappush
from itertools import groupby, pairwise

from logkeep.formats.zookeeper.names import counter_of, epoch_of
from logkeep.zookeeper.timeline.plan import RANK, Slice
from logkeep.zookeeper.timeline.timeline import spans_of


def history_order(history: str) -> tuple[int, str]:
    """Histories are numbered: the tenth comes after the ninth."""
    return len(history), history


def pieces(held: Iterable[Slice]) -> tuple[Slice, ...]:
    """Histories in their order, zxids growing within each."""
    ordered = sorted(held, key=lambda piece: history_order(piece.log.history))
    by_history = groupby(ordered, key=lambda piece: piece.log.history)
    return tuple(piece for _, of_one in by_history for piece in once(of_one))


def once(held: Iterable[Slice]) -> Iterator[Slice]:
    """Of one history: every transaction once, zxids growing, each from the log with the best proof."""
    current: Slice | None = None
    for piece in _best(sorted(held, key=lambda piece: (piece.first, -piece.last))):
        if current is not None and current.log == piece.log and current.continues_with(piece.first):
            current = Slice(current.log, current.first, piece.last)
            continue
        if current is not None:
            yield current
        current = piece
    if current is not None:
        yield current


def _best(ordered: Sequence[Slice]) -> Iterator[Slice]:
    """Changes to another log where a better proven one begins, and at the end of a log."""
    open_ones: list[tuple[int, int]] = []
    at, number = 0, 0
    while open_ones or number < len(ordered):
        at = at if open_ones else max(at, ordered[number].first)
        while number < len(ordered) and ordered[number].first <= at:
            heappush(open_ones, (-RANK[ordered[number].log.proof], number))
            number += 1
        best = ordered[open_ones[0][1]]
        if best.last < at:
            heappop(open_ones)
            continue
        last = min(best.last, ordered[number].first - 1) if number < len(ordered) else best.last
        yield Slice(best.log, at, last)
        at = last + 1


def without(first: int, last: int, cuts: Iterable[tuple[int, int]]) -> Iterator[tuple[int, int]]:
    """The numbers from `first` to `last` without the cuts, as spans."""
    for bad_first, bad_last in sorted(cuts):
        if bad_last < first or bad_first > last:
            continue
        if first < bad_first:
            yield first, bad_first - 1
        first = bad_last + 1
    if first <= last:
        yield first, last


def searched(found: Sequence[Slice]) -> list[tuple[str, int, int]]:
    """History, first and last zxid of each run without a hole; a run continues over the end of an epoch only if the
    next transaction is known."""
    runs: list[tuple[str, int, int]] = []
    borders = {(piece.log.history, border) for piece in found for border in piece.log.borders}
    for piece in found:
        history = piece.log.history
        if runs and runs[-1][0] == history and _joined(history, runs[-1][2], piece.first, borders):
            runs[-1] = (history, runs[-1][1], piece.last)
        else:
            runs.append((history, piece.first, piece.last))
    return runs


def gaps(found: Sequence[Slice]) -> Iterator[Slice]:
    """Transactions that existed and that none of these holds, each with the log before it.

    What is missing at the end of an epoch is known only if a log has the border after that epoch.
    """
    borders = {(piece.log.history, border) for piece in found for border in piece.log.borders}
    for before, after in pairwise(found):
        history, last, first = before.log.history, before.last, after.first
        if after.log.history != history or _joined(history, last, first, borders):
            continue
        if epoch_of(last) == epoch_of(first):
            yield Slice(before.log, last + 1, first - 1)
            continue
        ends = [end for of, (end, next_one) in borders if (of, next_one) == (history, first)]
        if (end := max(ends, default=0)) > last and epoch_of(end) == epoch_of(last):
            yield Slice(before.log, last + 1, end)
        if counter_of(first) > 1:
            yield Slice(before.log, (epoch_of(first) << 32) + 1, first - 1)


def transactions_in(piece: Slice) -> int:
    """Inside an epoch every number is a transaction; a log without known epochs is counted as a whole."""
    spans = list(spans_of(piece.log))
    if any(epoch_of(span.first) != epoch_of(span.last) for span in spans):
        return piece.log.records
    return sum(max(min(span.last, piece.last) - max(span.first, piece.first) + 1, 0) for span in spans)


def _joined(history: str, last: int, first: int, borders: set[tuple[str, tuple[int, int]]]) -> bool:
    return first == last + 1 or (history, (last, first)) in borders
