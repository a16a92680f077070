"""Segments of one partition of a kafka-backup-v1 dataset as they are written: growing files, or whole objects."""

from pathlib import Path
from typing import Protocol

from logkeep.formats.datasets.kafka_backup_v1.files import MAGIC, ListedSegment, partition_index_name
from logkeep.kafka.datasets.appended_file import AppendedFile
from logkeep.kafka.datasets.target import DatasetTarget
from logkeep.kafka.datasets.v1_end import INDEX, RECORDS, SegmentEnd, V1End
from logkeep.kafka.record.dataset_document import DatasetLog
from logkeep.store.base import ObjectWriter


class V1Segment(Protocol):
    @property
    def size(self) -> int:
        """The size of the file with records, including the byte with which it begins."""

    def append(self, records: bytes | memoryview, entries: bytes) -> None:
        """Records, and their entries of the index. Nothing is visible yet."""

    def flush(self) -> None:
        """Make what was appended part of the dataset, if the store can do that before the segment ends."""

    def close(self) -> None:
        """Make it part of the dataset."""

    def abort(self) -> None: ...


class V1Partition(Protocol):
    """The index of the partition is open while segments are written."""

    def reopened(self, end: SegmentEnd, most_bytes: int) -> V1Segment | None:
        """The last segment, if it can take more records; otherwise None."""

    def begin(self, segment: ListedSegment) -> V1Segment: ...

    def close(self) -> None: ...


class GrowingPartition:
    """A partition in a directory, whose files grow."""

    def __init__(self, target: DatasetTarget, log: DatasetLog, end: V1End) -> None:
        assert target.directory is not None  # noqa: S101 - the caller asked
        self._root, self._topic = target.directory, log.topic
        self._index = AppendedFile(self._root, f"{log.topic}/{partition_index_name(log.partition)}", end.listed_bytes)
        if not end.listed_bytes:
            self._index.append(MAGIC)
        for segment in end.unlisted:
            self._index.append(segment.encoded())
        if not end.listed_bytes or end.unlisted:
            self._index.sync()

    def reopened(self, end: SegmentEnd, most_bytes: int) -> "GrowingSegment | None":
        full = end.records_bytes > most_bytes
        found = GrowingSegment(self, self._root, f"{self._topic}/{end.segment.name}", end)
        if full:
            found.abort()  # its torn tail is cut off
        return None if full else found

    def begin(self, segment: ListedSegment) -> "GrowingSegment":
        return GrowingSegment(self, self._root, f"{self._topic}/{segment.name}", SegmentEnd(segment, -1, 0, 0))

    def list_segment(self, segment: ListedSegment) -> None:
        self._index.append(segment.encoded())
        self._index.sync()

    def close(self) -> None:
        self._index.close()


class GrowingSegment:
    """Two files that are appended to: records, and their index, which gets its entries when the records are durable."""

    def __init__(self, partition: GrowingPartition, root: Path, path: str, end: SegmentEnd) -> None:
        self._partition, self._segment, self._listed = partition, end.segment, end.last >= 0
        self._records = AppendedFile(root, path + RECORDS, end.records_bytes)
        self._index = AppendedFile(root, path + INDEX, end.index_bytes)
        self._entries = [] if end.index_bytes else [MAGIC]

    @property
    def size(self) -> int:
        return self._records.size

    def append(self, records: bytes | memoryview, entries: bytes) -> None:
        self._records.append(records)
        self._entries.append(entries)

    def flush(self) -> None:
        if not any(self._entries):
            return
        self._records.sync()
        self._index.append(b"".join(self._entries))
        self._index.sync()
        self._entries.clear()
        if not self._listed:
            self._partition.list_segment(self._segment)
            self._listed = True

    def close(self) -> None:
        self.flush()
        self.abort()

    def abort(self) -> None:
        self._records.close()
        self._index.close()


class WholePartition:
    """A partition in a bucket: its index is written again, as a whole, after each segment. Raises Locked if another run
    writes it too."""

    def __init__(self, target: DatasetTarget, log: DatasetLog, end: V1End) -> None:
        self._target, self._topic = target, log.topic
        self._name = f"{log.topic}/{partition_index_name(log.partition)}"
        whole = (end.index or b"")[: end.listed_bytes]
        self._index = end.index
        self._replace((whole or MAGIC) + b"".join(segment.encoded() for segment in end.unlisted))

    def reopened(self, end: SegmentEnd, most_bytes: int) -> None:
        """Objects do not grow."""

    def begin(self, segment: ListedSegment) -> "WholeSegment":
        return WholeSegment(self, self._target, f"{self._topic}/{segment.name}", segment)

    def list_segment(self, segment: ListedSegment) -> None:
        self._replace((self._index or b"") + segment.encoded())

    def _replace(self, data: bytes) -> None:
        self._target.put_after(self._name, self._index, data)
        self._index = data

    def close(self) -> None:
        """Nothing is open."""


class WholeSegment:
    """Two objects. Another run would choose the same names, and a store protects only the name of a small object: so
    the index is written first, and the records become visible after it. Neither counts without the other."""

    def __init__(self, partition: WholePartition, target: DatasetTarget, path: str, segment: ListedSegment) -> None:
        self._partition, self._target, self._path, self._segment = partition, target, path, segment
        self._records: ObjectWriter = target.open_file(path + RECORDS)
        self._entries = [MAGIC]
        self.size = 0

    def append(self, records: bytes | memoryview, entries: bytes) -> None:
        self._records.write(records)
        self._entries.append(entries)
        self.size += len(records)

    def flush(self) -> None:
        """Objects are whole or absent."""

    def close(self) -> None:
        self._target.put_file(self._path + INDEX, b"".join(self._entries), {})
        self._records.close()
        self._partition.list_segment(self._segment)

    def abort(self) -> None:
        self._records.abort()
