"""`logkeep backup-set take` and `status`."""

from collections.abc import Iterator, Sequence

import msgspec

from logkeep.application.backup_set.plan import (
    FAILED,
    KnownMember,
    capture_order,
    check_members,
    check_names,
    chosen_id,
    end_code,
)
from logkeep.application.backup_set.run import MemberEnd, preview_all, take_all
from logkeep.cli.frame.execute import CommandOutcome, Run
from logkeep.cli.frame.metrics import MetricSample, sample
from logkeep.cli.frame.verb import verb
from logkeep.cli.terminal.next_step import NextStep
from logkeep.cli.verbs.backup_set.declarations import STATUS, TAKE
from logkeep.cli.verbs.backup_set.members import member_capture, newest_checkpoint
from logkeep.cli.verbs.backup_set.text import restore_commands, set_text
from logkeep.cli.verbs.next_steps import command
from logkeep.cli.wiring import opened_repository, refuse_contradictions
from logkeep.config.options import BACKUP_ID, SET_MEMBERS, SOURCE
from logkeep.kinds import SourceKind, kind_named
from logkeep.model.ids import backup_id, source_name
from logkeep.reports.backup_set import BackupSetReport, SetMemberRow, set_report, taken_report
from logkeep.reports.backups import read_source
from logkeep.repository.access import Repository
from logkeep.repository.backups.source import read_facts
from logkeep.repository.backups.states import StateName
from logkeep.repository.chain.commits import SourceRef
from logkeep.repository.chain.lease import LeaseState


def _metrics(outcome: CommandOutcome[BackupSetReport]) -> Iterator[MetricSample]:
    """Of each member, as its own verb would write them. An error names no member: nothing was taken."""
    for row in outcome.report.members if outcome.report is not None else ():
        completed = row.state == StateName.COMPLETED
        yield sample("logkeep_backup_success", 1 if completed else 0, source=row.source)
        if completed:
            yield sample("logkeep_backup_size_bytes", row.stored_bytes or 0, source=row.source)
            yield sample("logkeep_backup_last_success_timestamp_seconds", outcome.ended.timestamp(), source=row.source)


def _after_take(run: Run, report: BackupSetReport) -> NextStep | None:
    leading = [row.source for row in report.members if kind_named(row.kind or "").leads_backup_set]
    lines = [
        command(run.with_flags({f"--{SOURCE.name}": source}), "verify", report.id, "--level", "cut")
        for source in leading
    ]
    return NextStep("certify that the cuts belong together", tuple(lines)) if lines else None


@verb(
    TAKE,
    report=BackupSetReport,
    text=set_text,
    exit_code=lambda report: report.exit_code,
    metrics=_metrics,
    next_step=_after_take,
)
def take_set(run: Run) -> BackupSetReport:
    refuse_contradictions(run)
    names = [name.strip() for name in (run[SET_MEMBERS] or "").split(",") if name.strip()]
    check_names(names)
    repository = opened_repository(run)
    known = [_known_member(run, repository, source_name(name)) for name in names]
    check_members(known)
    wanted = run[BACKUP_ID]
    chosen = chosen_id(None if wanted is None else backup_id(wanted), known, run.clock())
    order = capture_order(known)
    group = tuple(member.source for member in order)
    captures = [
        member_capture(run, repository.place(member.source), member.kind or "", chosen, group) for member in order
    ]
    sizes = preview_all(captures)
    if run.dry_run:
        return _planned(order, sizes, chosen)
    ends = take_all(captures)
    report = taken_report([repository.place(name) for name in group], run.clock(), chosen)
    return msgspec.structs.replace(
        _with_reasons(report, ends),
        restore=restore_commands(run, report, repository),
        exit_code=end_code(report.state, (end.code for end in ends)),
    )


def _known_member(run: Run, repository: Repository, name: str) -> KnownMember:
    place = repository.place(name)
    facts, view = read_facts(place), read_source(place, run.clock())
    kind = kind_named(facts.kind) if facts else SourceKind()
    # What the source's own processes hold for a moment, its backup waits for.
    held = view.lease_state is LeaseState.HELD and not kind.processes_take_part
    busy = held or any(view.state(number).name is StateName.ONGOING for number in view.open_ids)
    marker = newest_checkpoint(run, name) if kind.processes_take_part else 0
    return KnownMember(name, facts.kind if facts else None, max((view.folded.last_id, *view.open_ids, marker)), busy)


def _planned(order: Sequence[KnownMember], sizes: dict[str, int | None], chosen: int) -> BackupSetReport:
    rows = (
        SetMemberRow(
            source=member.source, kind=member.kind, state=StateName.DOES_NOT_EXIST, new_bytes=sizes[member.source]
        )
        for member in order
    )
    return BackupSetReport(id=chosen, state=StateName.DOES_NOT_EXIST, members=tuple(rows), dry_run=True)


def _with_reasons(report: BackupSetReport, ends: Sequence[MemberEnd]) -> BackupSetReport:
    """A member may fail before its request is stored: then only this run knows why."""
    reasons = {end.source: end.reason for end in ends if end.reason}
    rows = (msgspec.structs.replace(row, reason=row.reason or reasons.get(row.source)) for row in report.members)
    return msgspec.structs.replace(report, members=tuple(rows))


@verb(STATUS, report=BackupSetReport, text=set_text, exit_code=lambda report: report.exit_code)
def status(run: Run, backup: str) -> BackupSetReport:
    repository = opened_repository(run, read_only=True)
    places: list[SourceRef] = [repository.place(name) for name in repository.sources()]
    report = set_report(places, run.clock(), backup)
    ended_well = report.state in (StateName.COMPLETED, StateName.ONGOING)
    commands = restore_commands(run, report, repository)
    return msgspec.structs.replace(report, restore=commands, exit_code=0 if ended_well else FAILED)
