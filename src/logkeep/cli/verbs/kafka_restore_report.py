"""What `logkeep kafka restore` says: the plan before, and what became of it after."""

from collections.abc import Iterator
from datetime import timedelta

import msgspec

from logkeep.cli.look import Look, count, duration, size
from logkeep.cli.receipt_text import finding_lines, group_lines, partition_lines
from logkeep.model.findings import Finding
from logkeep.repository.restores import RestoredGroup, RestoredPartition, Verdict


class OfflineFile(msgspec.Struct, frozen=True, kw_only=True):
    path: str
    size: int
    records: int
    sha256: str


class OfflinePart(msgspec.Struct, frozen=True, kw_only=True):
    """Of a restore into the directories of a broker that is stopped."""

    running: bool
    """Whether the broker still runs."""
    elsewhere: tuple[str, ...]
    """Partitions without a directory here."""
    procedure: str
    """What is done before and after, step by step."""
    files: tuple[OfflineFile, ...]
    """As they were read back."""


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
    offline: OfflinePart | None = None
    """Only with --to-log-dirs."""
    dry_run: bool


def restore_text(report: KafkaRestoreReport, look: Look) -> str:
    if report.dry_run:
        return "\n".join(plan_lines(report, look))
    state = look.state("OK" if report.verdict != Verdict.FAILED else "FAIL")
    name = "restore into files" if report.offline else f"restore {report.restore}"
    head = f"{state}  {name} of backup {report.backup}: {report.verdict}"
    took = duration(timedelta(seconds=report.seconds))
    lines = [head, look.text(f"{_amount(report)} to cluster {report.cluster_id} in {took}")]
    lines += partition_lines(report.partitions, look, every=False) if report.partitions else []
    lines += group_lines(report.groups, look, every=False) if report.groups else []
    lines += finding_lines(report.findings, look, every=False)
    if report.offline:
        lines.append(look.text("now go on with the procedure that the dry run prints: start the broker, then check"))
    elif report.verdict == Verdict.FAILED:
        lines.append(f"when it is mended: logkeep kafka restore --resume {report.restore}")
    return "\n".join(lines)


def _amount(report: KafkaRestoreReport) -> str:
    return f"{count(len(report.topics))} topics · {count(report.records)} records · {size(report.bytes)}"


def plan_lines(report: KafkaRestoreReport, look: Look) -> Iterator[str]:
    yield look.text(f"restore of backup {report.backup} of {report.source} to cluster {report.cluster_id}")
    about = "" if report.offline else f" · about {duration(timedelta(seconds=report.seconds))}"
    yield look.text(f"{_amount(report)}{about}")
    yield look.line(f"offsets: {report.offsets} ({report.why})")
    headers = ("FROM", "TO", "OFFSETS", "RECORDS", "SIZE")
    rows = [_planned_cells(p) for p in report.partitions[:_SHOWN]]
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
    if report.offline:
        yield from _offline_lines(report.offline, look)


def _offline_lines(offline: OfflinePart, look: Look) -> Iterator[str]:
    if offline.running:
        yield look.text("the broker runs: it must be stopped before the files are written")
    if offline.elsewhere:
        shown = ", ".join(offline.elsewhere[:_NAMED]) + (" …" if len(offline.elsewhere) > _NAMED else "")
        yield look.line(f"no directory here for {count(len(offline.elsewhere))} partitions: {shown}")
    yield ""
    yield from map(look.line, offline.procedure.splitlines())


def _planned_cells(row: RestoredPartition) -> tuple[str, ...]:
    source, target = f"{row.source_topic}/{row.source_partition}", f"{row.topic}/{row.partition}"
    return source, target, row.detail, count(row.records), size(row.bytes)


_SHOWN, _NAMED = 40, 8
