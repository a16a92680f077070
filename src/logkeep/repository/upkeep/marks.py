"""Garbage marks: documents with the names of objects that a later garbage collection deletes.

They need no rows of segments, so `status` reads them without loading Arrow.
"""

from dataclasses import dataclass
from datetime import datetime
from typing import ClassVar

from logkeep.errors import Damaged, ObjectMissing
from logkeep.repository.chain import layout
from logkeep.repository.chain.commits import SourceRef
from logkeep.repository.chain.documents import MIB, SourceDocument, read


class GarbageMark(SourceDocument, frozen=True, kw_only=True, tag="garbage-mark"):
    limit: ClassVar[int] = 32 * MIB

    generation: int
    names: tuple[str, ...]


@dataclass(frozen=True)
class StoredMark:
    """A mark as the store shows it."""

    name: str
    marked: datetime
    names: frozenset[str]


def read_marks(place: SourceRef, damaged: list[str] | None = None) -> list[StoredMark]:
    """All marks. Unreadable ones are skipped and added to `damaged`; `repair` removes them."""
    marks = []
    for info in place.store.list(layout.garbage(place.source)):
        try:
            names = frozenset(read(place.store, info.name, GarbageMark, place.repository).names)
        except ObjectMissing:
            continue
        except Damaged:
            if damaged is not None:
                damaged.append(info.name)
            continue
        marks.append(StoredMark(info.name, info.modified, names))
    return marks


def marked_since(marks: list[StoredMark]) -> dict[str, datetime]:
    """When each object was marked first."""
    newest_first = sorted(marks, key=lambda mark: mark.marked, reverse=True)
    return {name: mark.marked for mark in newest_first for name in mark.names}
