"""The journal of a restore in the servers' directories: one for all members, written before each phase begins.

The journal lies in the first member's dataDir; the other members have a file of the same name that points to it. It
names directories as the operator did. The names of the directories beside them are derived from the restore's id.

    staging   the old data is in place, untouched; the new data is being written beside it
    old       the marker may be there; `version-2` holds only old files, the other old files are in `.before-<id>`
    new       the marker may be there; `version-2` holds only new files, the other new files are in `.new-<id>`
    done      the new data is in place; the old data is in `.before-<id>`

A continue goes old → new → done, a rollback new → old → nothing. Both are possible from every phase.
"""

import os
import shlex
from collections.abc import Container, Sequence
from enum import StrEnum
from pathlib import Path
from typing import Annotated

import msgspec

from logkeep.directories.folder import Folder
from logkeep.directories.owner_process import OwnerProcess
from logkeep.directories.path_walk import user_name
from logkeep.errors import Damaged, OtherOwner, TargetUnsafe
from logkeep.formats.zookeeper.names import parse_name
from logkeep.zookeeper.restore.target.directories import (
    JOURNAL,
    LiveDirectory,
    ServerDirectories,
    named_folder,
    unreadable,
)

_LARGEST = 1 << 20
_EPOCH_NAMES = ("currentEpoch", "acceptedEpoch")
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
    """What the restore creates: `version-2` directories that did not exist before, and the staged files."""
    fingerprint: str
    """Of the old data."""
    empty: tuple[str, ...] | None = None
    """The `version-2` directories that existed and were empty; None in a journal of an earlier version."""

    def place(self, opened: dict[Path, Folder | LiveDirectory]) -> ServerDirectories:
        """`opened`: directories that are open already."""
        return ServerDirectories(Path(self.data_dir), Path(self.log_dir), opened=opened)

    def removable(self, staged: Path) -> Container[str]:
        """The names in a staging directory that the restore made. A journal of an earlier release does not list them:
        then names that a restore makes."""
        named = [Path(path) for path in self.made if ".new-" in Path(path).parent.name]
        return frozenset(path.name for path in named if path.parent == staged) if named else _RestoreNames()


class _RestoreNames:
    """The names of all files that a restore makes."""

    def __contains__(self, name: object) -> bool:
        parsed = parse_name(str(name))
        return str(name) in _EPOCH_NAMES or (parsed is not None and not parsed.stray)


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
    """As `journal_of`, for a directory that is not open."""
    return journal_of(named_folder(data_dir), {})


def journal_of(folder: Folder, opened: dict[Path, Folder | LiveDirectory]) -> RestoreJournal | None:
    """The journal of the restore that this dataDir belongs to. Raises Damaged for a file that is no journal,
    OtherOwner for one that another user made. `opened` gets the directory with the journal."""
    document, data_dir = _read(folder), folder.path
    if isinstance(document, Pointer):
        pointed = Path(document.data_dir)
        if not pointed.is_absolute() or pointed == data_dir:
            return None
        elsewhere = opened.setdefault(pointed, named_folder(pointed))
        found = _read(elsewhere) if isinstance(elsewhere, Folder) else None
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


def check_members(journal: RestoreJournal, places: Sequence[ServerDirectories]) -> None:
    """Raises TargetUnsafe for a member without a pointer to the journal: the journal alone is not trusted.

    While files are staged, members of the journal's own owner need none: a run that died early may not have made it.
    """
    first, *others = places
    members = [place.data_folder for place in others]
    staging = journal.phase is Phase.STAGING
    wanted = [each for each in members if not staging or _is_foreign(each, first)] + consenting(places)
    for folder in wanted:
        if _read(folder) != Pointer(str(first.data_dir)):
            raise TargetUnsafe(
                f"the journal in {first.data_dir} names this directory for restore {journal.restore}, but this "
                "directory has no pointer to that journal",
                subject=str(folder.path),
                remedy="check whether its file system is mounted, and what wrote the journal",
            )


def consenting(places: Sequence[ServerDirectories]) -> list[Folder]:
    """Log directories of another owner than the journal's: they have a pointer to it, as other members have.

    Without it, the owner of the journal could have root work in any directory of any user.
    """
    first = places[0]
    return [
        place.log_folder for place in places if place.log_dir != place.data_dir and _is_foreign(place.log_folder, first)
    ]


def _is_foreign(folder: Folder, first: ServerDirectories) -> bool:
    return isinstance(first.data_folder.worker, OwnerProcess) and folder.worker.uid != first.data_folder.worker.uid


def _read(folder: Folder) -> RestoreJournal | Pointer | None:
    path = folder.path / JOURNAL
    try:
        with folder.opened(JOURNAL) as file:
            status = os.fstat(file)
            if status.st_uid not in folder.trusted:
                raise _not_trusted(path, status.st_uid)
            if status.st_size > _LARGEST:
                raise Damaged("it is too large", subject=str(path))
            return msgspec.json.decode(os.pread(file, _LARGEST, 0), type=RestoreJournal | Pointer)
    except FileNotFoundError:
        return None
    except OSError as error:
        raise unreadable(path, error) from error
    except (msgspec.DecodeError, UnicodeDecodeError) as error:
        raise Damaged("this is not the journal of a restore", subject=str(path)) from error


def _not_trusted(path: Path, uid: int) -> OtherOwner:
    file, away = shlex.quote(str(path)), shlex.quote(f"{path}.away")
    return OtherOwner(
        f"{user_name(uid)} made this journal, so it is not followed",
        subject=str(path),
        remedy=f"if a restore wrote it: chown {os.geteuid()} {file}; otherwise: mv {file} {away}",
    )
