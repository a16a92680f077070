"""Which parts of which logs hold every archived transaction once. Pure.

Members of an ensemble hold the same transactions: of those that several hold, one member's are read.
"""

from collections.abc import Iterable, Iterator, Sequence
from itertools import groupby, pairwise

from logkeep.errors import UsageError
from logkeep.formats.zookeeper.names import counter_of, epoch_of
from logkeep.zookeeper.kept import KeptLog
from logkeep.zookeeper.plan import Slice


def history_order(history: str) -> tuple[int, str]:
    """Histories are counted: the tenth comes after the ninth."""
    return len(history), history


def pieces(logs: Sequence[KeptLog], member: str | None = None) -> tuple[Slice, ...]:
    """Histories in their order, zxids growing within each. `member`: only what this one holds."""
    known = sorted({log.member for log in logs})
    if member is not None and member not in known:
        raise UsageError(
            "no logs of this member are in the backup", subject=member, remedy=f"choose among {', '.join(known)}"
        )
    held = [log for log in logs if member in (None, log.member)]
    held.sort(key=lambda log: history_order(log.history))
    return tuple(piece for _, of_one in groupby(held, key=lambda log: log.history) for piece in once(of_one))


def once(logs: Iterable[KeptLog]) -> Iterator[Slice]:
    """Of one history: every transaction that they hold, zxids growing."""
    at = -1
    for log in sorted(logs, key=lambda log: (log.first, -log.last)):
        if log.last > at:
            yield Slice(log, max(log.first, at + 1), log.last)
            at = log.last


def searched(found: Sequence[Slice]) -> list[tuple[str, int, int]]:
    """History, first and last zxid of each run without a hole; where an epoch ends, a run goes on only if it is known
    what comes next."""
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
    """Transactions that surely were and that none of these holds, each with the log before it.

    What an epoch lacks at its end is known only where a log still tells how that epoch ended.
    """
    borders = {(piece.log.history, border) for piece in found for border in piece.log.borders}
    for before, after in pairwise(found):
        history, last, first = before.log.history, before.last, after.first
        if after.log.history != history or _joined(history, last, first, borders):
            continue
        if epoch_of(last) == epoch_of(first):
            yield Slice(before.log, last + 1, first - 1)
            continue
        ends = [end for told, (end, next_one) in borders if (told, next_one) == (history, first)]
        if (end := max(ends, default=0)) > last and epoch_of(end) == epoch_of(last):
            yield Slice(before.log, last + 1, end)
        if counter_of(first) > 1:
            yield Slice(before.log, (epoch_of(first) << 32) + 1, first - 1)


def transactions_in(piece: Slice) -> int:
    """Inside an epoch every number is a transaction; over a border only the log as a whole is counted."""
    same = epoch_of(piece.first) == epoch_of(piece.last)
    return piece.last - piece.first + 1 if same else piece.log.records


def _joined(history: str, last: int, first: int, borders: set[tuple[str, tuple[int, int]]]) -> bool:
    return first == last + 1 or (history, (last, first)) in borders
