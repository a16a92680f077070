"""The note that a restore writes beside its segment files, by which another run recognises them.

Brokers ignore the file. It is the same on all brokers that get the same restore.
"""

import os

import msgspec

from logkeep.directories.folder import Folder
from logkeep.errors import LogDirUnusable
from logkeep.kafka.offline_restore.values import DirectoryState, OfflineUnit, OldFile, RestoredSegment
from logkeep.model.segments import LogName

METADATA = "partition.metadata"
"""The broker's file with the topic id."""
NOTE = "logkeep-restore.json"
_LARGEST = 64 << 20


class RestoredFrom(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """Everything that determines the bytes of the files."""

    repository: str
    source: str
    backup: int
    log: LogName
    start: int
    end: int
    segment_bytes: int


class OwnershipNote(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True, tag="offline-restore-1"):
    origin: RestoredFrom
    end: int
    markers: int
    cut_batch: bool
    emptied: int
    files: tuple[RestoredSegment, ...]

    def sizes(self) -> dict[str, int]:
        return {f.name: f.size_bytes for f in self.files}


def origin_of(unit: OfflineUnit) -> RestoredFrom:
    planned, place = unit.planned, unit.place
    return RestoredFrom(
        place.repository, place.source, unit.backup, planned.log, planned.start, planned.end, unit.segment_bytes
    )


def encoded(note: OwnershipNote) -> bytes:
    return msgspec.json.format(msgspec.json.encode(note), indent=1) + b"\n"


def read_note(directory: Folder) -> OwnershipNote | None:
    """The note in a directory; None when there is none, an unreadable one, or one that another user made."""
    try:
        with directory.opened(NOTE) as file:
            status = os.fstat(file)
            if status.st_size > _LARGEST or status.st_uid not in directory.trusted:
                return None
            return msgspec.json.decode(os.pread(file, _LARGEST, 0), type=OwnershipNote)
    except FileNotFoundError:
        return None
    except OSError as error:
        raise LogDirUnusable(f"cannot be read ({error.strerror})", subject=str(directory.path / NOTE)) from error
    except (msgspec.DecodeError, UnicodeDecodeError):
        return None


def old_files(directory: Folder) -> tuple[OldFile, ...]:
    """All files that a restore removes: all except the topic id. Raises LogDirUnusable."""
    try:
        return tuple(OldFile(name, status.st_size) for name, status in directory.entries() if name != METADATA)
    except OSError as error:
        raise LogDirUnusable(f"cannot be listed ({error.strerror})", subject=str(directory.path)) from error


def directory_state(directory: Folder, files: tuple[OldFile, ...], origin: RestoredFrom) -> DirectoryState:
    if matching_note(directory, origin) is not None:
        return DirectoryState.RESTORED
    holds = any(f.name.endswith(".log") and f.size_bytes for f in files)
    return DirectoryState.RECORDS if holds else DirectoryState.EMPTY


def matching_note(directory: Folder, origin: RestoredFrom) -> OwnershipNote | None:
    """The note of an earlier run of the same restore, if the files still have the sizes in it."""
    note = read_note(directory)
    if note is None or note.origin != origin:
        return None
    present = {f.name: f.size_bytes for f in old_files(directory) if f.name.endswith(".log")}
    return note if present == note.sizes() else None
