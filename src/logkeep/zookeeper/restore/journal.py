"""The journal of a restore in the servers' directories: one for all members, written before each phase begins.

The journal lies in the first member's dataDir; the other members have a file of the same name that points to it. It
names directories as the operator did. The names of the directories beside them are derived from the restore's id.

    staging   the old data is in place, untouched; the new data is being written beside it
    old       the marker may be there; `version-2` holds only old files, the other old files are in `.before-<id>`
    new       the marker may be there; `version-2` holds only new files, the other new files are in `.new-<id>`
    done      the new data is in place; the old data is in `.before-<id>`

A continue goes old → new → done, a rollback new → old → nothing. Both are possible from every phase.
"""

from enum import StrEnum
from pathlib import Path
from typing import Annotated

import msgspec

from logkeep.errors import Damaged, TargetUnsafe
from logkeep.zookeeper.restore.target_dirs import JOURNAL, ServerDirectories, unreadable

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
    """The `version-2` directories that did not exist before."""
    fingerprint: str
    """Of the old data."""
    empty: tuple[str, ...] | None = None
    """The `version-2` directories that existed and were empty; None in a journal of an earlier version."""

    def place(self) -> ServerDirectories:
        return ServerDirectories(Path(self.data_dir), Path(self.log_dir))


class RestoreJournal(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True, tag="restore-journal-1"):
    restore: Id
    phase: Phase
    places: tuple[JournalPlace, ...]
    was_done: bool = False
    """Servers may have written to the new data: a rollback does not delete it."""
    earlier: "RestoreJournal | None" = None
    """The journal of the restore before, which can be rolled back after this one was."""


class Pointer(msgspec.Struct, frozen=True, forbid_unknown_fields=True, tag="restore-journal-elsewhere-1"):
    """In the dataDir of every other member: the dataDir with the journal."""

    data_dir: str


def encoded(document: RestoreJournal | Pointer) -> bytes:
    return msgspec.json.format(msgspec.json.encode(document), indent=1) + b"\n"


def read_journal(data_dir: Path) -> RestoreJournal | None:
    """The journal of the restore that this dataDir belongs to. Raises Damaged for a file that is no journal."""
    document = _read(data_dir)
    if isinstance(document, Pointer):
        pointed = Path(document.data_dir)
        found = _read(pointed) if pointed.is_absolute() and pointed != data_dir else None
        return found if isinstance(found, RestoreJournal) and _names(found, data_dir) else None
    if document is not None and not _names(document, data_dir):
        raise TargetUnsafe(
            "this journal belongs to a restore of other directories",
            subject=str(data_dir / JOURNAL),
            remedy="it came with a copy of a directory: move it away",
        )
    return document


def _names(journal: RestoreJournal, data_dir: Path) -> bool:
    paths = [Path(path) for place in journal.places for path in (place.data_dir, place.log_dir)]
    plain = all(path.is_absolute() and ".." not in path.parts for path in paths)
    return plain and any(Path(place.data_dir) == data_dir for place in journal.places)


def check_members(journal: RestoreJournal) -> None:
    """Raises TargetUnsafe for a member without a pointer to the journal: the journal alone is not trusted."""
    first, *others = journal.places
    for place in others:
        if _read(Path(place.data_dir)) != Pointer(first.data_dir):
            raise TargetUnsafe(
                f"the journal in {first.data_dir} names this directory for restore {journal.restore}, but this "
                "directory has no pointer to that journal",
                subject=place.data_dir,
                remedy="check whether its file system is mounted, and what wrote the journal",
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
        raise unreadable(path, error) from error
    except (msgspec.DecodeError, UnicodeDecodeError) as error:
        raise Damaged("this is not the journal of a restore", subject=str(path)) from error
