"""What crosses process borders when a backup of Zeebe is imported: one unit per segment, and bundles of state files."""

import hashlib
from dataclasses import dataclass
from enum import StrEnum

import msgspec

from logkeep.checkpoint.zeebe.repo.record import ArchivedSegmentFile, ArchivedStateFile
from logkeep.model.segments import LogName, Segment
from logkeep.repository.backups.journal import UnitReceipt
from logkeep.repository.chain.commits import SourceRef
from logkeep.repository.object_writer import StoredObject
from logkeep.store.base import Store


@dataclass(frozen=True)
class ObjectPlace:
    """One object of Zeebe's store."""

    name: str
    size_bytes: int
    version: str
    compression: str = ""


@dataclass(frozen=True)
class ImportTarget:
    """The ongoing backup that units write to."""

    place: SourceRef
    backup: int
    run: str


@dataclass(frozen=True)
class SegmentImport:
    """One segment of one partition's log."""

    target: ImportTarget
    store: Store
    object: ObjectPlace
    partition: int
    history: str
    checkpoint_position: int
    known: ArchivedSegmentFile | None
    """The same segment in the backup before, whose frames must be the first ones of this segment."""

    @property
    def name(self) -> str:
        known = f"{self.known.end}.{self.known.frames_sha256}" if self.known is not None else ""
        return _unit_name(self.partition, "log", self.object, self.history, str(self.checkpoint_position), known)


@dataclass(frozen=True)
class StateFile:
    """A file of a snapshot. `known`: one of the same name and size in the backup before."""

    file: str
    object: ObjectPlace
    known: ArchivedStateFile | None


@dataclass(frozen=True)
class StateImport:
    """Files of one partition's snapshot."""

    target: ImportTarget
    store: Store
    partition: int
    files: tuple[StateFile, ...]

    @property
    def name(self) -> str:
        known = "".join(each.known.sha256 for each in self.files if each.known is not None)
        return _unit_name(self.partition, "state", *(each.object for each in self.files), known)

    @property
    def size_bytes(self) -> int:
        return sum(each.object.size_bytes for each in self.files)


def _unit_name(partition: int, what: str, *inputs: ObjectPlace | str) -> str:
    """Names what a unit reads: a receipt is used again only for the same objects in the same versions."""
    digest = hashlib.sha256("\n".join(map(repr, inputs)).encode()).hexdigest()
    return f"p{partition}-{what}-{digest[:24]}"


class SegmentOutcome(StrEnum):
    ARCHIVED = "archived"
    AFTER = "after the checkpoint"
    OTHER_HISTORY = "other history"
    """Its first frames are not those that are archived."""
    DAMAGED = "damaged"


class CopiedSegment(msgspec.Struct, frozen=True, kw_only=True):
    outcome: SegmentOutcome
    file: ArchivedSegmentFile | None = None
    row: Segment | None = None
    """None where nothing was new."""
    has_checkpoint: bool = False
    reason: str = ""


class CopiedState(msgspec.Struct, frozen=True, kw_only=True):
    files: tuple[ArchivedStateFile, ...]
    rows: tuple[Segment, ...]


def receipt_for(target: ImportTarget, unit: str, rows: tuple[Segment, ...], result: msgspec.Struct) -> UnitReceipt:
    """The receipt of a unit, from which its result can be read again."""
    return UnitReceipt(
        repository=target.place.repository,
        source=target.place.source,
        id=target.backup,
        run=target.run,
        unit=unit,
        segments=rows,
        note=msgspec.json.encode(result).decode(),
    )


def row_of(log: LogName, start: int, end: int, records: int, stored: StoredObject) -> Segment:
    """The segment row of a stored object with positions `[start, end)` of a log. Zeebe's files have no times."""
    return Segment(
        log=log,
        start=start,
        end=end,
        first=start,
        token=stored.token,
        records=records,
        stored_bytes=stored.size_bytes,
        plain_bytes=stored.plain_bytes,
        base_time_ms=-1,
        max_time_ms=-1,
        sha256=stored.sha256,
        plain_sha256=stored.plain_sha256,
        codec=stored.codec,
    )
