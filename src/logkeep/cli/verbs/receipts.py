"""`logkeep receipts`: which restores and drills there were, and what each of them proved."""

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
    rates_text,
    target_text,
    took,
    when,
)
from logkeep.cli.verbs.restored_rows import group_lines, partition_lines
from logkeep.cli.wiring import STORE_EXITS, chosen_source, chosen_sources, restores_place
from logkeep.config.options import ALL, JSON, MAP_FILE, REPO, SOURCE, STATE_DIR
from logkeep.errors import Damaged, ObjectMissing, UsageError
from logkeep.model.findings import Finding
from logkeep.model.ids import BackupId, RestoreId, choose_id
from logkeep.model.time import rfc3339
from logkeep.repository.chain.actions import ObjectRef
from logkeep.repository.chain.commits import SourceRef
from logkeep.repository.chain.owner import Owner, is_dead, this_process
from logkeep.repository.restores import (
    ReceiptDocument,
    RestoredGroup,
    RestoredPartition,
    RestorePlanDocument,
    RestoreRow,
    RestoreTargetRef,
    list_restores,
    newest_receipt,
    own_receipt,
    read_plan,
)

_STDOUT = "-"
_CHANGED = "changed since"
_HINT = "--all shows every one"


class RestoreLine(msgspec.Struct, frozen=True, kw_only=True):
    """A restore in a list. Times in RFC 3339; what is not known is null."""

    source: str
    id: int
    state: str
    """`ongoing`, `proven`, `unproven` (it was told not to compare), `set` (only groups), `part` (a subtree, and read
    again), `stopped` (a subtree, not to its end), `failed` or `aborted`."""
    backup: int | None
    drill: bool | None
    started: str | None
    finished: str | None
    duration_s: float | None
    """The recovery time that was reached."""
    receipts: int
    interrupted: bool
    """It is ongoing, and its process is certainly gone."""
    trouble: str | None
    """A document that counts cannot be read."""
    changed: str | None = None
    """When it was compared once more, after its end, and target or archive were no longer what they had been."""
    part: str | None = None
    """`groups` or `subtree`, where only these came back."""


class ReceiptsReport(msgspec.Struct, frozen=True, kw_only=True):
    url: str
    restores: tuple[RestoreLine, ...]


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
    options=(REPO, SOURCE, STATE_DIR),
    exits=(2, *STORE_EXITS),
    exit_code=lambda report: 2 if any(line.trouble for line in report.restores) else 0,
    examples=("logkeep receipts list", "logkeep receipts list --json | jq '.restores[-1].state'"),
)
def list_receipts(run: Run) -> ReceiptsReport:
    """List all restores and drills, oldest first, with how each of them ended.

    Reads names, and the plans of those that have not ended. Ends with 2 when a document cannot be read.
    """
    places = [restores_place(run, place) for place in chosen_sources(run)]
    here = this_process("reader")
    lines = [_line(place.source, row, here) for place in places for row in list_restores(place)]
    return ReceiptsReport(url=places[0].store.url if places else run.repo(), restores=tuple(lines))


def _line(source: str, row: RestoreRow, here: Owner) -> RestoreLine:
    return RestoreLine(
        source=source,
        id=row.id,
        state=row.state,
        backup=row.backup,
        drill=row.drill,
        started=rfc3339(row.started) if row.started else None,
        finished=rfc3339(row.finished) if row.finished else None,
        duration_s=row.duration_s,
        receipts=row.receipts,
        interrupted=row.owner is not None and is_dead(row.owner, here),
        trouble=row.trouble or None,
        changed=rfc3339(row.changed) if row.changed else None,
        part=row.part or None,
    )


class ComparedAgain(msgspec.Struct, frozen=True, kw_only=True):
    """A look at a restore long after it had ended well: target or archive were no longer what they had been."""

    finished: str
    partitions: tuple[RestoredPartition, ...]
    findings: tuple[Finding, ...]


class ReceiptReport(msgspec.Struct, frozen=True, kw_only=True):
    restore: RestoreLine
    kind: str
    target: RestoreTargetRef
    who: str
    options: dict[str, str]
    partitions: tuple[RestoredPartition, ...] = ()
    groups: tuple[RestoredGroup, ...] = ()
    findings: tuple[Finding, ...] = ()
    rates: dict[str, float] = msgspec.field(default_factory=dict)
    facts: dict[str, str] = msgspec.field(default_factory=dict)
    """What only this kind of source has to tell, by name."""
    map: ObjectRef | None = None
    """Which source offset stands where; --map writes it."""
    map_written: str | None = None
    compared_again: ComparedAgain | None = None
    """The last comparison, if it found something; everything else is about the restore itself."""
    all: bool = False


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
    yield look.prose(f"compared again {moment}: since the restore ended, this has changed")
    yield from finding_lines(again.findings, look, every=every)


def _facts(report: ReceiptReport, look: TerminalStyle) -> dict[str, str]:
    line = report.restore
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
        "receipts": f"{line.receipts} were written on the way, {_which(report)}" if line.receipts > 1 else "",
        "note": "interrupted: its process is gone" if line.interrupted else line.trouble or "",
    }
    return {name: value for name, value in facts.items() if value}


def _which(report: ReceiptReport) -> str:
    return "this is how it ended" if report.compared_again else "this is the newest"


@verb(
    report=ReceiptReport,
    text=_show_text,
    options=(REPO, SOURCE, STATE_DIR, MAP_FILE, ALL),
    arguments=(click.Argument(["restore"], metavar="RESTORE-ID"),),
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
    row = chosen_restore(place, restore)
    plan, receipt = _plan(place, row), own_receipt(place, row.id)
    report = _report(_line(place.source, row, this_process("reader")), plan, receipt)
    written, again = _map_written(run, place, row.id, report.map), _compared_again(place, row)
    return msgspec.structs.replace(report, all=run[ALL], map_written=written, compared_again=again)


def _compared_again(place: SourceRef, row: RestoreRow) -> ComparedAgain | None:
    newest = newest_receipt(place, row.id) if row.changed else None
    if newest is None:
        return None
    return ComparedAgain(finished=newest.finished, partitions=newest.partitions, findings=newest.findings)


def chosen_restore(place: SourceRef, text: str) -> RestoreRow:
    """The restore that a user meant by a number, a unique prefix or `latest`."""
    rows = {BackupId(row.id): row for row in list_restores(place)}
    try:
        return rows[choose_id(text, list(rows))]
    except UsageError as error:
        what = "there is no restore yet" if not rows else error.what.replace("backup", "restore")
        raise UsageError(what, subject=place.store.url, remedy="run `logkeep receipts list` to see the ids") from error


def _plan(place: SourceRef, row: RestoreRow) -> RestorePlanDocument | None:
    """The plan; a receipt is worth showing without it."""
    try:
        return read_plan(place, row.id)
    except (Damaged, ObjectMissing):
        if row.receipts:
            return None
        raise


def _report(line: RestoreLine, plan: RestorePlanDocument | None, receipt: ReceiptDocument | None) -> ReceiptReport:
    target = receipt.target if receipt else plan.target if plan else RestoreTargetRef(cluster_id="")
    report = ReceiptReport(
        restore=line,
        kind=plan.kind if plan else "a source whose plan cannot be read",
        target=target,
        who=plan.who if plan else "",
        options=plan.options if plan else {},
    )
    if receipt is None:
        return report
    return msgspec.structs.replace(
        report,
        partitions=receipt.partitions,
        groups=receipt.groups,
        findings=receipt.findings,
        rates=receipt.rates,
        facts={} if receipt.facts is msgspec.UNSET else dict(receipt.facts),
        map=receipt.map,
    )


def _map_written(run: Run, place: SourceRef, restore_id: RestoreId, ref: ObjectRef | None) -> str | None:
    path = run[MAP_FILE]
    if path is None:
        return None
    if ref is None:
        raise UsageError(
            "this restore has no map of offsets", subject=f"restore {restore_id}", remedy="leave out --map"
        )
    if str(path) == _STDOUT and run[JSON]:
        raise UsageError("--json and --map - both want stdout", remedy="write the map to a file")
    write_map(run.console, place, restore_id, ref, None if str(path) == _STDOUT else path)
    return str(path)
