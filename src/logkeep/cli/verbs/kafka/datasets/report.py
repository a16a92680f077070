"""What an export reports, from a backup or from a cluster."""

import msgspec

from logkeep.cli.terminal.finding_text import finding_texts
from logkeep.cli.terminal.text import plural, size
from logkeep.kafka.backup.assemble import exit_code
from logkeep.kafka.datasets.run import ExportDone, PreparedExport, holes_of
from logkeep.model.findings import Finding, Severity


class DatasetReport(msgspec.Struct, frozen=True, kw_only=True):
    format: str
    to: str
    """The directory or bucket."""
    cluster_id: str
    topics: int
    partitions: int
    groups: int
    new_offsets: int
    """Of the source since the dataset's end; not every offset has a visible record."""
    records: int
    """That were written; 0 on a dry run."""
    files: int
    """Files with records that were begun."""
    written_bytes: int
    """Of records; on a dry run, about what would be read."""
    read_bytes: int
    """Of batches, from the source."""
    gaps: tuple[str, ...]
    findings: tuple[Finding, ...]
    allow_gaps: bool
    dry_run: bool


class KafkaExportReport(DatasetReport, frozen=True, kw_only=True):
    source: str
    id: int


def dataset_report(done: ExportDone, to: str, *, allow_gaps: bool) -> DatasetReport:
    planned = plan_report(done.prepared, to, allow_gaps=allow_gaps)
    return msgspec.structs.replace(
        planned,
        records=done.sum("records"),
        files=done.sum("files"),
        written_bytes=done.sum("written_bytes"),
        read_bytes=done.sum("fetched_bytes"),
        gaps=done.holes,
        findings=done.findings,
        dry_run=False,
    )


def plan_report(prepared: PreparedExport, to: str, *, allow_gaps: bool) -> DatasetReport:
    facts, plan = prepared.facts, prepared.plan
    return DatasetReport(
        format=prepared.wanted.format,
        to=to,
        cluster_id=facts.cluster_id,
        topics=len({each.log.topic for each in facts.logs}),
        partitions=len(facts.logs),
        groups=len(facts.groups),
        new_offsets=plan.offsets,
        records=0,
        files=0,
        written_bytes=plan.size_bytes,
        read_bytes=0,
        gaps=tuple(holes_of(plan.logs, {})),
        findings=(*facts.findings, *prepared.dropped, *prepared.removed),
        allow_gaps=allow_gaps,
        dry_run=True,
    )


def dataset_lines(report: DatasetReport) -> list[str]:
    if report.dry_run:
        done = (
            f"would export {plural(report.new_offsets, 'offset')}, about {size(report.written_bytes)}, to {report.to}"
        )
    elif report.new_offsets:
        done = (
            f"exported {plural(report.records, 'record')}, {size(report.written_bytes)}, "
            f"to {report.to}: {plural(report.files, 'new file')}"
        )
    else:
        done = f"nothing new for {report.to}"
    return [
        done,
        f"{plural(report.topics, 'topic')} · {plural(report.partitions, 'partition')} · "
        f"{plural(report.groups, 'group')} · cluster {report.cluster_id} · {report.format}",
        *(f"GAP   {gap}" for gap in report.gaps),
        *finding_texts(report.findings),
    ]


def dataset_code(report: DatasetReport) -> int:
    warnings = sum(f.severity is not Severity.NOTE for f in report.findings)
    return exit_code(len(report.gaps), warnings, allow_gaps=report.allow_gaps)
