"""`logkeep kafka restore abort`: delete what an unfinished restore created."""

import msgspec

from logkeep.cli.frame.execute import Run
from logkeep.cli.frame.verb import verb
from logkeep.cli.terminal.text import TerminalStyle, plural
from logkeep.cli.verbs.kafka.backup import client_settings
from logkeep.cli.verbs.kafka.declarations import RESTORE_ABORT
from logkeep.cli.verbs.restore_text import finding_lines
from logkeep.cli.wiring import chosen_source, restores_place
from logkeep.kafka.restore.run import KafkaRestore
from logkeep.model.findings import Finding
from logkeep.model.ids import RestoreId
from logkeep.model.plurals import first_names

_NAMED = 8


class KafkaRestoreAbortReport(msgspec.Struct, frozen=True, kw_only=True):
    source: str
    restore: int
    deleted: tuple[str, ...]
    """Topics that the restore had created."""
    kept: tuple[str, ...]
    """Topics that were there before: they keep what was written, and got their configs back."""
    findings: tuple[Finding, ...]
    dry_run: bool


def _abort_text(report: KafkaRestoreAbortReport, look: TerminalStyle) -> str:
    would = "would delete" if report.dry_run else "deleted"
    names = ", ".join(report.deleted) or "no topic"
    lines = [look.line(f"restore {report.restore} of {report.source}: {would} {names}")]
    if report.kept:
        lines.append(look.line(f"topics that were there before keep what was written: {', '.join(report.kept)}"))
    return "\n".join([*lines, *finding_lines(report.findings, look, every=True)])


@verb(
    RESTORE_ABORT,
    report=KafkaRestoreAbortReport,
    text=_abort_text,
    exit_code=lambda report: 2 if report.findings else 0,
)
def abort(run: Run, restore_id: int) -> KafkaRestoreAbortReport:
    place = chosen_source(run)
    task = KafkaRestore(place, restores_place(run, place), client_settings(run), run.clock, run.token)
    stored = task.stored(RestoreId(restore_id), aborted_too=True)
    task.refuse_abort(stored)
    made = tuple(t.name for t in stored.plan.topics if not t.existing)
    kept = tuple(t.name for t in stored.plan.topics if t.existing)
    findings: tuple[Finding, ...] = ()
    if not run.dry_run:
        run.confirm(
            f"delete {plural(len(made), 'topic')} that restore {restore_id} created ({first_names(made, _NAMED)})?"
        )
        aborted = task.abort(stored)
        made, findings = aborted.deleted, aborted.findings
    return KafkaRestoreAbortReport(
        source=place.source, restore=restore_id, deleted=made, kept=kept, findings=findings, dry_run=run.dry_run
    )
