"""What a format of datasets does for an export. `format_table` has all formats by name.

A dataset is a directory, or a prefix of a bucket. It is complete by itself: where a partition ends is found from its
own last entry. A format finds that end and writes what follows. To add one, write a module with a `DatasetFormat` and
add it to the table.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Protocol, runtime_checkable

from logkeep.kafka.record.dataset_document import DatasetLog

if TYPE_CHECKING:
    import pyarrow as pa

    from logkeep.kafka.datasets.target import DatasetTarget


@dataclass(frozen=True)
class DatasetOptions:
    """How files are written."""

    segment_bytes: int
    """The record with which a file exceeds this size is its last."""
    schema: str = ""
    """The schema, for formats that have more than one (`--avro-schema`); a dataset keeps the one that it began with."""
    codec: str = ""
    """The codec, for formats that compress; it may differ from file to file."""


@dataclass(frozen=True)
class DatasetEnd:
    """How far a partition of a dataset goes, by its own last entry."""

    joined: bool
    """Whether the partition is part of the dataset, also without records."""
    last: int | None = None
    """The offset of the last record; None if there is none."""
    first: int | None = None
    """The offset of the first record, by the name of its file."""
    records_bytes: int = 0
    """The size of the files with records, as far as that is known without reading them."""

    unfinished: bool = False
    """A killed run left something that a writer has to cut off, list or remove, also if nothing is new."""
    starts: tuple[int, ...] = ()
    """Offsets of the first records of its files, by their names; only of formats that have no index of their files."""

    @property
    def next(self) -> int | None:
        return None if self.last is None else self.last + 1


@dataclass(frozen=True)
class WrittenPart:
    """What a writer has added to a partition."""

    records: int = 0
    written_bytes: int = 0
    files: int = 0
    first: int = -1
    last: int = -1
    """Offsets of the first and the last record; -1 if none was written."""
    not_held: Mapping[str, int] = field(default_factory=dict)
    """How many records have something that the format or its schema has no place for, by kind."""
    starts: tuple[int, ...] = ()
    """The same as `DatasetEnd.starts`, for the new files."""


class PartitionWriter(Protocol):
    """Adds records to the end of one partition, from the end that `find_end` found. Use it once."""

    def write(self, records: "pa.RecordBatch") -> None:
        """Records of `formats.datasets.arrow.SCHEMA`, with rising offsets. What was written may become visible at any
        time after this, in order, and never without the records before it."""

    def finish(self) -> WrittenPart:
        """Make everything durable and visible: records, then their index, then the index of the partition. Without any
        record the partition becomes part of the dataset."""

    def abort(self) -> None:
        """Close what is open. What is visible already stays; what follows is written again by the next run."""


@runtime_checkable
class RecognisesLast(Protocol):
    """A format that can compare the last record of a partition. A log that lost its end and grew again has another."""

    def has_last(self, target: "DatasetTarget", log: DatasetLog, record: "pa.RecordBatch") -> bool:
        """Whether the partition ends with this one record."""


class DatasetFormat(Protocol):
    """One format. Objects of it are picklable and have no state."""

    @property
    def name(self) -> str: ...

    def schema(self, options: DatasetOptions) -> str:
        """What the dataset's documents record, and a later run must have too; empty if there is only one."""

    def holds_all(self, options: DatasetOptions) -> bool:
        """Whether it has a place for everything that a record may have: then `WrittenPart.not_held` is empty."""

    def root(self, topic: str) -> str:
        """The prefix of everything of a topic: `orders/`."""

    def logs(self, target: "DatasetTarget") -> frozenset[DatasetLog]:
        """All partitions that the dataset has, by its own files."""

    def find_end(self, target: "DatasetTarget", log: DatasetLog) -> DatasetEnd:
        """Where a partition ends, by its files alone; reads no record. Raises TargetUnsafe for files that no run of
        Logkeep leaves."""

    def writer(self, target: "DatasetTarget", log: DatasetLog, options: DatasetOptions) -> PartitionWriter:
        """First removes what a killed run left after the end."""

    def put_groups(self, target: "DatasetTarget", log: DatasetLog, positions: Mapping[str, int]) -> None:
        """Positions of groups, if the format has a place for them; written only if they differ. They are not above the
        end of the partition."""
