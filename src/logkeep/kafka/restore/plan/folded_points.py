"""Restore points in folded logs. Pure.

A fold keeps the latest record of each key at the cuts of kept backups. Between two of them a key that was overwritten
later may be missing altogether, so other points are refused.
"""

from collections.abc import Iterable, Mapping, Sequence
from typing import TYPE_CHECKING

from logkeep.errors import UsageError
from logkeep.model.ranges import Range
from logkeep.model.segments import LogName, Segment
from logkeep.repository.backups.folds import is_restore_point, restore_points, span_of
from logkeep.repository.chain.fold import FoldedLog

if TYPE_CHECKING:
    from logkeep.kafka.record.backup_view import KafkaBackupView
    from logkeep.kafka.restore.plan.values import PlannedLog

_SHOWN = 8


def refuse_folded_points(view: "KafkaBackupView", wanted: Mapping[LogName, Range], until_ms: int | None) -> None:
    """Raises UsageError for an offset or time that a fold removed from one of these logs."""
    folded = {log: span for log, span in wanted.items() if log in view.folds}
    if folded:
        cuts = {cut.log: cut.end for cut in view.manifest.cut}
        refuse_lost_points(view.folds, cuts, folded, view.segments(folded), until_ms)


def refuse_lost_points(
    folds: Mapping[LogName, FoldedLog],
    cuts: Mapping[LogName, int],
    wanted: Mapping[LogName, Range],
    rows: Mapping[LogName, Sequence[Segment]],
    until_ms: int | None,
) -> None:
    """Raises UsageError if a log would end at an offset or time that a fold removed.

    `cuts` are the ends of the backup, `wanted` the ranges to restore, `rows` their segments.
    """
    for log, fold in sorted(folds.items()):
        if log not in wanted:
            continue
        end = wanted[log].end
        if end < cuts[log] and not is_restore_point(fold, end):
            raise _lost(log, fold, cuts[log], f"it cannot be restored up to offset {end}", "--until-offset")
        if until_ms is not None and _newest_ms(fold, rows.get(log, ())) >= until_ms:
            raise _lost(log, fold, cuts[log], "it cannot be restored up to this time", "--until-time")


def _newest_ms(fold: FoldedLog, rows: Iterable[Segment]) -> int:
    return max((row.max_time_ms for row in rows if row.start < fold.end and row.end > fold.start), default=-1)


def _lost(log: LogName, fold: FoldedLog, backup_end: int, what: str, option: str) -> UsageError:
    points = [str(point) for point in restore_points(fold, backup_end)]
    shown = ", ".join([*(["…"] if len(points) > _SHOWN else []), *points[-_SHOWN:]])
    kept = ", ".join(str(cut.id) for cut in fold.cuts[-_SHOWN:])
    return UsageError(
        f"{what}: offsets {span_of(fold)} were folded, and earlier records of a key are gone",
        subject=f"{log.name}/{log.partition}: {option}",
        remedy=f"points that are left: the whole backups {kept}; --until-offset {log.name}:{log.partition}=N with N "
        f"among {shown}, or from {fold.end} on; a time after all records below {fold.end}",
    )


def folded_since(folds: Mapping[LogName, FoldedLog], planned: Iterable["PlannedLog"]) -> list[LogName]:
    """Logs that were folded after a restore was planned: its target has records that the archive lost.

    By the generations of the chain: clocks of two machines may differ.
    """
    now = {log: fold.generation for log, fold in folds.items()}
    return sorted({each.log for each in planned if now.get(each.log, 0) != (each.fold or 0)})
