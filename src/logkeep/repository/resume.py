"""Finds receipts of interrupted runs whose objects are intact, for a resumed or a new backup.

A resumed backup keeps its own receipts. A new one adopts those of backups that failed since the last completed one:
their segments may be the only copy of data that the source has deleted. Every object is read and hashed first, and one
that garbage collection has marked is never used.
"""

from collections.abc import Iterable

import msgspec

from logkeep.model.ids import BackupId
from logkeep.model.work import Engine
from logkeep.repository.backups.backup import OngoingBackup
from logkeep.repository.backups.journal import UnitReceipt, put_receipt, receipts
from logkeep.repository.chain import layout
from logkeep.repository.chain.commits import SourceRef
from logkeep.repository.chain.fold import Folded
from logkeep.repository.chain.write_session import Writing
from logkeep.repository.parts import Expected
from logkeep.repository.upkeep.marks import read_marks
from logkeep.repository.verify.checks import HashResult, hash_objects, hash_units


def usable_receipts(writing: Writing, ongoing: OngoingBackup, engine: Engine) -> dict[str, UnitReceipt]:
    """One receipt for every unit that need not be repeated; all of them are in this backup's own journal now."""
    place = writing.place
    own = list(receipts(place, ongoing.id))
    others = [r for i in _failed_since(writing.folded) for r in receipts(place, i)]
    unreadable: list[str] = []
    marked = frozenset[str]().union(*(m.names for m in read_marks(place, unreadable)))
    if unreadable:
        return {}  # the marked objects are unknown: copy everything again
    damaged = _damaged(place, [*own, *others], engine)
    usable: dict[str, UnitReceipt] = {}
    for receipt in [*own, *others]:
        names = {layout.segment(place.source, s) for s in receipt.segments if s.has_object}
        if receipt.unit not in usable and not names & damaged and not names & marked:
            usable[receipt.unit] = receipt if receipt.id == ongoing.id else _adopt(writing, ongoing, receipt)
    return usable


def _failed_since(folded: Folded) -> list[BackupId]:
    """Failed backups after the newest completed one, newest first."""
    newest = folded.completed[-1].id if folded.completed else 0
    return [BackupId(f.id) for f in reversed(folded.failed) if f.id > newest]


def _damaged(place: SourceRef, found: Iterable[UnitReceipt], engine: Engine) -> set[str]:
    segments = {layout.segment(place.source, s): s for r in found for s in r.segments if s.has_object}
    wanted = [
        Expected(name, s.stored_bytes, s.sha256, s.codec, s.plain_bytes, s.plain_sha256) for name, s in segments.items()
    ]
    units = list(hash_units(place.store, wanted))
    results = engine.map(hash_objects, units, HashResult, label="re-check", weight=lambda u: u.bytes)
    return {f.where for r in results for f in r.findings}


def _adopt(writing: Writing, ongoing: OngoingBackup, receipt: UnitReceipt) -> UnitReceipt:
    """Copy another backup's receipt to our journal, so that its objects stay live."""
    adopted = msgspec.structs.replace(receipt, id=ongoing.id, run=writing.run)
    put_receipt(writing.place, adopted, writing.tokens())
    return adopted
