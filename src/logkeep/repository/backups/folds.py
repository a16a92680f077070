"""Folded logs of a backup: whether the last fold honoured its cut, and which restore points are left. Pure."""

from collections.abc import Iterable, Mapping, Sequence

from logkeep.model.ranges import Range
from logkeep.model.segments import LogName
from logkeep.repository.backups.manifest import LogCut
from logkeep.repository.chain.fold import Burial, Folded, FoldedCut, FoldedLog


def folds_by_log(folded: Folded, logs: Iterable[LogName]) -> dict[LogName, FoldedLog]:
    """The last fold of each of these logs that was folded."""
    known = folded.folded_logs()
    return {log: known[log] for log in logs if log in known}


def folded_over(folded: Folded, backup_id: int, cut: Iterable[LogCut]) -> list[FoldedLog]:
    """Logs that were folded without this backup: it was deleted then, and a repair brought it back.

    A backup that was taken later continues what the fold left. One with the cut of an honoured backup has the same
    records, if the same ones are buried in both.
    """
    known, burials = folded.folded_logs(), folded.buried or ()
    found = ((known[each.log], each) for each in cut if each.log in known and each.start < each.end)
    early = ((fold, each) for fold, each in found if backup_id <= fold.last_id and each.end > fold.start)
    return [fold for fold, each in early if not any(_has_records(kept, backup_id, each, burials) for kept in fold.cuts)]


def _has_records(kept: FoldedCut, backup_id: int, cut: LogCut, burials: Sequence[Burial]) -> bool:
    """Whether an honoured backup is this one, or ends like it and has the same offsets buried."""
    low, high = sorted((kept.id, backup_id))
    alike = kept.end == cut.end and kept.start <= cut.start
    return low == high or (alike and not any(b.log == cut.log and low < b.first <= high for b in burials))


def is_restore_point(fold: FoldedLog, end: int) -> bool:
    """Whether the latest record of each key is still there if a log is restored up to an offset."""
    return end <= fold.start or end >= fold.end or any(cut.end == end for cut in fold.cuts)


def restore_points(fold: FoldedLog, backup_end: int) -> tuple[int, ...]:
    """The offsets in the folded span up to which a log can be restored."""
    return tuple(sorted({cut.end for cut in fold.cuts if cut.end <= backup_end}))


def span_of(fold: FoldedLog) -> Range:
    return Range(fold.start, fold.end)


def with_dense(folded: Folded, backup_id: int, dense: Iterable[LogName]) -> set[LogName]:
    """Logs that are dense, or were before they were folded: a fold leaves holes that compaction did not make."""
    known: Mapping[LogName, FoldedLog] = folded.folded_logs()
    return {*dense, *(log for log, fold in known.items() if backup_id <= fold.dense_to)}
