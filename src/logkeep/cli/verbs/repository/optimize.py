"""`logkeep kafka optimize` and `zookeeper optimize`: merge the small objects of frequent backups into larger ones."""

from typing import TYPE_CHECKING

import msgspec

from logkeep.cli.frame.execute import Run
from logkeep.cli.frame.verb import verb
from logkeep.cli.terminal.finding_text import finding_texts
from logkeep.cli.terminal.text import TerminalStyle, count, plural, size
from logkeep.cli.wiring import STORE_EXITS, chosen_engine, chosen_source, object_bytes
from logkeep.config.options import (
    ENGINE_OPTIONS,
    LEASE_TTL,
    LIMIT_DOWNLOAD,
    LIMIT_UPLOAD,
    SEGMENT_BYTES,
    STORE_OPTIONS,
    WRITE_OPTIONS,
    ZK_SEGMENT_BYTES,
)
from logkeep.kinds import KAFKA, ZOOKEEPER, SourceKind, require_kind
from logkeep.model.findings import Finding
from logkeep.repository.chain.commits import SourceRef

if TYPE_CHECKING:
    from logkeep.repository.upkeep.optimize import Optimizing

_WHERE = STORE_OPTIONS
"""Options before --segment-bytes, …"""
_HOW = (*ENGINE_OPTIONS, LIMIT_UPLOAD, LIMIT_DOWNLOAD, *WRITE_OPTIONS)
"""… and after it."""
_EXITS = (10, 20, 50, *STORE_EXITS)


class OptimizeReport(msgspec.Struct, frozen=True, kw_only=True):
    source: str
    objects_before: int
    """Small objects that were merged."""
    objects_after: int
    """Objects that replace them."""
    size_bytes: int
    findings: tuple[Finding, ...]
    """Objects that were not merged because they are damaged."""
    dry_run: bool


def _text(report: OptimizeReport, look: TerminalStyle) -> str:
    if not report.objects_before and not report.findings:
        return look.text(f"nothing to merge in {report.source}")
    done = "would merge" if report.dry_run else "merged"
    lines = [
        f"{done} {plural(report.objects_before, 'object')} of {report.source} into {count(report.objects_after)}, "
        f"{size(report.size_bytes)}",
        *finding_texts(report.findings),
    ]
    return look.text("\n".join(lines))


def _code(report: OptimizeReport) -> int:
    return 10 if report.findings else 0


def _optimize(run: Run, kind: SourceKind, segment_bytes: int) -> OptimizeReport:
    """Merge small objects of a source up to this size, or report what would be merged."""
    from logkeep.repository.upkeep.merge_plan import MergeRule  # noqa: PLC0415 - loads Arrow, which --help can spare

    place = chosen_source(run)
    require_kind(place, kind)
    task, rule = merger(run, place, kind), MergeRule(segment_bytes)
    done = (
        task.preview(rule)
        if run.dry_run
        else task.run(rule, lambda size_bytes: chosen_engine(run, size_bytes, work="merge"))
    )
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


@verb(
    report=OptimizeReport,
    text=_text,
    options=(*_WHERE, SEGMENT_BYTES, *_HOW),
    exits=_EXITS,
    exit_code=_code,
    changes=True,
    examples=("logkeep kafka optimize --dry-run", "logkeep kafka optimize --segment-bytes 1GiB"),
)
def optimize_kafka(run: Run) -> OptimizeReport:
    """Merge the small objects of frequent backups into larger ones, for all backups at once.

    Adjacent objects of one log become one object of at most --segment-bytes, byte for byte; every hash and checksum is
    verified. All backups use the new object from then on, also earlier ones. The old objects become garbage, which
    `prune` removes. `kafka backup --follow` merges by itself from time to time.
    """
    return _optimize(run, KAFKA, object_bytes(run))


@verb(
    report=OptimizeReport,
    text=_text,
    options=(*_WHERE, ZK_SEGMENT_BYTES, *_HOW),
    exits=_EXITS,
    exit_code=_code,
    changes=True,
    examples=("logkeep zookeeper optimize --dry-run", "logkeep zookeeper optimize --segment-bytes 256MiB"),
)
def optimize_zookeeper(run: Run) -> OptimizeReport:
    """Merge the small objects of frequent backups into larger ones, for all backups at once.

    Adjacent objects of one log file become one object of at most --segment-bytes: the same records; every hash and
    checksum is verified. All backups use the new object from then on, also earlier ones. The old objects become
    garbage, which `prune` removes. `zookeeper backup --follow` merges by itself from time to time.
    """
    return _optimize(run, ZOOKEEPER, run[ZK_SEGMENT_BYTES])
