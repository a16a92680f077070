"""What a backup keeps of a Zeebe cluster besides bytes: partitions, and how its files are put together again.

One document per backup, pinned by its manifest under the role `zeebe`. The log of a partition is archived as frames at
raft indexes, so each backup stores only the frames since the one before. A file of a snapshot is archived under the
hash of its content, so equal files of two backups are one object.
"""

from typing import Annotated, ClassVar

import msgspec

from logkeep.formats.zeebe.segment_descriptor import SegmentDescriptor, segment_name
from logkeep.model.ids import StoredId
from logkeep.model.segments import Collection, LogName, Position, Sha256
from logkeep.repository.chain.documents import MIB, SourceDocument

ROLE = "zeebe"
KIND = "zeebe"
_LOG = "zeebe"
_FILES = "files"


class ArchivedSegmentFile(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """A segment of a partition's log, up to its last frame or to the checkpoint."""

    number: Position
    max_bytes: Annotated[int, msgspec.Meta(ge=0, le=2**31 - 1)]
    first: Position
    """Raft indexes `[first, end)`."""
    end: Position
    last_frame_at: Annotated[int, msgspec.Meta(ge=0, le=2**32 - 1)]
    used_bytes: Position
    """Descriptor and frames."""
    frames_sha256: Sha256
    closed: bool
    """Zeebe had ended it, and it was not cut at the checkpoint."""

    def descriptor(self) -> SegmentDescriptor:
        """As Zeebe writes it: a segment that is not closed names no last entry."""
        last, at = (self.end - 1, self.last_frame_at) if self.closed else (0, 0)
        return SegmentDescriptor(self.number, self.first, self.max_bytes, last, at)


class ArchivedStateFile(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """A file of a snapshot."""

    name: str
    size_bytes: Position
    sha256: Sha256


class ZeebePartition(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True, omit_defaults=True):
    """One partition, as one broker copied it."""

    partition: Position
    node: Position
    checkpoint_position: Position
    broker_version: str
    snapshot_id: str = ""
    first_log_position: int | None = None
    checkpoint_type: str = ""
    created: str = ""
    modified: str = ""
    segments: tuple[ArchivedSegmentFile, ...]
    files: tuple[ArchivedStateFile, ...] = ()

    def __post_init__(self) -> None:
        if not self.segments:
            raise ValueError("a partition without a log")

    def segment_names(self) -> tuple[str, ...]:
        return tuple(segment_name(self.partition, each.number) for each in self.segments)


class ZeebeRecord(SourceDocument, frozen=True, kw_only=True, tag="zeebe-backup"):
    limit: ClassVar[int] = 64 * MIB

    id: StoredId
    checkpoint_id: StoredId
    """Zeebe's id of the backup."""
    history: str
    partitions: tuple[ZeebePartition, ...]


def log_name(history: str, partition: int) -> LogName:
    """The log of a partition: frames at raft indexes."""
    return LogName(Collection.TXNLOGS, _LOG, history, partition)


def file_name(sha256: str, partition: int) -> LogName:
    """A file of a snapshot: a log of one position, named by its content."""
    return LogName(Collection.SNAPSHOTS, sha256, _FILES, partition)
