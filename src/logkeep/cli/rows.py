"""One backup as every verb shows it."""

from collections.abc import Iterable
from datetime import datetime
from typing import Literal

import msgspec

from logkeep.cli.look import Look, count, size
from logkeep.repository.chain import Place
from logkeep.repository.fold import BackupEntry
from logkeep.repository.owner import this_process
from logkeep.repository.source import SourceView, view
from logkeep.repository.states import Completed, Failed, Ongoing, State
from logkeep.repository.verdicts import Verdict, verdicts
from logkeep.repository.verification import stored_verifications

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


def seen(place: Place, now: datetime) -> SourceView:
    return view(place, now, this_process("reader"))


def health_of(place: Place) -> dict[int, Verdict]:
    """The last word of stored verifications, by backup."""
    return dict(verdicts(said for said, _ in stored_verifications(place)).items())


def backup_row(source: str, state: State, health: dict[int, Verdict]) -> BackupRow:
    if isinstance(state, Completed):
        return _completed(source, state.entry, health.get(state.id))
    if isinstance(state, Failed):
        started = state.request.started if state.request else None
        reason = state.reason if state.recorded else f"{state.reason}; can be resumed"
        return BackupRow(source=source, id=state.id, state=state.name, started=started, reason=reason)
    if isinstance(state, Ongoing):
        return BackupRow(source=source, id=state.id, state=state.name, started=state.request.started)
    return BackupRow(source=source, id=state.id, state=state.name)


def _completed(source: str, entry: BackupEntry, verdict: Verdict | None) -> BackupRow:
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


HEADERS = ("SOURCE", "ID", "STATE", "COMMITTED", "LOGS", "RECORDS", "SIZE", "ADDED", "HEALTH", "NOTES")
FLUSH = "ID,LOGS,RECORDS,SIZE,ADDED"
SPARE = "LOGS,ADDED,RECORDS,SIZE,COMMITTED"
"""What a narrow terminal does without, the least important first."""


def backup_table(rows: Iterable[BackupRow], look: Look) -> str:
    """The rows for people. A column of notes is there only when there are notes."""
    shown = [cells(row, look) for row in rows]
    columns = len(HEADERS) if any(row[-1] for row in shown) else len(HEADERS) - 1
    return look.table(HEADERS[:columns], [row[:columns] for row in shown], right=FLUSH, spare=SPARE, free="NOTES")


def cells(row: BackupRow, look: Look) -> tuple[str, ...]:
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
