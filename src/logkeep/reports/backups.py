"""Backups of sources, one row each."""

from collections.abc import Callable, Sequence
from datetime import datetime
from typing import Annotated, Literal

import msgspec

from logkeep.errors import Damaged
from logkeep.model.time import Rfc3339, rfc3339
from logkeep.reports.restores import LastRestore, last_of_each
from logkeep.repository.backups.source import SourceView, view
from logkeep.repository.backups.states import Completed, Failed, Ongoing, State
from logkeep.repository.backups.verdicts import BackupVerdict, verdicts
from logkeep.repository.backups.verification import stored_verifications
from logkeep.repository.chain.commits import SourceRef
from logkeep.repository.chain.fold import BackupEntry
from logkeep.repository.chain.owner import this_process
from logkeep.repository.chain.trims import TrimmedAway

Health = Literal["unverified", "good", "damaged"]
VerifiedText = Annotated[
    str,
    msgspec.Meta(
        description="Deprecated, not RFC 3339: time and level in one text, `20261115T103000123456Z files`.",
        extra_json_schema={"deprecated": True},
    ),
]


class BackupRow(msgspec.Struct, frozen=True, kw_only=True):
    """A backup in a list. Sizes in bytes, times in RFC 3339; what a state does not have is null."""

    source: str
    id: int
    state: str
    started: Rfc3339 | None = None
    committed: Rfc3339 | None = None
    logs: int | None = None
    segments: int | None = None
    records: int | None = None
    stored_bytes: int | None = None
    new_bytes: int | None = None
    health: Health = "unverified"
    verified: VerifiedText | None = None
    """Deprecated: `verified_at` and `verified_level` in one text."""
    held: str | None = None
    tags: tuple[str, ...] = ()
    group: tuple[str, ...] = ()
    warnings: int = 0
    reason: str | None = None
    """Why it failed."""
    last_restore: LastRestore | None = None
    """The restore or drill of it that ended last."""
    verified_at: Rfc3339 | None = None
    """When the verification was that counts: the deepest good one; of a damaged backup the one with the damage."""
    verified_level: str | None = None
    verified_age_seconds: float | None = None
    trimmed_segments: int = 0
    """Segments, records and bytes that trims took from it; the numbers above are without them."""
    trimmed_records: int = 0
    trimmed_bytes: int = 0
    certified: bool = False
    """Whether a certificate says that the cut is consistent: the level `cut`, and no damage since."""


class ListReport(msgspec.Struct, frozen=True, kw_only=True):
    url: str
    sources: tuple[str, ...]
    backups: tuple[BackupRow, ...]
    warnings: tuple[str, ...]


def list_report(
    places: Sequence[SourceRef], now: datetime, state_of: Callable[[SourceRef], SourceRef], url: str
) -> ListReport:
    """All backups of these sources. `state_of` opens the place of a source's restores."""
    views, trouble = list[tuple[SourceRef, SourceView]](), list[str]()
    for place in places:
        try:
            views.append((place, read_source(place, now)))
        except Damaged as damage:
            if len(places) == 1:
                raise
            trouble.append(f"source {place.source}: {damage}; {damage.remedy}")  # must not hide the others
    rows = list[BackupRow]()
    for place, found in views:
        health, restored = health_of(place), last_of_each(lambda place=place: state_of(place))  # type: ignore[misc]
        own = (backup_row(place.source, state, health, now) for state in found.states())
        rows += [msgspec.structs.replace(row, last_restore=restored.get(row.id)) for row in own]
    return ListReport(
        url=places[0].store.url if places else url,
        sources=tuple(place.source for place in places),
        backups=tuple(rows),
        warnings=(*trouble, *(w for _, found in views for w in found.warnings)),
    )


def read_source(place: SourceRef, now: datetime) -> SourceView:
    """The backups of a source in all their states, as a reader sees them."""
    return view(place, now, this_process("reader"))


def health_of(place: SourceRef) -> dict[int, BackupVerdict]:
    """The verdict of the stored verifications, by backup."""
    return dict(verdicts(said for said, _ in stored_verifications(place)).items())


def health_word(verdict: BackupVerdict | None) -> Health:
    return "unverified" if verdict is None else "damaged" if verdict.damaged else "good"


def backup_row(source: str, state: State, health: dict[int, BackupVerdict], now: datetime) -> BackupRow:
    if isinstance(state, Completed):
        row = _completed(source, state.entry)
        return with_health(row, health[state.id], now) if state.id in health else row
    if isinstance(state, Failed):
        started = state.request.started if state.request else None
        reason = state.reason if state.recorded else f"{state.reason}; can be resumed"
        return BackupRow(source=source, id=state.id, state=state.name, started=started, reason=reason)
    if isinstance(state, Ongoing):
        return BackupRow(source=source, id=state.id, state=state.name, started=state.request.started)
    return BackupRow(source=source, id=state.id, state=state.name)


def with_health(row: BackupRow, verdict: BackupVerdict, now: datetime) -> BackupRow:
    return msgspec.structs.replace(
        row,
        health=health_word(verdict),
        verified=f"{verdict.when} {verdict.level}",
        verified_at=rfc3339(verdict.time),
        verified_level=verdict.level,
        verified_age_seconds=(now - verdict.time).total_seconds(),
        certified=verdict.level == "cut" and not verdict.damaged,
    )


def _completed(source: str, entry: BackupEntry) -> BackupRow:
    summary, lost = entry.summary, entry.trimmed or TrimmedAway(0, 0, 0)
    return BackupRow(
        source=source,
        id=entry.id,
        state="completed",
        started=summary.started,
        committed=entry.committed,
        logs=summary.logs,
        segments=max(summary.segments - lost.segments, 0),
        records=max(summary.records - lost.records, 0),
        stored_bytes=max(summary.stored_bytes - lost.stored_bytes, 0),
        new_bytes=summary.new_bytes,
        held=entry.hold,
        tags=summary.tags,
        group=summary.group,
        warnings=summary.warnings,
        trimmed_segments=lost.segments,
        trimmed_records=lost.records,
        trimmed_bytes=lost.stored_bytes,
    )
