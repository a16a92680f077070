"""`logkeep zookeeper history`: which sessions created, changed and deleted a znode."""

from datetime import datetime

import msgspec

from logkeep.cli.frame.execute import Run
from logkeep.cli.frame.verb import verb
from logkeep.cli.terminal.text import TerminalStyle, plural
from logkeep.cli.verbs.restore_text import finding_lines
from logkeep.cli.verbs.zookeeper.declarations import HISTORY
from logkeep.cli.verbs.zookeeper.moment import damaged_if, moment_text, opened_backup, session_text
from logkeep.cli.wiring import WarmEngines
from logkeep.config.options import (
    CHILDREN,
    MEMBER,
    MOST_ROWS,
    RECURSIVE,
)
from logkeep.errors import UsageError
from logkeep.formats.zookeeper import shown
from logkeep.formats.zookeeper.names import hex_zxid
from logkeep.model.findings import Finding
from logkeep.model.time import Rfc3339
from logkeep.zookeeper.history.log_task import Depth, Event, WantedEvents, wanted_path
from logkeep.zookeeper.history.run import History
from logkeep.zookeeper.history.run import history as history_of


class HistoryRow(msgspec.Struct, frozen=True, kw_only=True):
    zxid: str
    time: Rfc3339
    session: str
    op: str
    txn: str
    """The type of the transaction: the same as `op`, or multi, or closeSession."""
    path: str
    version: int | None
    """Of the data, or of the ACL, after it."""
    data_bytes: int | None
    ephemeral: bool
    member: str
    history: str
    proof: str
    """Whether the transaction is known to be committed: proven, bounded, unproven."""


class Searched(msgspec.Struct, frozen=True, kw_only=True):
    """A range of which every transaction was read."""

    history: str
    first: str
    last: str


class HistoryReport(msgspec.Struct, frozen=True, kw_only=True):
    backup: str
    path: str
    events: tuple[HistoryRow, ...]
    total: int
    """The newest `limit` of them are in `events`."""
    searched: tuple[Searched, ...]
    transactions: int
    findings: tuple[Finding, ...] = ()
    """Damage: transactions that could not be read or that no log has; they are not in the answer, and the run ends with
    10. Notes: what was never committed, left out too. Warnings: what is not proven, or cannot be read."""


def _text(report: HistoryReport, look: TerminalStyle) -> str:
    headers = ("ZXID", "TIME", "SESSION", "OP", "VERSION", "BYTES", "PATH")
    rows = [_cells(row, look) for row in report.events]
    table = look.table(headers, rows, right="ZXID,VERSION,BYTES", spare="BYTES,VERSION", whole="TIME,SESSION,OP,PATH")
    ranges = ", ".join(f"{one.first} to {one.last} (history {one.history})" for one in report.searched)
    lines = [table] if report.events else []
    if report.total > len(report.events):
        left_out = plural(report.total - len(report.events), "older one is", "older ones are")
        lines.append(look.line(f"{left_out} not shown: --limit shows more"))
    found_text = plural(report.total, "change") if report.total else f"{report.path} was not changed"
    lines.append(
        look.prose(f"{found_text} in {plural(report.transactions, 'transaction')}: {ranges or 'no log is held'}")
    )
    return "\n".join([*lines, *finding_lines(report.findings, look, every=True)])


def _cells(row: HistoryRow, look: TerminalStyle) -> tuple[str, ...]:
    op = row.op if row.txn == row.op else f"{row.op} ({row.txn})"
    numbers = ("-" if number is None else str(number) for number in (row.version, row.data_bytes))
    return (row.zxid, look.moment(datetime.fromisoformat(row.time)), row.session, op, *numbers, row.path)


@verb(HISTORY, report=HistoryReport, text=_text, exit_code=lambda report: damaged_if(report.findings))
def history(run: Run, path: str, backup: str) -> HistoryReport:
    wanted = WantedEvents(wanted_path(path), _depth(run), run[MOST_ROWS])
    with opened_backup(run, backup) as view:
        found = history_of(view, wanted, WarmEngines(run), run[MEMBER])
        return _report(view.name, shown(wanted.path), found)


def _depth(run: Run) -> Depth:
    if run[CHILDREN] and run[RECURSIVE]:
        raise UsageError("--recursive includes the children", remedy="leave --children out")
    return Depth.EVERYTHING if run[RECURSIVE] else Depth.CHILDREN if run[CHILDREN] else Depth.ITSELF


def _report(name: str, path: str, found: History) -> HistoryReport:
    return HistoryReport(
        backup=name,
        path=path,
        events=tuple(_row(event) for event in found.events),
        total=found.total,
        searched=tuple(Searched(history=h, first=hex_zxid(a), last=hex_zxid(b)) for h, a, b in found.searched),
        transactions=found.transactions,
        findings=found.findings,
    )


def _row(event: Event) -> HistoryRow:
    return HistoryRow(
        zxid=hex_zxid(event.zxid),
        time=moment_text(event.time_ms),
        session=session_text(event.session),
        op=event.op,
        txn=event.txn,
        path=event.path,
        version=event.version,
        data_bytes=event.data_bytes,
        ephemeral=event.ephemeral,
        member=event.member,
        history=event.history,
        proof=str(event.proof),
    )
