"""Requests and receipts: the journal of a backup before it is committed.

The request is put first, so an id that was started is never lost. Every unit of work ends by putting its receipt, so a
killed driver loses nothing that was finished: a resumed run reads the receipts, checks their objects and copies the
rest. Tasks put receipts; the driver puts everything else.
"""

from collections.abc import Iterator
from typing import Annotated, ClassVar

import msgspec

from logkeep.errors import Damaged, ObjectMissing
from logkeep.model.ids import BackupId, StoredId
from logkeep.model.segments import Segment
from logkeep.repository.chain import layout
from logkeep.repository.chain.commits import SourceRef
from logkeep.repository.chain.documents import MIB, SourceDocument, put_own, read, seal
from logkeep.repository.chain.owner import Owner


class BackupRequest(SourceDocument, frozen=True, kw_only=True, tag="request"):
    id: StoredId
    owner: Owner
    started: str
    base: int | None
    """The backup that this one continues."""
    fence: int
    """The generation it began from."""
    group: tuple[str, ...] = ()
    """Sources that take part under the same id; empty for a single source."""
    tags: tuple[str, ...] = ()
    options: dict[str, str] = msgspec.field(default_factory=dict)
    """The user's options, for display and for resume. Never a secret."""


class UnitReceipt(SourceDocument, frozen=True, kw_only=True, tag="receipt"):
    limit: ClassVar[int] = 16 * MIB

    id: StoredId
    run: str
    unit: Annotated[str, msgspec.Meta(min_length=1, max_length=120)]
    segments: tuple[Segment, ...]
    note: str = ""
    """An outcome that is not an error: a gap, a new history."""


def put_request(place: SourceRef, request: BackupRequest) -> None:
    """Store the request. Raises AlreadyExists if the id was started before."""
    put_own(place.store, layout.request(place.source, BackupId(request.id)), seal(request))


def read_request(place: SourceRef, backup_id: BackupId) -> BackupRequest | None:
    name = layout.request(place.source, backup_id)
    try:
        request = read(place.store, name, BackupRequest, place.repository)
    except ObjectMissing:
        return None
    if (request.source, request.id) != (place.source, backup_id):
        raise Damaged("the request belongs to another backup", subject=name)
    return request


def put_receipt(place: SourceRef, receipt: UnitReceipt, token: str) -> None:
    """Store the receipt of a finished unit."""
    name = layout.receipt(place.source, BackupId(receipt.id), receipt.unit, token)
    put_own(place.store, name, seal(receipt))


def receipts(place: SourceRef, backup_id: BackupId, damaged: list[str] | None = None) -> Iterator[UnitReceipt]:
    """All receipts of a backup. Unreadable ones are skipped and added to `damaged`: their units are repeated."""
    for info in place.store.list(layout.journal(place.source, backup_id)):
        try:
            receipt = read(place.store, info.name, UnitReceipt, place.repository)
        except Damaged:
            if damaged is not None:
                damaged.append(info.name)
            continue
        if (receipt.source, receipt.id) == (place.source, backup_id):
            yield receipt
        elif damaged is not None:
            damaged.append(info.name)


def open_ids(place: SourceRef, last_id: int) -> list[BackupId]:
    """Ids that were started after the last one in the chain, smallest first.

    Ids grow and are decided in order, so nothing at or below `last_id` can be open: old journals are not listed.
    """
    after = layout.backups(place.source) + layout.padded(last_id + 1)
    names = (i.name for i in place.store.list(layout.backups(place.source), after))
    ids = (layout.backup_of(n) for n in names if n.endswith("/request.json"))
    return sorted({i for i in ids if i is not None})
