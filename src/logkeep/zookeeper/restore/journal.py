"""How far a restore has come, on disk: one journal for all its members, written before each phase begins.

The journal lies in the first member's dataDir; the others have a file of the same name that says where. It names
directories as the operator did; the directories beside them follow from the restore's id, and nothing else is believed.

    staging   the old data is in place, untouched; the new one is being written beside it
    old       the marker may be there; `version-2` holds old files only, the others of them are in `.before-<id>`
    new       the marker may be there; `version-2` holds new files only, the others of them are in `.new-<id>`
    done      the new data is in place; the old one is in `.before-<id>`

Forward is old → new → done, back is new → old → nothing: from every phase both ways are open.
"""

from enum import StrEnum
from pathlib import Path
from typing import Annotated

import msgspec

from logkeep.errors import Damaged, TargetUnsafe
from logkeep.zookeeper.restore.target_dirs import JOURNAL, ServerDirectories

_LARGEST = 1 << 20
Id = Annotated[str, msgspec.Meta(pattern=r"^[0-9]{14}-[0-9a-f]{8}$")]


class Phase(StrEnum):
    STAGING = "staging"
    OLD = "old"
    NEW = "new"
    DONE = "done"


class JournalPlace(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    data_dir: str
    log_dir: str
    made: tuple[str, ...]
    """Which `version-2` there was none of before."""
    fingerprint: str
    """Of the old data."""
    empty: tuple[str, ...] | None = None
    """Which `version-2` was there and held nothing; None in a journal that does not tell."""

    def place(self) -> ServerDirectories:
        return ServerDirectories(Path(self.data_dir), Path(self.log_dir))


class RestoreJournal(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True, tag="restore-journal-1"):
    restore: Id
    phase: Phase
    places: tuple[JournalPlace, ...]
    was_done: bool = False
    """Servers may have written to the new data: it is not thrown away when it is rolled back."""
    earlier: "RestoreJournal | None" = None
    """Of the restore before, which can be rolled back again once this one is."""


class Pointer(msgspec.Struct, frozen=True, forbid_unknown_fields=True, tag="restore-journal-elsewhere-1"):
    """In the dataDir of every other member: where the journal is."""

    data_dir: str


def encoded(document: RestoreJournal | Pointer) -> bytes:
    return msgspec.json.format(msgspec.json.encode(document), indent=1) + b"\n"


def read_journal(data_dir: Path) -> RestoreJournal | None:
    """The journal of the restore that this dataDir has part in. Raises Damaged for what is none."""
    document = _read(data_dir)
    if isinstance(document, Pointer):
        pointed = Path(document.data_dir)
        found = _read(pointed) if pointed.is_absolute() and pointed != data_dir else None
        return found if isinstance(found, RestoreJournal) and _names(found, data_dir) else None
    if document is not None and not _names(document, data_dir):
        raise TargetUnsafe(
            "the journal of a restore lies here that is of other directories",
            subject=str(data_dir / JOURNAL),
            remedy="it came with a copy of a directory: move it away",
        )
    return document


def _names(journal: RestoreJournal, data_dir: Path) -> bool:
    paths = [Path(path) for place in journal.places for path in (place.data_dir, place.log_dir)]
    plain = all(path.is_absolute() and ".." not in path.parts for path in paths)
    return plain and any(Path(place.data_dir) == data_dir for place in journal.places)


def check_members(journal: RestoreJournal) -> None:
    """Raises TargetUnsafe for a member that does not know of the journal: nothing is moved on its word alone."""
    first, *others = journal.places
    for place in others:
        if _read(Path(place.data_dir)) != Pointer(first.data_dir):
            raise TargetUnsafe(
                f"the journal in {first.data_dir} says that restore {journal.restore} is of this directory too, "
                "which does not know of it",
                subject=place.data_dir,
                remedy="look whether its file system is mounted, and what wrote the journal",
            )


def _read(data_dir: Path) -> RestoreJournal | Pointer | None:
    path = data_dir / JOURNAL
    try:
        if path.stat().st_size > _LARGEST:
            raise Damaged("it is too large", subject=str(path))
        return msgspec.json.decode(path.read_bytes(), type=RestoreJournal | Pointer)
    except FileNotFoundError:
        return None
    except OSError as error:
        what = (error.strerror or "it cannot be read").lower()
        raise TargetUnsafe(what, subject=str(path), remedy="run as the user that owns it, or as root") from error
    except (msgspec.DecodeError, UnicodeDecodeError) as error:
        raise Damaged("this is no journal of a restore", subject=str(path)) from error
