"""One backup as every verb shows it."""

from collections.abc import Iterable
from datetime import datetime
from typing import Literal

import msgspec

from logkeep.cli.terminal.text import TerminalStyle, count, size
from logkeep.cli.verbs.last_restore import LastRestore, restore_cell
from logkeep.repository.backups.source import SourceView, view
from logkeep.repository.backups.states import Completed, Failed, Ongoing, State
from logkeep.repository.backups.verdicts import BackupVerdict, verdicts
from logkeep.repository.backups.verification import stored_verifications
from logkeep.repository.chain.commits import SourceRef
from logkeep.repository.chain.fold import BackupEntry
from logkeep.repository.chain.owner import this_process

Health = Literal["unverified", "good", "damaged"]


class BackupRow(msgspec.Struct, frozen=True, kw_only=True):
    """A backup in a list. Sizes in bytes, times in RFC 3339; what a state has not is null."""

    source: str
    id: int
    state: str
    started: str | None = None
    committed: str | None = None
    logs: int | None = None
    segments: int | None = None
    records: int | None = None
    stored_bytes: int | None = None
    new_bytes: int | None = None
    health: Health = "unverified"
    verified: str | None = None
    """When and how deep it was last verified: `20261115T103000123456Z files`."""
    held: str | None = None
    tags: tuple[str, ...] = ()
    group: tuple[str, ...] = ()
    warnings: int = 0
    reason: str | None = None
    """Why it failed."""
    last_restore: LastRestore | None = None
    """The restore or drill of it that ended last."""


def seen(place: SourceRef, now: datetime) -> SourceView:
    return view(place, now, this_process("reader"))


def health_of(place: SourceRef) -> dict[int, BackupVerdict]:
    """The last word of stored verifications, by backup."""
    return dict(verdicts(said for said, _ in stored_verifications(place)).items())


def backup_row(source: str, state: State, health: dict[int, BackupVerdict]) -> BackupRow:
    if isinstance(state, Completed):
        return _completed(source, state.entry, health.get(state.id))
    if isinstance(state, Failed):
        started = state.request.started if state.request else None
        reason = state.reason if state.recorded else f"{state.reason}; can be resumed"
        return BackupRow(source=source, id=state.id, state=state.name, started=started, reason=reason)
    if isinstance(state, Ongoing):
        return BackupRow(source=source, id=state.id, state=state.name, started=state.request.started)
    return BackupRow(source=source, id=state.id, state=state.name)


def _completed(source: str, entry: BackupEntry, verdict: BackupVerdict | None) -> BackupRow:
    summary = entry.summary
    return BackupRow(
        source=source,
        id=entry.id,
        state="completed",
        started=summary.started,
        committed=entry.committed,
        logs=summary.logs,
        segments=summary.segments,
        records=summary.records,
        stored_bytes=summary.stored_bytes,
        new_bytes=summary.new_bytes,
        health="unverified" if verdict is None else "damaged" if verdict.damaged else "good",
        verified=f"{verdict.when} {verdict.level}" if verdict else None,
        held=entry.hold,
        tags=summary.tags,
        group=summary.group,
        warnings=summary.warnings,
    )


HEADERS = ("SOURCE", "ID", "STATE", "COMMITTED", "LOGS", "RECORDS", "SIZE", "ADDED", "HEALTH", "RESTORED", "NOTES")
FLUSH = "ID,LOGS,RECORDS,SIZE,ADDED"
SPARE = "LOGS,ADDED,RECORDS,SIZE,COMMITTED,RESTORED"
"""What a narrow terminal does without, the least important first."""
_SOMETIMES = ("RESTORED", "NOTES")


def backup_table(rows: Iterable[BackupRow], look: TerminalStyle) -> str:
    """The rows for people. Columns of restores and of notes are there only when there are any."""
    shown = [cells(row, look) for row in rows]
    kept = [i for i, name in enumerate(HEADERS) if name not in _SOMETIMES or any(row[i] for row in shown)]
    headers = [HEADERS[i] for i in kept]
    spare = ",".join(name for name in SPARE.split(",") if name in headers)
    return look.table(headers, [[row[i] for i in kept] for row in shown], right=FLUSH, spare=spare, free="NOTES")


def cells(row: BackupRow, look: TerminalStyle) -> tuple[str, ...]:
    """The row for a table."""
    return (
        row.source,
        str(row.id),
        row.state,
        look.moment(datetime.fromisoformat(row.committed), seconds=False) if row.committed else "-",
        _number(row.logs),
        _number(row.records),
        _size(row.stored_bytes),
        _size(row.new_bytes),
        row.health if row.state == "completed" else "-",
        restore_cell(row.last_restore, look),
        notes(row),
    )


def notes(row: BackupRow) -> str:
    parts = [row.reason or "", "" if row.held is None else f"held: {row.held}" if row.held else "held", *row.tags]
    parts.append(f"{row.warnings} warnings" if row.warnings else "")
    return ", ".join(p for p in parts if p)


def _number(value: int | None) -> str:
    return "-" if value is None else count(value)


def _size(value: int | None) -> str:
    return "-" if value is None else size(value)
