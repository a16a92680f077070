"""`logkeep zookeeper log`: query archived transactions with SQL."""

from collections.abc import Sequence
from dataclasses import replace
from datetime import datetime
from typing import TYPE_CHECKING, Any

import msgspec

from logkeep.cli.frame.execute import Run
from logkeep.cli.frame.verb import verb
from logkeep.cli.terminal.text import TerminalStyle, plural
from logkeep.cli.verbs.restore_text import finding_lines
from logkeep.cli.verbs.zookeeper.declarations import LOG
from logkeep.cli.verbs.zookeeper.moment import damaged_if, opened_backup
from logkeep.cli.wiring import spark_engine
from logkeep.config.options import (
    MEMBER,
    MOST_ROWS,
    SQL,
)
from logkeep.errors import UsageError
from logkeep.model.findings import Finding
from logkeep.model.time import rfc3339
from logkeep.zookeeper.history.around_damage import UNREADABLE, UnreadableTransactions, gaps_between
from logkeep.zookeeper.history.selection import select_logs
from logkeep.zookeeper.history.sql_rows import COLUMNS, VIEW, readable_units, rows, units
from logkeep.zookeeper.model.archived import BackupView

if TYPE_CHECKING:
    from logkeep.engine.spark.sql.query import QueryResult, ResultSink

Cell = str | int | float | bool | None


class LogReport(msgspec.Struct, frozen=True, kw_only=True):
    backup: str
    columns: tuple[str, ...]
    rows: tuple[tuple[Cell, ...], ...]
    """Types that JSON does not have are text."""
    more: bool
    """Whether the answer has more rows than `limit`."""
    findings: tuple[Finding, ...] = ()
    """Damage: transactions that could not be read or that no log has; the query did not see them, and the run ends with
    10. Notes: what was never committed, not seen either. Warnings: what it saw and may never have been committed."""


def _text(report: LogReport, look: TerminalStyle) -> str:
    table = look.table(report.columns, [["NULL" if cell is None else str(cell) for cell in row] for row in report.rows])
    more = ", and more: --limit shows them" if report.more else ""
    lines = [table, look.line(plural(len(report.rows), "row") + more)]
    return "\n".join([*lines, *finding_lines(report.findings, look, every=True)])


@verb(LOG, report=LogReport, text=_text, exit_code=lambda report: damaged_if(report.findings))
def log(run: Run, backup: str) -> LogReport:
    sql = run[SQL]
    if sql is None:
        raise UsageError("no query is given", remedy=f'pass --sql "SELECT …"; `{VIEW}` has: {COLUMNS}')
    with opened_backup(run, backup) as view:
        found, findings = query_transactions(run, view, sql, run[MOST_ROWS])
        cells = tuple(tuple(_cell(value) for value in row) for row in found.rows)
        return LogReport(backup=view.name, columns=found.columns, rows=cells, more=found.more, findings=findings)


def query_transactions(
    run: Run, view: BackupView, sql: str, most: int | None, sink: "ResultSink | None" = None
) -> "tuple[QueryResult, tuple[Finding, ...]]":
    """The answer of a query over the view `transactions`, and what it did not see."""
    from logkeep.engine.spark.sql.query import Query  # noqa: PLC0415 - help must not load Spark
    from logkeep.engine.spark.sql.tables import UnitTable  # noqa: PLC0415

    engine = spark_engine(run)
    chosen = select_logs(view, lambda _: engine, run[MEMBER])
    asked = Query(sql, {VIEW: UnitTable(COLUMNS, rows, units(view, chosen))}, most, sink)
    missing: Sequence[UnreadableTransactions] = gaps_between(chosen)
    try:
        found = engine.query(asked)
    except UNREADABLE:
        readable = readable_units(view, engine, chosen)
        found = engine.query(replace(asked, tables={VIEW: UnitTable(COLUMNS, rows, readable.units)}))
        missing = readable.missing
    return found, (*chosen.findings, *(one.finding for one in missing))


def _cell(value: Any) -> Cell:
    if value is None or isinstance(value, str | int | float):
        return value
    return rfc3339(value) if isinstance(value, datetime) and value.tzinfo else str(value)
