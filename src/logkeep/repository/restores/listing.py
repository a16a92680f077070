"""Which restores there are, and how each ended: one listing, and a read only where names do not tell.

The names beside receipts say what became of a restore that has ended. A restore that is under way has its plan read,
one that was aborted a small document. What cannot be read is told in its row and hides no other.
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
from logkeep.repository.restores.receipts import ended, read_receipt
from logkeep.repository.restores.storing import read_aborted, read_plan


class RestoreState(StrEnum):
    ONGOING = "ongoing"
    """Begun, and neither ended nor given up; whether its process lives, its owner tells."""
    PROVEN = "proven"
    UNPROVEN = "unproven"
    SET = "set"
    """Only groups were moved: no restore of a backup."""
    FAILED = "failed"
    ABORTED = "aborted"
    PART = "part"
    """A part went into a system that runs: no restore of a backup either."""
    STOPPED = "stopped"
    """The same, and it did not come to its end."""


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
    """Who began it or resumed it last, while it is ongoing."""
    kind: str = ""
    """As its plan tells it, while it is ongoing."""
    trouble: str = ""
    """A document that counts cannot be read."""
    changed: datetime | None = None
    """When it was compared once more, long after its end, and target or archive were no longer what they had been."""
    part: str = ""
    """`groups` or `subtree`: only these came back, and nothing is said of the backup as a whole."""


@dataclass
class _Names:
    """What the names of one restore say."""

    receipts: set[int] = field(default_factory=set)
    ended: dict[int, layout.EndedRestoreName] = field(default_factory=dict)
    aborted: bool = False

    def add(self, said: layout.RestoreObject) -> None:
        if said.kind == "receipt":
            self.receipts.add(said.number)
        elif said.ended is not None:
            self.ended[said.number] = said.ended
        self.aborted = self.aborted or said.kind == "aborted"

    @property
    def last(self) -> int:
        return max(self.receipts, default=0)


def list_restores(place: SourceRef) -> list[RestoreRow]:
    """All restores, oldest first."""
    return [_row(place, restore_id, names) for restore_id, names in _by_restore(place).items()]


def last_restores(place: SourceRef) -> dict[BackupId, RestoreRow]:
    """The restore of each backup that ended last. A listing; a receipt is read only when its process died over it."""
    ended_ones = {i: names for i, names in _by_restore(place).items() if names.last}
    return newest(_row(place, restore_id, names) for restore_id, names in ended_ones.items())


def newest(rows: Iterable[RestoreRow]) -> dict[BackupId, RestoreRow]:
    """By backup, the row that was finished last. Pure.

    Rows that never finished, that tell no backup, or that tell of a part alone are left out.
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
        said = layout.restore_object(place.source, info.name)
        if said is not None:
            found.setdefault(said.restore, _Names()).add(said)
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
    """How it ended, by the newest receipt that is about the restore itself; and what was seen of it since."""
    changed: datetime | None = None
    for number in range(names.last, 0, -1):
        said = names.ended.get(number) or ended(read_receipt(place, row.id, number))
        if said.verdict != RestoreVerdict.CHANGED:
            return replace(_ended_row(row, said), changed=changed)
        changed = changed or said.finished
    raise Damaged("only a later comparison is left of it", subject=layout.restore(place.source, row.id))


def _ended_row(row: RestoreRow, said: layout.EndedRestoreName) -> RestoreRow:
    known = said.verdict in set(RestoreVerdict)
    return replace(
        row,
        state=RestoreState(said.verdict) if known else RestoreState.FAILED,
        backup=said.backup,
        drill=said.drill,
        started=said.started,
        finished=said.finished,
        duration_s=said.duration_ms / 1000,
        trouble="" if known else f"it ended in a way that this release does not know: {said.verdict}",
        part=_PARTS.get(RestoreVerdict(said.verdict), "") if known else "",
    )


def _aborted_row(place: SourceRef, row: RestoreRow) -> RestoreRow:
    aborted = read_aborted(place, row.id)
    if aborted is None:
        raise Damaged("the document is gone", subject=layout.restore_aborted(place.source, row.id))
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
