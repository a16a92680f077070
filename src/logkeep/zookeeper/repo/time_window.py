"""Choose what a backup with a limited history window still needs, also where pieces were merged.

A merged object may begin long before the window, and its row has only the times of its first and last transactions. A
piece can be read from a merged object only together with all pieces before it.
"""

from collections.abc import Callable, Collection, Iterable, Sequence

from logkeep.zookeeper.model.archived import ArchivedLog, ArchivedSnapshot
from logkeep.zookeeper.repo.view import ArchiveView
from logkeep.zookeeper.timeline.survey import LogTimes


def within(
    logs: Sequence[ArchivedLog],
    snapshots: Sequence[ArchivedSnapshot],
    since_ms: int | None,
    first_since: Callable[[ArchivedLog, int], int] = lambda log, _since_ms: log.first,
) -> tuple[list[ArchivedLog], list[ArchivedSnapshot]]:
    """Of one member: what is needed to restore every point since a time; without a time everything. Pure.

    That is the newest snapshot whose window ends before the first transaction of that time, with the logs after it. If
    no snapshot is known to end before it, everything is needed. `first_since`: that transaction in a log that begins
    earlier; any earlier transaction is correct too, and keeps more.
    """
    if since_ms is None:
        return list(logs), list(snapshots)
    ends = _window_ends(logs, snapshots)
    recent = [r for r in logs if r.max_time_ms >= since_ms]
    start = _first_transaction(recent, ends.values(), lambda r: first_since(r, since_ms))
    if start is None:
        start = max((r.last for r in logs), default=0)
    bases = [zxid for zxid, end in ends.items() if end <= start]
    if not bases:
        return list(logs), list(snapshots)
    base = max(bases)
    return [r for r in logs if r.last > base], [s for s in snapshots if s.zxid >= base]


def _window_ends(logs: Iterable[ArchivedLog], snapshots: Sequence[ArchivedSnapshot]) -> dict[int, int]:
    """The ends of snapshots' windows, by zxid; only of snapshots that older data can be dropped before."""
    oldest = min([*(s.zxid + 1 for s in snapshots), *(r.last for r in logs)], default=0)
    ends = ((s.zxid, s.bound if s.fuzzy_end is None else s.fuzzy_end) for s in snapshots if s.zxid >= oldest)
    return {zxid: max(end, zxid) for zxid, end in ends if end is not None}


def _first_transaction(
    logs: Iterable[ArchivedLog], ends: Collection[int], first_of: Callable[[ArchivedLog], int]
) -> int | None:
    """The first transaction of a time, in logs that have some of it, as far as it matters to these ends of snapshots.

    `first_of` may have to read a log: it is called only for logs that a snapshot ends in, and for none after the first
    that counts.
    """
    start: int | None = None
    for log in sorted(logs, key=lambda each: each.first):
        if start is not None and start <= log.first:
            break
        first = first_of(log) if any(log.first < end <= log.last for end in ends) else log.first
        start = first if start is None else min(start, first)
    return start


def first_since(base: ArchiveView | None) -> Callable[[ArchivedLog, int], int]:
    """A function that finds the first transaction of a log at or after a time. An archived log that begins earlier is
    read for it; of one that is new, or damaged before that transaction, the function returns the first of all."""

    def first_in(log: ArchivedLog, since_ms: int) -> int:
        row = base.rows.get(log.token) if base is not None else None
        if base is None or row is None or log.min_time_ms >= since_ms:
            return log.first
        found = LogTimes(base).first_later(log, log.first, log.last, since_ms - 1)
        return found[0] if found is not None else log.first

    return first_in


def with_whole_objects(
    base: ArchiveView | None, logs: Sequence[ArchivedLog], chosen: Sequence[ArchivedLog]
) -> list[ArchivedLog]:
    """The chosen pieces, with every piece before one of them in the same object."""
    if base is None or not base.within:
        return list(chosen)
    needed = {base.rows[log.token].token for log in chosen if log.token in base.within}
    wanted = {log.token for log in chosen} | {token for token in base.within if base.rows[token].token in needed}
    return [log for log in logs if log.token in wanted]
