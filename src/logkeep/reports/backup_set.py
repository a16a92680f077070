"""A backup set as a report: the state of each member, and what the certificate of its application says."""

from collections.abc import Iterable, Mapping, Sequence
from datetime import datetime

import msgspec

from logkeep.errors import UnknownBackup
from logkeep.kinds import kind_named
from logkeep.model.ids import BackupId, choose_id
from logkeep.model.time import Rfc3339
from logkeep.reports.backups import BackupRow, backup_row, health_of
from logkeep.reports.contents import SourceViews, member_states, source_views
from logkeep.repository.backups.source import read_facts
from logkeep.repository.backups.states import State, group_state
from logkeep.repository.backups.verification import stored_certificate
from logkeep.repository.chain.commits import SourceRef


class SetMemberRow(msgspec.Struct, frozen=True, kw_only=True):
    source: str
    kind: str | None
    """Null: the repository has no such source."""
    state: str
    """doesNotExist, ongoing, completed or failed."""
    reason: str | None = None
    """Why it failed."""
    started: Rfc3339 | None = None
    committed: Rfc3339 | None = None
    new_bytes: int | None = None
    """On a dry run about what it would store; null: not known before."""
    stored_bytes: int | None = None
    warnings: int = 0
    certificate: str | None = None
    """The verdict of `verify --level cut`; null: there is none."""
    certified: bool = False


class BackupSetReport(msgspec.Struct, frozen=True, kw_only=True):
    id: int
    """On a dry run the id that the set would have."""
    state: str
    """completed if all members are, failed if any is, else ongoing if any is, else doesNotExist."""
    members: tuple[SetMemberRow, ...]
    """In the order in which they are captured."""
    restore: tuple[str, ...] = ()
    """Commands that restore the members, in order; empty unless all are completed."""
    exit_code: int = 0
    dry_run: bool = False


def set_report(places: Iterable[SourceRef], now: datetime, backup: str) -> BackupSetReport:
    """Of one id, or of the `latest` set. Raises UnknownBackup."""
    views = source_views(places, now)
    wanted = _chosen_set(views, backup)
    return _report(views, wanted, member_states(views, wanted), now)


def taken_report(places: Iterable[SourceRef], now: datetime, taken: BackupId) -> BackupSetReport:
    """Of an id in these sources, also if none of them has it."""
    views = source_views(places, now)
    return _report(views, taken, {source: view.state(taken) for source, (_, view) in views.items()}, now)


def _report(views: SourceViews, backup_id: BackupId, states: Mapping[str, State], now: datetime) -> BackupSetReport:
    rows = []
    for source, state in states.items():
        place = views[source][0] if source in views else None
        row = backup_row(source, state, health_of(place) if place is not None else {}, now)
        rows.append(_member(row, place))
    return BackupSetReport(id=backup_id, state=group_state(s.name for s in states.values()), members=_in_order(rows))


def _in_order(rows: Sequence[SetMemberRow]) -> tuple[SetMemberRow, ...]:
    """By the time at which they began; those that never did come last."""

    def order(row: SetMemberRow) -> tuple[bool, str, bool]:
        return row.started is None, row.started or "", not kind_named(row.kind or "").leads_backup_set

    return tuple(sorted(rows, key=order))


def _chosen_set(views: SourceViews, text: str) -> BackupId:
    ids = sorted({state.id for _, view in views.values() for state in view.states()})
    if text != "latest":
        chosen = choose_id(text, ids)
        if len(member_states(views, chosen)) > 1:
            return chosen
        raise UnknownBackup(f"backup {chosen} is of one source only", remedy=f"`logkeep info {chosen}` shows it")
    newest = next((each for each in reversed(ids) if len(member_states(views, each)) > 1), None)
    if newest is None:
        raise UnknownBackup("there is no backup set", remedy="take one: `logkeep backup-set take --members …`")
    return newest


def _member(row: BackupRow, place: SourceRef | None) -> SetMemberRow:
    facts = read_facts(place) if place is not None else None
    certificate = None
    if place is not None and row.verified_level == "cut":
        certificate = stored_certificate(place, BackupId(row.id))
    return SetMemberRow(
        source=row.source,
        kind=facts.kind if facts else None,
        state=row.state,
        reason=row.reason,
        started=row.started,
        committed=row.committed,
        new_bytes=row.new_bytes,
        stored_bytes=row.stored_bytes,
        warnings=row.warnings,
        certificate=certificate.verdict if certificate else None,
        certified=row.certified,
    )
