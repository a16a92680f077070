"""Lists all restores and how each ended: one listing, and reads only where names are not enough.

The names beside receipts say how a restore ended. Of an ongoing restore the plan is read, of an aborted one a small
document. An unreadable document is reported in its row and hides no other.
"""

from collections.abc import Iterable
from dataclasses import dataclass, field, replace
from datetime import datetime
from enum import StrEnum

from logkeep.errors import Damaged, FormatTooNew, ObjectMissing
from logkeep.model.ids import BackupId, RestoreId
from logkeep.repository.chain import layout
from logkeep.repository.chain.commits import SourceRef
from logkeep.repository.chain.owner import Owner
from logkeep.repository.restores.attempts import owner_of
from logkeep.repository.restores.documents import RestoreVerdict, moment
from logkeep.repository.restores.plan_store import read_aborted, read_plan
from logkeep.repository.restores.receipts import ended, read_receipt


class RestoreState(StrEnum):
    ONGOING = "ongoing"
    """Neither ended nor aborted; `owner` shows whether its process is alive."""
    PROVEN = "proven"
    UNPROVEN = "unproven"
    SET = "set"
    """Only group offsets were set: no restore of a backup."""
    FAILED = "failed"
    ABORTED = "aborted"
    PART = "part"
    """A part was restored into a running system: no restore of a whole backup."""
    STOPPED = "stopped"
    """The same, but it did not finish."""


_PARTS = {RestoreVerdict.SET: "groups", RestoreVerdict.PART: "subtree", RestoreVerdict.STOPPED: "subtree"}


@dataclass(frozen=True)
class RestoreRow:
    """One restore; what is not known is None."""

    id: RestoreId
    state: RestoreState
    backup: BackupId | None = None
    drill: bool | None = None
    started: datetime | None = None
    finished: datetime | None = None
    duration_s: float | None = None
    receipts: int = 0
    owner: Owner | None = None
    """The process that began or last resumed it, while it is ongoing."""
    kind: str = ""
    """The kind in its plan, while it is ongoing."""
    trouble: str = ""
    """Why a document is unreadable."""
    changed: datetime | None = None
    """When a later comparison found that target or archive had changed."""
    part: str = ""
    """`groups` or `subtree`: only these were restored, not the whole backup."""


@dataclass
class _Names:
    """The parsed names of one restore."""

    receipts: set[int] = field(default_factory=set)
    ended: dict[int, layout.EndedRestoreName] = field(default_factory=dict)
    aborted: bool = False

    def add(self, parsed: layout.RestoreObject) -> None:
        if parsed.kind == "receipt":
            self.receipts.add(parsed.number)
        elif parsed.ended is not None:
            self.ended[parsed.number] = parsed.ended
        self.aborted = self.aborted or parsed.kind == "aborted"

    @property
    def last(self) -> int:
        return max(self.receipts, default=0)


def list_restores(place: SourceRef) -> list[RestoreRow]:
    """All restores, oldest first."""
    return [_row(place, restore_id, names) for restore_id, names in _by_restore(place).items()]


def last_restores(place: SourceRef) -> dict[BackupId, RestoreRow]:
    """The last ended restore of each backup. One listing; receipts are read only if their process died early."""
    ended_ones = {i: names for i, names in _by_restore(place).items() if names.last}
    return newest(_row(place, restore_id, names) for restore_id, names in ended_ones.items())


def newest(rows: Iterable[RestoreRow]) -> dict[BackupId, RestoreRow]:
    """The row that finished last, by backup. Pure.

    Rows that never finished, have no backup, or are of a part alone are left out.
    """
    found: dict[BackupId, RestoreRow] = {}
    for row in rows:
        if row.backup is None or row.finished is None or row.part:
            continue
        known = found.get(row.backup)
        if known is None or known.finished is None or (known.finished, known.id) <= (row.finished, row.id):
            found[row.backup] = row
    return found


def _by_restore(place: SourceRef) -> dict[RestoreId, _Names]:
    found: dict[RestoreId, _Names] = {}
    for info in place.store.list(layout.restores(place.source)):
        parsed = layout.restore_object(place.source, info.name)
        if parsed is not None:
            found.setdefault(parsed.restore, _Names()).add(parsed)
    return found


def _row(place: SourceRef, restore_id: RestoreId, names: _Names) -> RestoreRow:
    row = RestoreRow(restore_id, RestoreState.ONGOING, receipts=len(names.receipts))
    try:
        if names.last:
            row = _last_row(place, row, names)
        if names.aborted:
            return _aborted_row(place, row)
        return row if names.last else _ongoing_row(place, row)
    except (Damaged, ObjectMissing, FormatTooNew) as error:
        state = RestoreState.ABORTED if names.aborted else RestoreState.FAILED if names.last else row.state
        return replace(row, state=state, trouble=str(error))


def _last_row(place: SourceRef, row: RestoreRow, names: _Names) -> RestoreRow:
    """How it ended, by the newest receipt of the restore itself; and whether it changed since."""
    changed: datetime | None = None
    for number in range(names.last, 0, -1):
        parsed = names.ended.get(number) or ended(read_receipt(place, row.id, number))
        if parsed.verdict != RestoreVerdict.CHANGED:
            return replace(_ended_row(row, parsed), changed=changed)
        changed = changed or parsed.finished
    raise Damaged("the receipt of the restore itself is missing", subject=layout.restore(place.source, row.id))


def _ended_row(row: RestoreRow, parsed: layout.EndedRestoreName) -> RestoreRow:
    known = parsed.verdict in set(RestoreVerdict)
    return replace(
        row,
        state=RestoreState(parsed.verdict) if known else RestoreState.FAILED,
        backup=parsed.backup,
        drill=parsed.drill,
        started=parsed.started,
        finished=parsed.finished,
        duration_s=parsed.duration_ms / 1000,
        trouble="" if known else f"it has a verdict that this release does not know: {parsed.verdict}",
        part=_PARTS.get(RestoreVerdict(parsed.verdict), "") if known else "",
    )


def _aborted_row(place: SourceRef, row: RestoreRow) -> RestoreRow:
    aborted = read_aborted(place, row.id)
    if aborted is None:
        raise Damaged("the document is missing", subject=layout.restore_aborted(place.source, row.id))
    return replace(
        row,
        state=RestoreState.ABORTED,
        backup=BackupId(aborted.backup),
        drill=aborted.drill,
        started=moment(aborted.started),
        finished=moment(aborted.aborted),
    )


def _ongoing_row(place: SourceRef, row: RestoreRow) -> RestoreRow:
    plan = read_plan(place, row.id)
    return replace(
        row,
        backup=BackupId(plan.backup),
        drill=plan.drill,
        started=moment(plan.started),
        owner=owner_of(place, plan),
        kind=plan.kind,
    )
