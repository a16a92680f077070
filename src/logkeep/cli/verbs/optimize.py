"""What the verbs that merge small objects have in common: their options, how they run, and what they tell."""

from typing import TYPE_CHECKING

import msgspec

from logkeep.cli.frame.execute import Run
from logkeep.cli.terminal.text import TerminalStyle, count, size
from logkeep.cli.wiring import STORE_EXITS, chosen_engine, chosen_source
from logkeep.config.options import (
    ENGINE_OPTIONS,
    LEASE_TTL,
    LIMIT_DOWNLOAD,
    LIMIT_UPLOAD,
    STORE_OPTIONS,
    WRITE_OPTIONS,
)
from logkeep.kinds import SourceKind, require_kind
from logkeep.model.findings import Finding
from logkeep.repository.chain.commits import SourceRef

if TYPE_CHECKING:
    from logkeep.repository.upkeep.optimize import Optimizing

WHERE = STORE_OPTIONS
"""Named before the size that a verb merges up to, …"""
HOW = (*ENGINE_OPTIONS, LIMIT_UPLOAD, LIMIT_DOWNLOAD, *WRITE_OPTIONS)
"""… and after it."""
EXITS = (10, 20, 50, *STORE_EXITS)


class OptimizeReport(msgspec.Struct, frozen=True, kw_only=True):
    source: str
    objects_before: int
    """Small objects that were merged."""
    objects_after: int
    """What they became."""
    size_bytes: int
    findings: tuple[Finding, ...]
    """Objects that were left as they are because they are not what was archived."""
    dry_run: bool


def optimize_text(report: OptimizeReport, look: TerminalStyle) -> str:
    if not report.objects_before and not report.findings:
        return look.text(f"nothing to merge in {report.source}")
    done = "would merge" if report.dry_run else "merged"
    lines = [
        f"{done} {count(report.objects_before)} objects of {report.source} into {count(report.objects_after)}, "
        f"{size(report.size_bytes)}",
        *(f"{f.severity.upper():8}{f.where}: {f.what}" for f in report.findings),
    ]
    return look.text("\n".join(lines))


def optimize_code(report: OptimizeReport) -> int:
    return 10 if report.findings else 0


def optimized(run: Run, kind: SourceKind, segment_bytes: int) -> OptimizeReport:
    """Merge small objects of a source up to this size, or report what would be merged."""
    from logkeep.repository.upkeep.merge_plan import MergeRule  # noqa: PLC0415 - loads Arrow, which --help can spare

    place = chosen_source(run)
    require_kind(place, kind)
    task, rule = merger(run, place, kind), MergeRule(segment_bytes)
    done = task.preview(rule) if run.dry_run else task.run(rule, lambda size_bytes: chosen_engine(run, size_bytes))
    return OptimizeReport(
        source=place.source,
        objects_before=done.objects_before,
        objects_after=done.objects_after,
        size_bytes=done.size_bytes,
        findings=done.findings,
        dry_run=run.dry_run,
    )


def merger(run: Run, place: SourceRef, kind: SourceKind) -> "Optimizing":
    from logkeep.repository.upkeep.optimize import Optimizing  # noqa: PLC0415 - loads Arrow, which --help can spare

    assert kind.merge_way is not None  # noqa: S101  only kinds that can merge have the verb
    return Optimizing(place, kind.merge_way(), run.clock, run.token, run[LEASE_TTL])
