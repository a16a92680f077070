"""Backups whose logs were folded without them, and folds whose commits are lost, as verbs report them. Pure."""

from collections.abc import Mapping
from typing import TYPE_CHECKING

from logkeep.model.findings import Finding, Severity
from logkeep.model.segments import LogName
from logkeep.repository.backups.folds import folded_over, span_of
from logkeep.repository.chain.fold import FoldedCut, FoldedLog

if TYPE_CHECKING:
    from logkeep.kafka.record.documents import ClusterRecord
    from logkeep.repository.backups.manifest import Manifest
    from logkeep.repository.chain.fold import Folded

FOLDED_OVER = "folded-over"


def folded_over_text(fold: FoldedLog) -> str:
    return (
        f"folded over: offsets {span_of(fold)} were folded while this backup was deleted, and records that only this "
        "backup needed are gone"
    )


def folded_over_remedy(fold: FoldedLog) -> str:
    kept = ", ".join(str(cut.id) for cut in fold.cuts[-3:])
    return f"use one of the backups that the fold honoured ({kept}), or a later one, and delete this one"


def folded_over_findings(folded: "Folded", manifest: "Manifest") -> tuple[Finding, ...]:
    return tuple(
        Finding(
            code=FOLDED_OVER,
            severity=Severity.DAMAGE,
            where=f"{fold.log.name}/{fold.log.partition}",
            what=folded_over_text(fold),
            remedy=folded_over_remedy(fold),
        )
        for fold in folded_over(folded, manifest.id, manifest.cut)
    )


def folded_ends(folded: "Folded", last: "ClusterRecord | None") -> dict[LogName, int]:
    """The offset below which each log was folded, by the chain and by the last backup: a repair may have kept that
    backup and lost the commit of a fold."""
    ends = {log.log: log.folded_to for log in (last.logs if last is not None else ()) if log.folded_to}
    for log, fold in folded.folded_logs().items():
        ends[log] = max(fold.end, ends.get(log, 0))
    return ends


def known_folds(
    folds: Mapping[LogName, FoldedLog], record: "ClusterRecord", backup_id: int
) -> dict[LogName, FoldedLog]:
    """The folds of a backup's logs. If the commit of a fold is lost, only the backup's own cut is a restore point."""
    known = dict(folds)
    for log in record.logs:
        name = log.log
        if log.folded_to > (known[name].end if name in known else 0):
            own = FoldedCut(backup_id, log.start, log.end)
            known[name] = FoldedLog(
                log=name,
                start=log.start,
                end=log.folded_to,
                last_id=backup_id,
                generation=0,
                committed="",
                dense_to=0,
                cuts=(own,),
            )
    return known
