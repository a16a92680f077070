"""Numbered documents of a restore, counted from 1. Put-if-absent decides each number; nothing is overwritten."""

from collections.abc import Callable
from typing import TypeVar

from logkeep.errors import AlreadyExists, Damaged, ObjectMissing
from logkeep.model.ids import RestoreId
from logkeep.repository.chain import layout
from logkeep.repository.chain.commits import SourceRef
from logkeep.repository.chain.documents import open_in_place, put_own
from logkeep.repository.restores.documents import (
    NumberedDocument,
    ProducersDocument,
    ReceiptDocument,
    RestoreDocument,
    ResumedDocument,
    sealed,
)

DocumentT = TypeVar("DocumentT", bound=RestoreDocument)
NumberedT = TypeVar("NumberedT", bound=NumberedDocument)
_NAMES: dict[type[NumberedDocument], tuple[str, Callable[[str, RestoreId, int], str]]] = {
    ProducersDocument: ("producers", layout.restore_producers),
    ResumedDocument: ("resumed", layout.restore_resumed),
    ReceiptDocument: ("receipt", layout.restore_receipt),
}


def put_next(place: SourceRef, restore_id: RestoreId, make: Callable[[int], NumberedT]) -> tuple[NumberedT, bytes]:
    """Make a document with the next free number and store it. Returns it with its bytes."""
    document = make(1)
    number = last_number(place, restore_id, type(document))
    while True:
        number += 1
        document = make(number)
        data = sealed(document)
        try:
            put_own(place.store, _name(place, restore_id, type(document), number), data)
        except AlreadyExists:
            continue  # another run was faster
        return document, data


def put_numbered(place: SourceRef, restore_id: RestoreId, document: NumberedT) -> NumberedT:
    """Store a document under its own number. Returns the existing one if another process was faster."""
    name = _name(place, restore_id, type(document), document.number)
    try:
        put_own(place.store, name, sealed(document))
    except AlreadyExists:
        return read_numbered(place, restore_id, type(document), document.number)
    return document


def read_numbered(place: SourceRef, restore_id: RestoreId, kind: type[NumberedT], number: int) -> NumberedT:
    """The document with this number, which must exist. Raises Damaged."""
    name = _name(place, restore_id, kind, number)
    try:
        document = read_of(place, restore_id, name, kind)
    except ObjectMissing as error:
        raise Damaged("the document is missing", subject=name) from error
    if document.number != number:
        raise Damaged("the document has another number than its name", subject=name)
    return document


def read_all(place: SourceRef, restore_id: RestoreId, kind: type[NumberedT]) -> list[NumberedT]:
    """All of a kind, oldest first. Raises Damaged, also if one is missing."""
    last = last_number(place, restore_id, kind)
    return [read_numbered(place, restore_id, kind, number) for number in range(1, last + 1)]


def read_newest(place: SourceRef, restore_id: RestoreId, kind: type[NumberedT]) -> NumberedT | None:
    """The last one; None if there is none. Raises Damaged."""
    last = last_number(place, restore_id, kind)
    return read_numbered(place, restore_id, kind, last) if last else None


def last_number(place: SourceRef, restore_id: RestoreId, kind: type[NumberedDocument]) -> int:
    """The highest number of a kind of document; 0 if there is none."""
    names = (i.name for i in place.store.list(layout.restore(place.source, restore_id)))
    parsed = (layout.restore_object(place.source, name) for name in names)
    return max((each.number for each in parsed if each and each.kind == _NAMES[kind][0]), default=0)


def read_of(place: SourceRef, restore_id: RestoreId, name: str, kind: type[DocumentT]) -> DocumentT:
    """Read a document that must belong to this restore. Raises ObjectMissing and Damaged."""
    document = open_in_place(place.store.get(name, kind.limit), name, kind, place.repository)
    if (document.source, document.restore) != (place.source, restore_id):
        raise Damaged("the document belongs to another restore", subject=name)
    return document


def _name(place: SourceRef, restore_id: RestoreId, kind: type[NumberedDocument], number: int) -> str:
    return _NAMES[kind][1](place.source, restore_id, number)
