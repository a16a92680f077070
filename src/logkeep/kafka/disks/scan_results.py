"""What is known of the replicas of a log on disks: values that cross process borders."""

from dataclasses import dataclass

import msgspec

from logkeep.kafka.logs.last_batch import LastBatch
from logkeep.kafka.logs.leader_epochs import EpochStart
from logkeep.model.ranges import Range


@dataclass(frozen=True)
class DiskCopy:
    """One replica of a log on a disk, and what the small files beside it say."""

    directory: str
    node: int
    start: int
    """The log start in the broker's checkpoint; 0 if there is none."""
    epochs: tuple[tuple[int, int], ...]
    size_bytes: int


ZEROS = "nothing but zeros"
"""The reason of a damage that is harmless: space that a broker had reserved."""


class GoodBatches(msgspec.Struct, frozen=True):
    """Good batches back to back in one file."""

    file: str
    from_byte: int
    to_byte: int
    first: int
    """Base offset of the first batch."""
    end: int
    """The offset after the last record."""


class SegmentDamage(msgspec.Struct, frozen=True):
    """A position in a file from which on bytes are not batches."""

    file: str
    at_byte: int
    offset: int
    """The offset that should have come next."""
    reason: str
    resumes: int = -1
    """The base offset of the next good batch, in this or a later file; -1: there is none."""

    @property
    def lost(self) -> Range | None:
        """Offsets that are known to be missing."""
        return Range(self.offset, self.resumes) if self.resumes > self.offset else None

    @property
    def harmless(self) -> bool:
        """Space reserved at the end of a file, after which nothing is missing."""
        return self.reason == ZEROS and self.lost is None


class OpenSince(msgspec.Struct, frozen=True, order=True):
    """A transaction without a marker."""

    producer_id: int
    first_offset: int


class DiskBatch(msgspec.Struct, frozen=True):
    """One good batch and where it is."""

    batch: LastBatch
    file: str
    at_byte: int


class ReplicaScan(msgspec.Struct, frozen=True, kw_only=True):
    """One replica of a log, read from its disk."""

    directory: str
    node: int
    start: int
    """The log start."""
    end: int
    """The offset after the last good batch."""
    stretches: tuple[GoodBatches, ...] = ()
    damages: tuple[SegmentDamage, ...] = ()
    epochs: tuple[EpochStart, ...] = ()
    """Leader epochs and their first offsets, by the checkpoint beside the log and by its batches."""
    open_since: tuple[OpenSince, ...] = ()
    left_out: tuple[tuple[str, str], ...] = ()
    """Files that do not count, with reasons."""
    holes: tuple[tuple[int, int], ...] = ()
    """Offsets `[start, end)` between two whole files that neither has: compacted away, or a file is missing."""
    size_bytes: int = 0
    """The size of all good batches that were read."""
    compared: DiskBatch | None = None
    """The first batch that ends at the requested offset or later."""
    last: DiskBatch | None = None
    """The last good batch."""

    @property
    def last_epoch(self) -> int:
        return max((e.epoch for e in self.epochs), default=-1)

    @property
    def gaps(self) -> tuple[Range, ...]:
        """The lost ranges in order, each once: several damages may be between the same two good batches."""
        return tuple(sorted({lost for d in self.damages if (lost := d.lost) is not None}))

    @property
    def between_files(self) -> tuple[Range, ...]:
        return tuple(Range(start, end) for start, end in self.holes)

    def epoch_at(self, offset: int) -> int:
        """The leader epoch of the record at an offset; -1 if it is not known."""
        return max(((e.offset, e.epoch) for e in self.epochs if e.offset <= offset), default=(0, -1))[1]
