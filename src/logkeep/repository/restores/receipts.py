"""Receipts of restores: written once each, a new one when a resumed restore proves again, the newest counts.

The receipt is put first and is the truth. Then comes a small document whose name says what `list` shows; when a
process dies between the two, readers open the receipt in its place.
"""

import hashlib
from contextlib import suppress
from datetime import datetime

import msgspec

from logkeep.errors import AlreadyExists, Damaged, ObjectMissing
from logkeep.model.ids import BackupId, RestoreId
from logkeep.repository import layout
from logkeep.repository.chain import Place
from logkeep.repository.documents import put_own
from logkeep.repository.restores.documents import EndedDocument, ReceiptDocument, moment, sealed
from logkeep.repository.restores.storing import last_number, read_of

FIRST = 1
"""The number to make a receipt with; storing it gives it its own."""


def put_receipt(place: Place, receipt: ReceiptDocument) -> ReceiptDocument:
    """Store a receipt under the next number of its restore. Returns it with that number."""
    restore_id = RestoreId(receipt.restore)
    number = last_number(place, restore_id, "receipt")
    while True:
        number += 1
        numbered = msgspec.structs.replace(receipt, number=number)
        data = sealed(numbered)
        try:
            put_own(place.store, layout.restore_receipt(place.source, restore_id, number), data)
        except AlreadyExists:
            continue  # another run that resumed it was faster
        _tell(place, numbered, data)
        return numbered


def _tell(place: Place, receipt: ReceiptDocument, data: bytes) -> None:
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


def ended(receipt: ReceiptDocument) -> layout.Ended:
    """What a listing tells of a receipt."""
    return layout.Ended(
        BackupId(receipt.backup),
        receipt.drill,
        receipt.verdict,
        _to_ms(moment(receipt.started)),
        _to_ms(moment(receipt.finished)),
        round(receipt.duration_s * 1000),
    )


def _to_ms(time: datetime) -> datetime:
    return time.replace(microsecond=time.microsecond // 1000 * 1000)


def read_receipt(place: Place, restore_id: RestoreId, number: int) -> ReceiptDocument:
    """One receipt. Raises ObjectMissing and Damaged."""
    name = layout.restore_receipt(place.source, restore_id, number)
    receipt = read_of(place, restore_id, name, ReceiptDocument)
    if receipt.number != number:
        raise Damaged("the document belongs to another place", subject=name)
    return receipt


def read_receipts(place: Place, restore_id: RestoreId) -> list[ReceiptDocument]:
    """All receipts of a restore, oldest first; the last one counts. Raises Damaged, also when one is missing."""
    last = last_number(place, restore_id, "receipt")
    return [_present(place, restore_id, number) for number in range(1, last + 1)]


def newest_receipt(place: Place, restore_id: RestoreId) -> ReceiptDocument | None:
    """The receipt that counts; None when the restore has not ended."""
    last = last_number(place, restore_id, "receipt")
    return _present(place, restore_id, last) if last else None


def _present(place: Place, restore_id: RestoreId, number: int) -> ReceiptDocument:
    try:
        return read_receipt(place, restore_id, number)
    except ObjectMissing as error:
        name = layout.restore_receipt(place.source, restore_id, number)
        raise Damaged("a receipt is missing", subject=name) from error
