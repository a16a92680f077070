"""Receipts of restores. A resumed restore that proves again gets a new one; the newest is valid.

A receipt with the verdict `changed` is not about the restore but about a later comparison. The newest of the others
says how the restore ended.

The receipt is put first. Then follows a small document whose name contains what `list` shows; if a process dies
between the two, readers open the receipt instead.
"""

import hashlib
from collections.abc import Iterator
from contextlib import suppress
from datetime import datetime

import msgspec

from logkeep.errors import AlreadyExists
from logkeep.model.ids import BackupId, RestoreId
from logkeep.repository.chain import layout
from logkeep.repository.chain.commits import SourceRef
from logkeep.repository.restores.document_numbers import last_number, put_next, read_all, read_newest, read_numbered
from logkeep.repository.restores.documents import EndedDocument, ReceiptDocument, RestoreVerdict, moment, sealed

FIRST = 1
"""The number of a receipt before it is stored."""


def put_receipt(place: SourceRef, receipt: ReceiptDocument) -> ReceiptDocument:
    """Store a receipt under the next number of its restore. Returns it with that number."""
    stored, data = put_next(place, RestoreId(receipt.restore), lambda n: msgspec.structs.replace(receipt, number=n))
    _put_ended(place, stored, data)
    return stored


def _put_ended(place: SourceRef, receipt: ReceiptDocument, data: bytes) -> None:
    document = EndedDocument(
        repository=place.repository,
        source=place.source,
        restore=receipt.restore,
        number=receipt.number,
        receipt_bytes=len(data),
        receipt_sha256=hashlib.sha256(data).hexdigest(),
    )
    name = layout.restore_ended(place.source, RestoreId(receipt.restore), receipt.number, ended(receipt))
    with suppress(AlreadyExists):
        place.store.put_new(name, sealed(document))


def ended(receipt: ReceiptDocument) -> layout.EndedRestoreName:
    """What a listing shows of a receipt."""
    return layout.EndedRestoreName(
        BackupId(receipt.backup),
        receipt.drill,
        receipt.verdict,
        _to_ms(moment(receipt.started)),
        _to_ms(moment(receipt.finished)),
        round(receipt.duration_s * 1000),
    )


def _to_ms(time: datetime) -> datetime:
    return time.replace(microsecond=time.microsecond // 1000 * 1000)


def read_receipt(place: SourceRef, restore_id: RestoreId, number: int) -> ReceiptDocument:
    """One receipt by its number. Raises Damaged."""
    return read_numbered(place, restore_id, ReceiptDocument, number)


def read_receipts(place: SourceRef, restore_id: RestoreId) -> list[ReceiptDocument]:
    """All receipts of a restore, oldest first. Raises Damaged, also if one is missing."""
    return read_all(place, restore_id, ReceiptDocument)


def newest_receipt(place: SourceRef, restore_id: RestoreId) -> ReceiptDocument | None:
    """The newest receipt; None if the restore has not ended."""
    return read_newest(place, restore_id, ReceiptDocument)


def newest_first(place: SourceRef, restore_id: RestoreId) -> Iterator[ReceiptDocument]:
    """Receipts, newest first, read one at a time: each may be large. Raises Damaged."""
    last = last_number(place, restore_id, ReceiptDocument)
    return (read_receipt(place, restore_id, number) for number in range(last, 0, -1))


def own_receipt(place: SourceRef, restore_id: RestoreId) -> ReceiptDocument | None:
    """The newest receipt of the restore itself, without later comparisons. Raises Damaged."""
    return next((r for r in newest_first(place, restore_id) if r.verdict is not RestoreVerdict.CHANGED), None)
