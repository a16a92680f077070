"""`logkeep receipts`: all restores and drills, and what each of them proved."""

from collections.abc import Iterator
from datetime import datetime

import click
import msgspec

from logkeep.cli.frame.execute import Run
from logkeep.cli.frame.verb import verb
from logkeep.cli.terminal.text import TerminalStyle, size
from logkeep.cli.verbs.kafka.offset_map import write_map
from logkeep.cli.verbs.restore_text import (
    finding_lines,
    group_lines,
    partition_lines,
    rates_text,
    target_text,
    took,
    when,
)
from logkeep.cli.wiring import STORE_EXITS, chosen_source, chosen_sources, restores_place
from logkeep.config.options import ALL, JSON, MAP_FILE, RECEIPT_OPTIONS
from logkeep.errors import UsageError
from logkeep.model.ids import RestoreId
from logkeep.reports.restores import (
    ComparedAgain,
    ReceiptReport,
    ReceiptsReport,
    RestoreLine,
    receipt_report,
    receipts_report,
)
from logkeep.repository.chain.actions import ObjectRef
from logkeep.repository.chain.commits import SourceRef

_STDOUT = "-"
_CHANGED = "changed since"
_HINT = "--all shows every one"


def _list_text(report: ReceiptsReport, look: TerminalStyle) -> str:
    if not report.restores:
        return look.text(f"no restores in {report.url}")
    headers = ("SOURCE", "ID", "BACKUP", "KIND", "STATE", "STARTED", "FINISHED", "TOOK", "NOTES")
    rows = [_cells(line, look) for line in report.restores]
    several = len({line.source for line in report.restores}) > 1
    kept = slice(0 if several else 1, len(headers) if any(row[-1] for row in rows) else -1)
    shown = [row[kept] for row in rows]
    return look.table(headers[kept], shown, right="ID,BACKUP,TOOK", spare="STARTED,FINISHED", free="NOTES")


def _cells(line: RestoreLine, look: TerminalStyle) -> tuple[str, ...]:
    started, finished = (datetime.fromisoformat(t) if t else None for t in (line.started, line.finished))
    return (
        line.source,
        str(line.id),
        "-" if line.backup is None else str(line.backup),
        _kind(line),
        line.state,
        look.moment(started, seconds=False),
        look.moment(finished, seconds=False),
        took(line.duration_s),
        line.trouble or ("interrupted" if line.interrupted else _CHANGED if line.changed else ""),
    )


def _kind(line: RestoreLine) -> str:
    if line.part is not None:
        return line.part
    return "-" if line.drill is None else "drill" if line.drill else "restore"


@verb(
    report=ReceiptsReport,
    text=_list_text,
    options=RECEIPT_OPTIONS,
    exits=(2, *STORE_EXITS),
    exit_code=lambda report: 2 if any(line.trouble for line in report.restores) else 0,
    examples=("logkeep receipts list", "logkeep receipts list --json | jq '.restores[-1].state'"),
)
def list_receipts(run: Run) -> ReceiptsReport:
    """List all restores and drills, oldest first, with how each of them ended.

    Reads names, and the plans of those that have not ended. Ends with 2 when a document cannot be read.
    """
    return receipts_report([restores_place(run, place) for place in chosen_sources(run)], run.repo())


def _show_text(report: ReceiptReport, look: TerminalStyle) -> str:
    if report.map_written == _STDOUT:
        return ""  # the map is the answer
    lines = [f"restore {report.restore.id}: {report.restore.state}", look.pairs(_facts(report, look))]
    if report.facts:
        lines += ["", look.pairs(report.facts)]
    if report.partitions:
        lines += ["", *partition_lines(report.partitions, look, every=report.all, hint=_HINT)]
    if report.groups:
        lines += ["", *group_lines(report.groups, look, every=report.all, hint=_HINT)]
    if report.findings:
        lines += ["", *finding_lines(report.findings, look, every=report.all)]
    if report.compared_again:
        lines += ["", *_again_lines(report.compared_again, look, every=report.all)]
    return "\n".join(lines)


def _again_lines(again: ComparedAgain, look: TerminalStyle, *, every: bool) -> Iterator[str]:
    moment = look.moment(datetime.fromisoformat(again.finished))
    yield look.prose(f"compared again {moment}: this has changed since the restore ended")
    yield from finding_lines(again.findings, look, every=every)


def _facts(report: ReceiptReport, look: TerminalStyle) -> dict[str, str]:
    line = report.restore
    which = "this is how it ended" if report.compared_again else "this is the newest"
    facts = {
        "backup": str(line.backup),
        "kind": f"{_kind(line)} of {report.kind}",
        "target": target_text(report.target),
        "by": report.who,
        "started": when(line.started, look),
        "finished": when(line.finished, look),
        "took": took(line.duration_s) if line.duration_s is not None else "",
        "offsets": " and ".join(sorted({row.mode for row in report.partitions})),
        "options": " ".join(f"{name}={value}" for name, value in sorted(report.options.items())),
        "rates": rates_text(report.rates),
        "map": f"{size(report.map.size)}; --map FILE writes it as CSV" if report.map else "",
        "map written to": report.map_written or "",
        "receipts": f"{line.receipts} were written, {which}" if line.receipts > 1 else "",
        "note": "interrupted: its process is gone" if line.interrupted else line.trouble or "",
    }
    return {name: value for name, value in facts.items() if value}


@verb(
    report=ReceiptReport,
    text=_show_text,
    options=(*RECEIPT_OPTIONS, MAP_FILE, ALL),
    arguments=(click.Argument(["restore"], metavar="[RESTORE-ID]", default="latest"),),
    exits=(10, *STORE_EXITS),
    examples=("logkeep receipts show latest", "logkeep receipts show 20261116021500 --map offsets.csv"),
)
def show(run: Run, restore: str) -> ReceiptReport:
    """Show what a restore or drill did and proved, partition by partition and group by group.

    RESTORE-ID is a number, a unique prefix of one, or `latest`; `receipts list` shows them. Of a restore that has not
    ended, its plan is shown. With --map the exact map of offsets is written too, one line per run of neighbouring
    records: topic, partition, source_offset, target_offset, count, target_topic, target_partition.
    """
    place = restores_place(run, chosen_source(run, read_only=True))
    report = receipt_report(place, restore)
    written = _map_written(run, place, RestoreId(report.restore.id), report.map)
    return msgspec.structs.replace(report, all=run[ALL], map_written=written)


def _map_written(run: Run, place: SourceRef, restore_id: RestoreId, ref: ObjectRef | None) -> str | None:
    path = run[MAP_FILE]
    if path is None:
        return None
    if ref is None:
        raise UsageError(
            "this restore has no map of offsets", subject=f"restore {restore_id}", remedy="leave out --map"
        )
    if str(path) == _STDOUT and run[JSON]:
        raise UsageError("--json and --map - both write to stdout", remedy="write the map to a file")
    write_map(run.console, place, restore_id, ref, None if str(path) == _STDOUT else path)
    return str(path)
