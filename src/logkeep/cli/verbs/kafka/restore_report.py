"""The report of `logkeep kafka restore`: the plan, its confirmation, and the result."""

from collections.abc import Iterator
from datetime import timedelta
from typing import ClassVar

import msgspec

from logkeep.application.kafka.restore import AppendedRecords
from logkeep.cli.frame.execute import Run
from logkeep.cli.terminal.text import TerminalStyle, duration, plural, size
from logkeep.cli.verbs.restore_text import finding_lines, group_lines, partition_lines, planned_lines
from logkeep.config.options import CONFIRM_CLUSTER, JSON, QUIET, YES
from logkeep.errors import TargetUnsafe
from logkeep.kafka.restore.plan.values import RestorePlan
from logkeep.kafka.restore.prepare import PreparedKafkaRestore
from logkeep.kafka.restore.run import KafkaRestoreDone
from logkeep.model.findings import Finding, Severity
from logkeep.model.plurals import first_names
from logkeep.model.shell_words import shell_word
from logkeep.repository.restores import RestoredGroup, RestoredPartition, RestoreVerdict

BAD = frozenset({RestoreVerdict.FAILED, RestoreVerdict.CHANGED})
_GAPS = frozenset({"gap", "known-gap"})
"""Findings about offsets that the backup lacks: of a restore into a cluster, and of one into files."""


class OfflineFile(msgspec.Struct, frozen=True, kw_only=True):
    path: str
    size: int
    records: int
    sha256: str


class OfflinePart(msgspec.Struct, frozen=True, kw_only=True):
    """Of a restore into the directories of a broker that is stopped."""

    several_lines: ClassVar = ("procedure",)
    running: bool
    """Whether the broker still runs."""
    elsewhere: tuple[str, ...]
    """Partitions without a directory here."""
    procedure: str
    """The steps before and after, for the operator."""
    files: tuple[OfflineFile, ...]
    """The files as read back."""


class KafkaRestoreReport(msgspec.Struct, frozen=True, kw_only=True):
    source: str
    backup: int
    restore: int | None
    """The id to resume, abort or look up (of a restore into files only to look up); null on a dry run."""
    cluster_id: str
    """Of the target."""
    offsets: str
    why: str
    """Why offsets are kept or not."""
    topics: tuple[str, ...]
    """In the target."""
    records: int
    """An upper bound on a dry run: records of aborted transactions are counted."""
    bytes: int
    seconds: float
    """The duration; an estimate on a dry run."""
    verdict: str
    """`proven`, `unproven`, `failed`, or `planned` on a dry run; `changed`: it had succeeded, and a later comparison
    found that target or archive have changed."""
    partitions: tuple[RestoredPartition, ...]
    groups: tuple[RestoredGroup, ...]
    group_names: tuple[str, ...]
    refusals: tuple[str, ...]
    """Why the plan must not be carried out; only on a dry run, otherwise it is an error."""
    refusal_code: int = 0
    """The exit code of a run."""
    findings: tuple[Finding, ...]
    appended: tuple[AppendedRecords, ...] = ()
    """Of the backup of an application: records in transit that were appended, with their old and new offsets."""
    offline: OfflinePart | None = None
    """Only with --to-log-dirs."""
    imported: bool = False
    """Whether the records come from a dataset (--from)."""
    dry_run: bool


def restore_code(report: KafkaRestoreReport) -> int:
    """With --from a gap is found by this command, as by `kafka import`; that of a backup is known since it was made."""
    if report.verdict in BAD:
        return 30
    if report.refusals:
        return report.refusal_code
    if report.imported and any(f.code in _GAPS for f in report.findings):
        return 21
    return 2 if any(f.severity is not Severity.NOTE for f in report.findings) else 0


def restore_text(report: KafkaRestoreReport, look: TerminalStyle) -> str:
    if report.dry_run:
        return plan_text(report, look)
    state = look.state("FAIL" if report.verdict in BAD else "OK")
    name = "restore into files" if report.offline else f"restore {report.restore}"
    head = f"{state}  {name} of backup {report.backup}: {report.verdict}"
    lines = [head, look.text(_amount(report)), look.text(_where(report))]
    if report.appended:
        sent = plural(sum(len(each.old) for each in report.appended), "record")
        lines.append(look.text(f"{sent} in transit appended: produced inside the cut, not read yet"))
    lines += _blocks(report, look)
    lines += finding_lines(report.findings, look, every=False)
    return "\n".join([*lines, *_what_now(report, look)])


def _blocks(report: KafkaRestoreReport, look: TerminalStyle) -> Iterator[str]:
    hint = "--json has every one" if report.offline else f"`logkeep receipts show {report.restore} --all` has every one"
    if report.partitions:
        offline = report.offline is not None  # files are compared before they are in place
        table = partition_lines(report.partitions, look, every=False, hint=hint, compared=not offline, details=offline)
        yield from ["", *table]
    if report.groups:
        yield from ["", *group_lines(report.groups, look, every=False, hint=hint)]
    yield ""


def _what_now(report: KafkaRestoreReport, look: TerminalStyle) -> list[str]:
    """The next command to run."""
    if report.offline:
        return [
            look.text("continue with the procedure that the dry run prints: start the broker, then check"),
            look.text(f"receipt: logkeep receipts show {report.restore}"),
        ]
    if report.verdict == RestoreVerdict.CHANGED:
        return ["", *map(look.text, _after_change(report))]
    if report.verdict == RestoreVerdict.FAILED:
        return ["", *map(look.text, _next_steps(report))]
    return []


def _after_change(report: KafkaRestoreReport) -> Iterator[str]:
    yield "the restore itself had succeeded; this changed since then, and nothing was written now"
    yield f"its own receipt:           logkeep receipts show {report.restore}"
    yield f"groups can still be set:   logkeep kafka groups restore {report.restore}"
    yield "records that are missing:  restore them again, under another name (--rename)"


def _next_steps(report: KafkaRestoreReport) -> Iterator[str]:
    if any(finding.code in _FOR_GOOD for finding in report.findings):
        yield "it cannot be resumed: another client has written to the target or deleted from it"
        yield f"abort it, then start again:  logkeep kafka restore abort {report.restore}"
        return
    yield f"after the cause is fixed:  logkeep kafka restore --resume {report.restore}"
    yield f"or abort it:               logkeep kafka restore abort {report.restore}"


def _where(report: KafkaRestoreReport) -> str:
    """An unfinished restore has no final offsets."""
    offsets = (
        "" if report.verdict == RestoreVerdict.FAILED else f", offsets {_OFFSETS.get(report.offsets, report.offsets)}"
    )
    return f"to cluster {report.cluster_id} in {duration(timedelta(seconds=report.seconds))}{offsets}"


def _amount(report: KafkaRestoreReport) -> str:
    most = "up to " if report.dry_run and not report.offline else ""
    return f"{plural(len(report.topics), 'topic')} · {most}{plural(report.records, 'record')} · {size(report.bytes)}"


def plan_text(report: KafkaRestoreReport, look: TerminalStyle) -> str:
    return "\n".join(_plan_lines(report, look))


def _plan_lines(report: KafkaRestoreReport, look: TerminalStyle) -> Iterator[str]:
    yield look.text(f"restore of backup {report.backup} of {report.source} to cluster {report.cluster_id}")
    yield look.text(_amount(report) + ("" if report.offline else f" · {_about(report.seconds)}"))
    yield look.prose(f"offsets: {report.offsets} ({report.why})", indent=len("offsets: "))
    if report.partitions:
        yield from ["", *planned_lines(report.partitions, look), ""]
    yield from _groups(report, look)
    yield from finding_lines(report.findings, look, every=False)
    for refusal in report.refusals:
        yield look.prose(f"REFUSED {refusal}", indent=len("REFUSED "))
    if report.offline:
        yield from _offline_lines(report.offline, look)


def _about(seconds: float) -> str:
    """For short restores the start takes longer than the data: there is no better estimate."""
    return f"about {duration(seconds)}" if seconds >= _SHORT_S else "less than a minute"


def _groups(report: KafkaRestoreReport, look: TerminalStyle) -> Iterator[str]:
    if not report.group_names:
        return
    yield look.prose(
        f"{plural(len(report.group_names), 'group')} to be set: {first_names(report.group_names, _NAMED)}", indent=2
    )
    over = [g for g in report.groups if g.previous_offset is not None and g.previous_offset != g.offset]
    if over:
        yield look.text(f"{plural(len(over), 'position')} of groups in the target will be overwritten")


def _offline_lines(offline: OfflinePart, look: TerminalStyle) -> Iterator[str]:
    if offline.running:
        yield look.text("the broker runs: it must be stopped before the files are written")
    if offline.elsewhere:
        missing = plural(len(offline.elsewhere), "partition")
        yield look.prose(f"no directory here for {missing}: {first_names(offline.elsewhere, _NAMED)}", indent=2)
    yield ""
    yield from map(look.line, offline.procedure.splitlines())


def confirm_plan(run: Run, planned: KafkaRestoreReport, question: str, own_cluster: str) -> None:
    """Show the plan and ask. With --yes it is printed too, so that a log of the run has it.

    Raises Declined. If the target is the cluster that was backed up, its id must be typed or given as an option.

    `own_cluster` is that id when it is the target, else empty.
    """
    if run.console.interactive and not run[YES]:
        run.show(plan_text, planned)
    if not own_cluster or run[CONFIRM_CLUSTER] == own_cluster:
        run.confirm(question)
        _print_plan(run, planned)
        return
    if run[YES] or not run.console.interactive:
        raise TargetUnsafe(
            _OWN, subject=own_cluster, remedy=f"if this is intended, pass --confirm-cluster {shell_word(own_cluster)}"
        )
    run.console.confirm(f"{_OWN}; {question}", typed=own_cluster)


def _print_plan(run: Run, planned: KafkaRestoreReport) -> None:
    """With --yes the plan is for later readers of the log; with --json there is no text."""
    if run[YES] and not run[QUIET] and not run[JSON]:
        run.show(plan_text, planned)


_OFFSETS = {"preserve": "preserved", "translate": "translated"}
_FOR_GOOD = frozenset({"foreign-writer", "marker-misplaced", "topic-gone"})
"""Findings after which a resume cannot succeed. A failed proof is not one: perhaps a read permission was missing."""
_NAMED, _SHORT_S = 8, 30.0
_OWN = "this is the cluster that was backed up"


def plan_report(source: str, prepared: PreparedKafkaRestore) -> KafkaRestoreReport:
    plan = prepared.plan
    return KafkaRestoreReport(
        source=source,
        backup=prepared.view.entry.id,
        restore=None,
        cluster_id=plan.cluster_id,
        offsets=plan.offsets,
        why=plan.why,
        topics=tuple(t.name for t in plan.topics),
        records=plan.records,
        bytes=plan.bytes,
        seconds=prepared.checked.seconds,
        verdict="planned",
        partitions=_plan_rows(plan),
        groups=prepared.group_rows,
        group_names=tuple(g.name for g in prepared.groups.groups),
        refusals=tuple(f"{each}; {each.remedy}" for each in prepared.refusals),
        refusal_code=prepared.refusals[0].exit_code if prepared.refusals else 0,
        findings=(*prepared.findings, *([_own_cluster(plan.cluster_id)] if prepared.target.is_source else [])),
        dry_run=True,
    )


def _own_cluster(cluster_id: str) -> Finding:
    return Finding(
        code="source-cluster",
        severity=Severity.NOTE,
        where=cluster_id,
        what="this is the cluster that was backed up: a run asks for its id, or for --confirm-cluster",
    )


def _plan_rows(plan: RestorePlan) -> tuple[RestoredPartition, ...]:
    return tuple(
        RestoredPartition(
            source_topic=log.log.name,
            source_partition=log.log.partition,
            topic=log.topic,
            partition=log.partition,
            mode=plan.offsets,
            records=log.records,
            bytes=log.bytes,
            end=log.end,
            outcome="planned",
            detail=f"[{log.start}, {log.end})" + (" by key" if log.spread_over else ""),
        )
        for log in plan.logs
    )


def result_report(source: str, done: KafkaRestoreDone) -> KafkaRestoreReport:
    receipt, plan = done.receipt, done.plan
    return KafkaRestoreReport(
        source=source,
        backup=done.backup,
        restore=done.restore_id,
        cluster_id=plan.cluster_id,
        offsets=plan.offsets,
        why=plan.why,
        topics=tuple(t.name for t in plan.topics),
        records=sum(p.records for p in receipt.partitions),
        bytes=sum(p.bytes for p in receipt.partitions),
        seconds=receipt.duration_s,
        verdict=receipt.verdict,
        partitions=receipt.partitions,
        groups=receipt.groups,
        group_names=tuple(sorted({g.group for g in receipt.groups if g.offset is not None})),
        refusals=(),
        findings=receipt.findings,
        dry_run=False,
    )
