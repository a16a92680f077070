"""What lies in the directories of the partitions before anything is written. Reads names, sizes and notes only."""

from pathlib import Path

from logkeep.errors import LogDirUnusable
from logkeep.kafka.offline_restore.ownership_note import NOTE, Note, RestoredFrom, read_note
from logkeep.kafka.offline_restore.staging import METADATA
from logkeep.kafka.offline_restore.values import DirectoryState, OldFile


def old_files(directory: Path) -> tuple[OldFile, ...]:
    """Everything that a restore removes: all but what says which topic it is. Raises LogDirUnusable."""
    try:
        found = [OldFile(p.name, p.stat().st_size) for p in sorted(directory.iterdir()) if p.name != METADATA]
    except OSError as error:
        raise LogDirUnusable(f"cannot be listed ({error.strerror})", subject=str(directory)) from error
    return tuple(found)


def standing_of(directory: Path, files: tuple[OldFile, ...], origin: RestoredFrom) -> DirectoryState:
    if note_of_this(directory, origin) is not None:
        return DirectoryState.RESTORED
    holds = any(f.name.endswith(".log") and f.size_bytes for f in files)
    return DirectoryState.RECORDS if holds else DirectoryState.EMPTY


def note_of_this(directory: Path, origin: RestoredFrom) -> Note | None:
    """The note of an earlier run of the same restore, if the files are still as long as it says."""
    note = read_note(directory) if (directory / NOTE).exists() else None
    if note is None or note.origin != origin:
        return None
    present = {f.name: f.size_bytes for f in old_files(directory) if f.name.endswith(".log")}
    return note if present == note.sizes() else None
