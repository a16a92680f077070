"""Adds whole files to the end of one partition.

A file ends after the record that brings it to the wanted size (`record_sizes`), or at the end of the run. It becomes
visible when it is complete. A killed run leaves nothing that is visible of its last file, and the next run writes it
again: it begins at the same record, so it has the same name.
"""

from collections import Counter
from typing import TYPE_CHECKING

import numpy as np

from logkeep.formats.datasets.binary_spans import numbers
from logkeep.formats.datasets.record_sizes import record_sizes, rows_until
from logkeep.kafka.datasets.files.kinds import RecordFileKind
from logkeep.kafka.datasets.files.names import EMPTY, file_name, folder
from logkeep.kafka.datasets.formats import DatasetOptions, WrittenPart
from logkeep.kafka.datasets.target import DatasetTarget
from logkeep.kafka.record.dataset_document import DatasetLog

if TYPE_CHECKING:
    import pyarrow as pa

LARGEST_OBJECT = 64 << 20
"""In a bucket, before compression: a file is held in memory until it is complete, because metadata is sent first."""


class FilesWriter:
    """A `PartitionWriter`."""

    def __init__(
        self, target: DatasetTarget, log: DatasetLog, kind: RecordFileKind, options: DatasetOptions, *, joined: bool
    ) -> None:
        self._target, self._log, self._kind, self._options = target, log, kind, options
        self._joined = joined
        self._most = min(options.segment_bytes, LARGEST_OBJECT) if target.keeps_metadata else options.segment_bytes
        self._file: _OpenFile | None = None
        self._not_held: Counter[str] = Counter()
        self._records = self._bytes = 0
        self._starts: list[int] = []
        self._last = -1

    def write(self, records: "pa.RecordBatch") -> None:
        sizes, at = record_sizes(records), 0
        while at < len(sizes):
            held = self._file.plain_bytes if self._file else 0
            count = rows_until(sizes[at:], held, self._most)
            self._add(records.slice(at, count), int(sizes[at : at + count].sum()))
            at += count

    def _add(self, records: "pa.RecordBatch", plain_bytes: int) -> None:
        if self._file is None:
            self._file = _OpenFile(self._target, self._log, self._kind, self._options, records)
        self._file.add(records, plain_bytes)
        if self._file.plain_bytes >= self._most:
            self._close()

    def _close(self) -> None:
        if self._file is not None:
            self._bytes += self._file.close()
            self._not_held.update(self._kind.losses(self._file.writer))
            self._records, self._last = self._records + self._file.records, self._file.last
            self._starts.append(self._file.first)
            self._file = None

    def finish(self) -> WrittenPart:
        self._close()
        if not self._joined and not self._starts:
            self._target.put(f"{folder(self._log)}{EMPTY}", b"")
        first, starts = next(iter(self._starts), -1), tuple(self._starts)
        return WrittenPart(
            self._records, self._bytes, len(starts), first, self._last, dict(self._not_held), starts=starts
        )

    def abort(self) -> None:
        if self._file is not None:
            self._file.abort()
            self._file = None


class _OpenFile:
    """One file: a stream into a directory, or in memory for a bucket."""

    def __init__(
        self,
        target: DatasetTarget,
        log: DatasetLog,
        kind: RecordFileKind,
        options: DatasetOptions,
        records: "pa.RecordBatch",
    ) -> None:
        self.first = self.last = int(numbers(records, "offset")[0])
        self._target, self._name = target, file_name(log, self.first, kind.ending)
        self.writer = kind.begin(log, self.first, options)
        self.plain_bytes = self.records = 0
        self._size = 0
        self._last_time = self._max_time = -(2**63)
        self._held: list[bytes] = []
        self._stream = None if target.keeps_metadata else target.open_file(self._name)
        self._put(self.writer.begin())

    def add(self, records: "pa.RecordBatch", plain_bytes: int) -> None:
        times = numbers(records, "timestamp")
        self.last, self._last_time = int(numbers(records, "offset")[-1]), int(times[-1])
        self._max_time = max(self._max_time, int(np.max(times)))
        self.records, self.plain_bytes = self.records + len(times), self.plain_bytes + plain_bytes
        for piece in self.writer.pieces(records):
            self._put(piece)

    def close(self) -> int:
        """Make it visible; returns its size."""
        self._put(self.writer.end())
        if self._stream is not None:
            self._stream.close()
        else:
            self._target.put_file(self._name, b"".join(self._held), self._metadata())
        return self._size

    def abort(self) -> None:
        if self._stream is not None:
            self._stream.abort()

    def _put(self, data: bytes | memoryview) -> None:
        self._size += len(data)
        if self._stream is not None:
            self._stream.write(data)
        else:
            self._held.append(bytes(data))

    def _metadata(self) -> dict[str, str]:
        return {
            "first-offset": str(self.first),
            "last-offset": str(self.last),
            "last-timestamp": str(self._last_time),
            "max-timestamp": str(self._max_time),
            "records": str(self.records),
        }
