"""What `logkeep kafka restore` says: the plan before, and what became of it after."""

from collections.abc import Iterator
from datetime import timedelta

import msgspec

from logkeep.cli.look import Look, count, duration, size
from logkeep.cli.receipt_text import finding_lines, group_lines, partition_lines
from logkeep.model.findings import Finding
from logkeep.repository.restores import RestoredGroup, RestoredPartition, Verdict


class KafkaRestoreReport(msgspec.Struct, frozen=True, kw_only=True):
    source: str
    backup: int
    restore: int | None
    """The id to resume, abort or look up; null on a dry run."""
    cluster_id: str
    """Of the target."""
    offsets: str
    why: str
    """Why offsets are kept or not."""
    topics: tuple[str, ...]
    """In the target."""
    records: int
    """On a dry run at most so many: those of aborted transactions are counted."""
    bytes: int
    seconds: float
    """That it took; on a dry run about what it will take."""
    verdict: str
    """`proven`, `unproven`, `failed`, or `planned` on a dry run."""
    partitions: tuple[RestoredPartition, ...]
    groups: tuple[RestoredGroup, ...]
    group_names: tuple[str, ...]
    refusals: tuple[str, ...]
    """Why the plan must not be carried out; only on a dry run, otherwise it is an error."""
    findings: tuple[Finding, ...]
    dry_run: bool


def restore_text(report: KafkaRestoreReport, look: Look) -> str:
    if report.dry_run:
        return "\n".join(plan_lines(report, look))
    state = look.state("OK" if report.verdict != Verdict.FAILED else "FAIL")
    head = f"{state}  restore {report.restore} of backup {report.backup}: {report.verdict}"
    took = duration(timedelta(seconds=report.seconds))
    lines = [head, look.text(f"{_amount(report)} to cluster {report.cluster_id} in {took}")]
    lines += partition_lines(report.partitions, look, every=False) if report.partitions else []
    lines += group_lines(report.groups, look, every=False) if report.groups else []
    lines += finding_lines(report.findings, look, every=False)
    if report.verdict == Verdict.FAILED:
        lines.append(f"when it is mended: logkeep kafka restore --resume {report.restore}")
    return "\n".join(lines)


def _amount(report: KafkaRestoreReport) -> str:
    return f"{count(len(report.topics))} topics · {count(report.records)} records · {size(report.bytes)}"


def plan_lines(report: KafkaRestoreReport, look: Look) -> Iterator[str]:
    yield look.text(f"restore of backup {report.backup} of {report.source} to cluster {report.cluster_id}")
    yield look.text(f"{_amount(report)} · about {duration(timedelta(seconds=report.seconds))}")
    yield look.line(f"offsets: {report.offsets} ({report.why})")
    headers = ("FROM", "TO", "OFFSETS", "RECORDS", "SIZE")
    rows = [
        (
            f"{p.source_topic}/{p.source_partition}",
            f"{p.topic}/{p.partition}",
            p.detail,
            count(p.records),
            size(p.bytes),
        )
        for p in report.partitions[:_SHOWN]
    ]
    yield look.table(headers, rows, right="RECORDS,SIZE", spare="OFFSETS")
    if len(report.partitions) > _SHOWN:
        yield look.text(f"… and {count(len(report.partitions) - _SHOWN)} more partitions; --json has all")
    if report.group_names:
        shown = ", ".join(report.group_names[:_NAMED]) + (" …" if len(report.group_names) > _NAMED else "")
        yield look.line(f"groups that are set: {shown} ({count(len(report.group_names))})")
        over = [g for g in report.groups if g.previous_offset is not None and g.previous_offset != g.offset]
        if over:
            yield look.text(f"positions in the target that are overwritten: {count(len(over))}")
    yield from finding_lines(report.findings, look, every=False)
    for refusal in report.refusals:
        yield look.line(f"REFUSED {refusal}")


def _planned_cells(row: RestoredPartition) -> tuple[str, ...]:
    source, target = f"{row.source_topic}/{row.source_partition}", f"{row.topic}/{row.partition}"
    return source, target, row.detail, count(row.records), size(row.bytes)


_SHOWN, _NAMED = 40, 8
