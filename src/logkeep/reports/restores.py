"""Restores and drills: the last one of each backup, the list, and one receipt in full."""

from collections.abc import Callable, Iterable

import msgspec

from logkeep.errors import Damaged, ObjectMissing, StoreLocationMissing, UsageError
from logkeep.model.findings import Finding
from logkeep.model.ids import BackupId, choose_id
from logkeep.model.time import Rfc3339, rfc3339
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
from logkeep.repository.restores.listing import last_restores


class LastRestore(msgspec.Struct, frozen=True, kw_only=True):
    """A restore that has ended. Times in RFC 3339."""

    id: int
    backup: int
    drill: bool
    state: str
    """`proven`, `unproven`, `failed` or `aborted`."""
    finished: Rfc3339
    duration_s: float | None
    """The recovery time; null when it was aborted."""


def last_of_each(open_state: Callable[[], SourceRef]) -> dict[int, LastRestore]:
    """The last restore of each backup of a source, by one listing. `open_state` opens the place of its restores."""
    try:
        found = dict(last_restores(open_state()).items())
    except StoreLocationMissing:
        return {}  # a directory of --state-dir that no restore has made yet
    return {
        backup: LastRestore(
            id=row.id,
            backup=backup,
            drill=bool(row.drill),
            state=row.state,
            finished=rfc3339(row.finished),
            duration_s=row.duration_s,
        )
        for backup, row in found.items()
        if row.finished is not None
    }


def last_of_all(found: Iterable[LastRestore]) -> LastRestore | None:
    return max(found, key=lambda each: (each.finished, each.id), default=None)


class RestoreLine(msgspec.Struct, frozen=True, kw_only=True):
    """A restore in a list. Times in RFC 3339; what is not known is null."""

    source: str
    id: int
    state: str
    """`ongoing`, `proven`, `unproven` (--no-proof), `set` (only groups), `part` (a subtree, read again),
    `stopped` (a subtree, not completed), `failed` or `aborted`."""
    backup: int | None
    drill: bool | None
    started: Rfc3339 | None
    finished: Rfc3339 | None
    duration_s: float | None
    """The recovery time."""
    receipts: int
    interrupted: bool
    """It is ongoing, and its process has certainly died."""
    trouble: str | None
    """A document that is needed cannot be read."""
    changed: Rfc3339 | None = None
    """When a later comparison found that target or archive had changed since its end."""
    part: str | None = None
    """`groups` or `subtree`, where only these were restored."""


class ReceiptsReport(msgspec.Struct, frozen=True, kw_only=True):
    url: str
    restores: tuple[RestoreLine, ...]


def receipts_report(places: list[SourceRef], url: str) -> ReceiptsReport:
    """All restores of these sources, oldest first; `url` names the repository where there is no source."""
    here = this_process("reader")
    lines = [_restore_line(place.source, row, here) for place in places for row in list_restores(place)]
    return ReceiptsReport(url=places[0].store.url if places else url, restores=tuple(lines))


def _restore_line(source: str, row: RestoreRow, here: Owner) -> RestoreLine:
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
    """A later comparison, after a restore that ended well: target or archive had changed since."""

    finished: Rfc3339
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
    """Facts that only this kind of source has, by name."""
    map: ObjectRef | None = None
    """The map of source to target offsets; --map writes it."""
    map_written: str | None = None
    compared_again: ComparedAgain | None = None
    """The latest comparison, if it found changes; everything else is about the restore itself."""
    all: bool = False


def receipt_report(place: SourceRef, restore: str) -> ReceiptReport:
    """One restore, chosen by a number, a unique prefix or `latest`. Of one that has not ended, its plan."""
    row = choose_restore(place, restore)
    plan, receipt = _plan(place, row), own_receipt(place, row.id)
    report = _report(_restore_line(place.source, row, this_process("reader")), plan, receipt)
    newest = newest_receipt(place, row.id) if row.changed else None
    if newest is None:
        return report
    again = ComparedAgain(finished=newest.finished, partitions=newest.partitions, findings=newest.findings)
    return msgspec.structs.replace(report, compared_again=again)


def choose_restore(place: SourceRef, text: str) -> RestoreRow:
    """A restore by its number, a unique prefix or `latest`."""
    rows = {BackupId(row.id): row for row in list_restores(place)}
    try:
        return rows[choose_id(text, list(rows))]
    except UsageError as error:
        what = "there is no restore yet" if not rows else error.what.replace("backup", "restore")
        raise UsageError(what, subject=place.store.url, remedy="run `logkeep receipts list` to see the ids") from error


def _plan(place: SourceRef, row: RestoreRow) -> RestorePlanDocument | None:
    """The plan; None where it cannot be read and there is a receipt to show."""
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
