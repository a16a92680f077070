"""Backups whose logs were folded without them, as `info`, `verify`, `status` and restores report them. Pure."""

from typing import TYPE_CHECKING

from logkeep.model.findings import Finding, Severity
from logkeep.repository.backups.folds import folded_over, span_of

if TYPE_CHECKING:
    from logkeep.repository.backups.manifest import Manifest
    from logkeep.repository.chain.fold import Folded, FoldedLog

FOLDED_OVER = "folded-over"


def folded_over_text(fold: "FoldedLog") -> str:
    return (
        f"folded over: offsets {span_of(fold)} were folded while this backup was deleted, and records that only this "
        "backup needed are gone"
    )


def folded_over_remedy(fold: "FoldedLog") -> str:
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
