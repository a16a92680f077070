"""What the reports of `kafka backup`, `kafka salvage` and `kafka import` share: all archive logs."""

from collections.abc import Iterator
from typing import TypeVar

import msgspec

from logkeep.cli.frame.execute import CommandOutcome
from logkeep.cli.frame.metrics import MetricSample, sample
from logkeep.cli.terminal.finding_text import finding_texts
from logkeep.cli.terminal.text import plural, size
from logkeep.kafka.backup.assemble import exit_code
from logkeep.model.findings import Finding, Severity
from logkeep.repository.backups.manifest import KnownGap

FIRST_SOURCE = "kafka"
"""The name of the very first source, when none is given."""


class KafkaCopied(msgspec.Struct, frozen=True, kw_only=True):
    source: str
    id: int | None
    """Null on a dry run."""
    cluster_id: str
    topics: int
    partitions: int
    groups: int
    open_transactions: int
    units: int
    new_offsets: int
    """Offsets that this run adds to the last backup; not every offset has a record."""
    new_bytes: int
    """As stored; an estimate on a dry run."""
    stored_bytes: int | None
    gaps: tuple[str, ...]
    findings: tuple[Finding, ...]
    allow_gaps: bool
    dry_run: bool
    to_compare: tuple[str, ...] = ()
    """On a dry run: logs that would be compared with the live ones unless no offset is missing, why, and the bytes."""
    generations_due: tuple[str, ...] = ()
    """On a dry run: topics whose active generation is too old, so that the run would begin a new one."""
    catch_up: str | None = None
    """What was copied of the next generation of a compacted topic, beside the active one; null: nothing was."""


CopiedT = TypeVar("CopiedT", bound=KafkaCopied)


def copied_lines(report: KafkaCopied, beside: str = "") -> list[str]:
    """What was copied, from which cluster, and the findings."""
    done = "would copy" if report.dry_run else f"backup {report.id} of {report.source}: copied"
    about = "about " if report.dry_run else ""
    return [
        f"{done} {plural(report.new_offsets, 'offset')}, {about}{size(report.new_bytes)}, "
        f"in {plural(report.units, 'unit')}",
        f"{plural(report.topics, 'topic')} · {plural(report.partitions, 'partition')} · "
        f"{plural(report.groups, 'group')} · {plural(report.open_transactions, 'open transaction')} · "
        f"cluster {report.cluster_id}{beside}",
        *(f"COMPARE {log}" for log in report.to_compare),
        *(f"GENERATION {topic}: would begin a new one" for topic in report.generations_due),
        *([f"CATCH-UP {report.catch_up}"] if report.catch_up else []),
        *(f"GAP   {gap}" for gap in report.gaps),
        *finding_texts(report.findings),
    ]


def copied_code(report: KafkaCopied, lost: int = 0) -> int:
    """`lost` counts findings that mean lost records, as gaps do."""
    warnings = sum(f.severity is not Severity.NOTE for f in report.findings)
    return exit_code(len(report.gaps) + lost, warnings, allow_gaps=report.allow_gaps)


def copied_metrics(outcome: CommandOutcome[CopiedT]) -> Iterator[MetricSample]:
    report = outcome.report
    source = report.source if report else outcome.source or FIRST_SOURCE
    yield sample("logkeep_backup_duration_seconds", outcome.duration.total_seconds(), source=source)
    yield sample("logkeep_backup_success", 1 if report else 0, source=source)
    if report is not None:
        yield sample("logkeep_backup_size_bytes", report.stored_bytes or 0, source=source)
        yield sample("logkeep_backup_last_success_timestamp_seconds", outcome.ended.timestamp(), source=source)


def gap_text(gap: KnownGap) -> str:
    return f"{gap.log} [{gap.start}, {gap.end}): {gap.reason}"
