"""`logkeep list`: which backups there are."""

from collections.abc import Iterable
from datetime import datetime

from logkeep.cli.frame.execute import Run
from logkeep.cli.frame.verb import verb
from logkeep.cli.terminal.text import TerminalStyle, ago, count, plural, size
from logkeep.cli.verbs.restore_text import restore_cell
from logkeep.cli.wiring import STORE_EXITS, chosen_sources, restores_place
from logkeep.config.options import RECEIPT_OPTIONS
from logkeep.reports.backups import BackupRow, ListReport, list_report

_HEADERS = ("SOURCE", "ID", "STATE", "COMMITTED", "LOGS", "RECORDS", "SIZE", "ADDED", "HEALTH", "RESTORED", "NOTES")
_FLUSH = "ID,LOGS,RECORDS,SIZE,ADDED"
_SPARE = "LOGS,ADDED,RECORDS,SIZE,COMMITTED,RESTORED"
"""Columns that a narrow terminal leaves out, the least important first."""
_SOMETIMES = ("RESTORED", "NOTES")


def _list_text(report: ListReport, look: TerminalStyle) -> str:
    if not report.backups:
        return look.text(f"no backups in {report.url}")
    table = backup_table(report.backups, look)
    return "\n".join([table, *(look.line(f"WARN  {w}") for w in report.warnings)])


@verb(
    report=ListReport,
    text=_list_text,
    options=RECEIPT_OPTIONS,
    exits=(2, 10, *STORE_EXITS),
    exit_code=lambda report: 2 if report.warnings else 0,
    examples=("logkeep list -r s3://bucket/logkeep", "logkeep list --json | jq '.backups[-1].id'"),
)
def list_backups(run: Run) -> ListReport:
    """List all backups, oldest first.

    Reads only the chain of each source and the names of verifications and restores: no data, no manifests, no Spark.
    """
    places = list(chosen_sources(run))
    return list_report(places, run.clock(), lambda place: restores_place(run, place), run.repo())


def backup_table(rows: Iterable[BackupRow], look: TerminalStyle) -> str:
    """A table of backups. The columns RESTORED and NOTES appear only when they are not empty."""
    shown = [_cells(row, look) for row in rows]
    kept = [i for i, name in enumerate(_HEADERS) if name not in _SOMETIMES or any(row[i] for row in shown)]
    headers = [_HEADERS[i] for i in kept]
    spare = ",".join(name for name in _SPARE.split(",") if name in headers)
    return look.table(headers, [[row[i] for i in kept] for row in shown], right=_FLUSH, spare=spare, free="NOTES")


def _cells(row: BackupRow, look: TerminalStyle) -> tuple[str, ...]:
    """The row for a table."""
    return (
        row.source,
        str(row.id),
        "certified" if row.certified else row.state,
        look.moment(datetime.fromisoformat(row.committed), seconds=False) if row.committed else "-",
        _number(row.logs),
        _number(row.records),
        _size(row.stored_bytes),
        _size(row.new_bytes),
        _health(row),
        restore_cell(row.last_restore, look),
        _notes(row),
    )


def _health(row: BackupRow) -> str:
    """`records, 2 d ago`, `damaged: data, 3 h ago`, `unverified`."""
    if row.state != "completed":
        return "-"
    if row.verified_level is None or row.verified_age_seconds is None:
        return row.health
    proven = f"{row.verified_level}, {ago(row.verified_age_seconds)}"
    return proven if row.health == "good" else f"{row.health}: {proven}"


def _notes(row: BackupRow) -> str:
    parts = [row.reason or "", "" if row.held is None else f"held: {row.held}" if row.held else "held", *row.tags]
    parts.append(plural(row.warnings, "warning") if row.warnings else "")
    parts.append(f"trimmed by {plural(row.trimmed_segments, 'segment')}" if row.trimmed_segments else "")
    return ", ".join(p for p in parts if p)


def _number(value: int | None) -> str:
    return "-" if value is None else count(value)


def _size(value: int | None) -> str:
    return "-" if value is None else size(value)
