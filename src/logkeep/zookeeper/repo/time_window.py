"""A backup that reaches back only so far, made of one whose pieces were merged: what it still needs of them.

A merged object begins long before the time that is asked for, and its row tells only when its first and last
transactions happened. And a piece is found in an object only behind all pieces that come before it there.
"""

from collections.abc import Callable, Sequence

from logkeep.zookeeper.model.archived import ArchivedLog
from logkeep.zookeeper.repo.view import ArchiveView
from logkeep.zookeeper.timeline.survey import LogTimes


def first_since(base: ArchiveView | None) -> Callable[[ArchivedLog, int], int]:
    """Tells the first transaction of a log at or behind a time. A log that begins earlier is read for it, if it is one
    of those that are archived already; of one that is new, or damaged before it, the first of all is told."""

    def told(log: ArchivedLog, since_ms: int) -> int:
        row = base.rows.get(log.token) if base is not None else None
        if base is None or row is None or log.min_time_ms >= since_ms:
            return log.first
        found = LogTimes(base).first_later(log, log.first, log.last, since_ms - 1)
        return found[0] if found is not None else log.first

    return told


def with_whole_objects(
    base: ArchiveView | None, logs: Sequence[ArchivedLog], chosen: Sequence[ArchivedLog]
) -> list[ArchivedLog]:
    """The chosen ones, with every piece that lies before one of them in the same object."""
    if base is None or not base.within:
        return list(chosen)
    needed = {base.rows[log.token].token for log in chosen if log.token in base.within}
    wanted = {log.token for log in chosen} | {token for token in base.within if base.rows[token].token in needed}
    return [log for log in logs if log.token in wanted]
