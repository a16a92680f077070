"""A backup set for people: its members, the certificate, and the commands that restore it."""

from collections.abc import Callable
from dataclasses import dataclass

from logkeep.checkpoint.archive.copies import copy_request
from logkeep.cli.frame.execute import Run
from logkeep.cli.terminal.text import TerminalStyle, size
from logkeep.cli.verbs.next_steps import command
from logkeep.config.options import APP_DATA, BOOTSTRAP_SERVERS, KAFKA_TARGET, SOURCE, ZK_MEMBERS, Options
from logkeep.kinds import APPLICATION, KAFKA, ZOOKEEPER, kind_named
from logkeep.reports.backup_set import BackupSetReport, SetMemberRow
from logkeep.repository.access import Repository
from logkeep.repository.chain.commits import SourceRef


def set_text(report: BackupSetReport, look: TerminalStyle) -> str:
    head = f"backup set {report.id} would have these members" if report.dry_run else ""
    lines = [look.text(head or f"backup set {report.id}: {report.state}"), "", _table(report, look)]
    lines += [look.line(f"{row.source}: {row.reason}") for row in report.members if row.reason]
    lines += [look.prose(f"{row.source}: {row.certificate}") for row in report.members if row.certificate]
    if report.restore:
        lines += ["", look.text("to restore it, run these commands in this order:")]
        lines += [look.line(f"  {line}") for line in report.restore]
    return "\n".join(lines)


def _table(report: BackupSetReport, look: TerminalStyle) -> str:
    rows = [
        (row.source, row.kind or "unknown", _state(row, report), row.started or "", _new(row)) for row in report.members
    ]
    return look.table(("SOURCE", "KIND", "STATE", "BEGUN", "NEW"), rows, right="NEW")


def _state(row: SetMemberRow, report: BackupSetReport) -> str:
    if report.dry_run:
        return "can be taken"
    return "certified" if row.certified else row.state


def _new(row: SetMemberRow) -> str:
    return "" if row.new_bytes is None else size(row.new_bytes)


def restore_commands(run: Run, report: BackupSetReport, repository: Repository) -> tuple[str, ...]:
    """The restores of the members, applications last: they continue as soon as they are started."""
    if any(row.state != "completed" for row in report.members):
        return ()
    rows = sorted(report.members, key=lambda row: kind_named(row.kind or "").leads_backup_set)
    return tuple(
        _restore_command(run, row, report.id, repository.place(row.source)) for row in rows if row.kind in _RESTORES
    )


def _restore_command(run: Run, row: SetMemberRow, backup: int, place: SourceRef) -> str:
    verb = _RESTORES[row.kind or ""]
    own, flags = run.with_flags({f"--{SOURCE.name}": row.source}), list[object]()
    for option in verb.options:
        if own.settings.typed(option):
            value = own.settings[option]
            for each in value if isinstance(value, tuple) else (value,):
                flags += [f"--{option.name}", each]
    return command(own, *verb.words, backup, *(flags or verb.stored_target(place, backup)))


def _brokers_of_application(place: SourceRef, backup: int) -> list[object]:
    asked = copy_request(place, backup)
    return [f"--{BOOTSTRAP_SERVERS.name}", asked.brokers] if asked is not None and asked.brokers else []


@dataclass(frozen=True)
class _RestoreVerb:
    words: tuple[str, str]
    options: Options
    """Those that say where to."""
    stored_target: Callable[[SourceRef, int], list[object]] = lambda *_: []
    """The flags of the target that the backup names itself, where none of these options is given."""


_RESTORES = {
    KAFKA.name: _RestoreVerb(("kafka", "restore"), KAFKA_TARGET),
    ZOOKEEPER.name: _RestoreVerb(("zookeeper", "restore"), ZK_MEMBERS),
    APPLICATION.name: _RestoreVerb(("app", "restore"), (APP_DATA,), _brokers_of_application),
}
