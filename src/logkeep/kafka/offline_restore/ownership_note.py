"""What a restore leaves beside the files that it wrote, so that a second run knows its own work.

A broker does not look at the file. It holds nothing that differs between two brokers that got the same restore.
"""

from pathlib import Path

import msgspec

from logkeep.kafka.disks.segment_windows import opened
from logkeep.kafka.offline_restore.values import OfflineUnit, RestoredSegment
from logkeep.model.segments import LogName

NOTE = "logkeep-restore.json"
_LARGEST = 64 << 20


class RestoredFrom(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """All that the files follow from."""

    repository: str
    source: str
    backup: int
    log: LogName
    start: int
    end: int
    segment_bytes: int


class Note(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True, tag="offline-restore-1"):
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


def encoded(note: Note) -> bytes:
    return msgspec.json.format(msgspec.json.encode(note), indent=1) + b"\n"


def read_note(directory: Path) -> Note | None:
    """None when there is none, or none that can be read."""
    path = directory / NOTE
    if not path.is_file() or path.stat().st_size > _LARGEST:
        return None
    with opened(path):
        try:
            return msgspec.json.decode(path.read_bytes(), type=Note)
        except (msgspec.DecodeError, UnicodeDecodeError):
            return None
