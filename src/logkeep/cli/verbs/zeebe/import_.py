"""`logkeep zeebe import`: a backup of Zeebe as the next backup of a source."""

import msgspec

from logkeep.checkpoint.zeebe.inventory import ZeebeBackup, find_backup
from logkeep.checkpoint.zeebe.repo.import_run import ZeebeImport, ZeebeImported, ZeebeImportOptions
from logkeep.checkpoint.zeebe.verify import LABEL, verify_backup
from logkeep.cli.frame.execute import Run
from logkeep.cli.frame.verb import verb
from logkeep.cli.terminal.text import TerminalStyle, plural, size
from logkeep.cli.verbs.next_steps import after_zeebe_import
from logkeep.cli.verbs.restore_text import finding_lines
from logkeep.cli.verbs.zeebe.archive_declarations import IMPORT
from logkeep.cli.verbs.zeebe.verify import exit_code
from logkeep.cli.verbs.zeebe.zeebe_store import opened_zeebe_store
from logkeep.cli.wiring import chosen_engine, written_source
from logkeep.config.options import BACKUP_ID, LEASE_TTL, TAG
from logkeep.errors import VerificationFailed
from logkeep.kinds import ZEEBE, require_kind
from logkeep.model.findings import Finding, Severity

FIRST_SOURCE = "zeebe"


class ZeebeImportReport(msgspec.Struct, frozen=True, kw_only=True):
    source: str
    id: int | None
    """None in a dry run."""
    zeebe_id: int
    partitions: int
    history: str | None
    new_history: bool
    """The logs do not continue those of the backup before: everything was archived again."""
    changed: bool
    """False: it is in the repository already."""
    zeebe_bytes: int
    """What Zeebe stores of it."""
    new_bytes: int
    stored_bytes: int
    findings: tuple[Finding, ...]
    dry_run: bool


def _text(report: ZeebeImportReport, look: TerminalStyle) -> str:
    done = "would import" if report.dry_run else "imported" if report.changed else "is there already:"
    amount = f"{plural(report.partitions, 'partition')}, {size(report.zeebe_bytes)} in Zeebe's store"
    lines = [look.line(f"backup {report.zeebe_id} of Zeebe {done} {amount}")]
    if not report.dry_run:
        stored = f"{size(report.new_bytes)} new of {size(report.stored_bytes)}"
        lines.append(look.line(f"backup {report.id} of {report.source}: {stored}, history {report.history}"))
    return "\n".join([*lines, *finding_lines(report.findings, look, every=False)])


@verb(
    IMPORT,
    next_step=after_zeebe_import,
    report=ZeebeImportReport,
    text=_text,
    exit_code=lambda report: exit_code(report.findings),
)
def import_(run: Run, stored: str) -> ZeebeImportReport:
    store, place = opened_zeebe_store(run), written_source(run, FIRST_SOURCE)
    require_kind(place, ZEEBE)
    found = find_backup(store, stored)
    task = ZeebeImport(place, store, found, run.clock, run.token)
    verified = verify_backup(store, found, chosen_engine(run, task.size_bytes, work=LABEL))
    if damage := [each for each in verified.findings if each.severity is Severity.DAMAGE]:
        what = f"backup {found.checkpoint_id} is damaged: {damage[0].what}"
        remedy = f"`logkeep zeebe verify {found.checkpoint_id}` names all damage ({len(damage)}); take another backup"
        raise VerificationFailed(what, subject=damage[0].where, remedy=remedy)
    findings = tuple(each for each in verified.findings if each.severity is Severity.WARNING)
    options = ZeebeImportOptions(found.checkpoint_id, run[BACKUP_ID], run[TAG], run[LEASE_TTL], findings)
    done = None if run.dry_run else task.run(options, chosen_engine(run, task.size_bytes, work="copy"))
    return _report(place.source, found, task.size_bytes, findings, done)


def _report(
    source: str, found: ZeebeBackup, size_bytes: int, findings: tuple[Finding, ...], done: ZeebeImported | None
) -> ZeebeImportReport:
    summary = done.entry.summary if done is not None else None
    return ZeebeImportReport(
        source=source,
        id=done.entry.id if done is not None else None,
        zeebe_id=found.checkpoint_id,
        partitions=found.partitions,
        history=done.record.history if done is not None else None,
        new_history=done is not None and done.new_history,
        changed=done is None or done.changed,
        zeebe_bytes=size_bytes,
        new_bytes=summary.new_bytes if summary is not None and done is not None and done.changed else 0,
        stored_bytes=summary.stored_bytes if summary is not None else 0,
        findings=findings,
        dry_run=done is None,
    )
