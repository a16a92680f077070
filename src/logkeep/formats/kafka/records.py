"""Decodes the records of a log into columns, by compiled kernels. Safe for any bytes.

`decode` takes complete batches as `batches.walk` finds them. Check their CRC first: after that a malformed record was
written by a producer. Either way nothing is read outside of a batch, memory is bounded by the limits of `compression`,
and unreadable batches are reported with their offset and the byte in their records.

Times are those that consumers saw: the append time of the batch where it has one, else base plus delta. (A delete
horizon replaces the base time, and deltas are relative to it: the sum is the record's own time.)
"""

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from logkeep.formats.kafka import record_kernels as kernels
from logkeep.formats.kafka.batches import APPEND_TIME, CONTROL, TRANSACTIONAL, Batches
from logkeep.formats.kafka.compression import LARGEST_BATCH_BYTES, Sections, Unreadable, sections
from logkeep.formats.kafka.record_kernels import Bytes, Ints, Longs

Flags = npt.NDArray[np.bool_]

_LEAST_RECORD_BYTES = 7
"""A record without key, value and headers, and its length."""
_TOGETHER_RECORDS = 1 << 15

_REASONS = {
    kernels.BAD_LENGTH: "a record's length is impossible",
    kernels.BAD_NUMBER: "a record's time is malformed",
    kernels.BAD_KEY: "a key's length is impossible",
    kernels.BAD_VALUE: "a value's length is impossible",
    kernels.BAD_HEADERS: "headers are malformed",
    kernels.LEFT_IN_RECORD: "a record is longer than its fields",
    kernels.BAD_OFFSET: "offsets of records do not rise",
    kernels.LEFT_IN_BATCH: "bytes are left after the last record",
}


@dataclass(frozen=True)
class Malformed:
    """A batch whose records cannot be read. All others can."""

    base_offset: int
    byte: int
    """In the records of the batch, after unpacking; -1 when they cannot be unpacked."""
    reason: str

    def __str__(self) -> str:
        where = f", at byte {self.byte} of its records" if self.byte >= 0 else ""
        return f"the batch at offset {self.base_offset}: {self.reason}{where}"


@dataclass(frozen=True)
class RecordColumns:
    """Records of some batches, in order. Spans point into `data`."""

    data: Bytes
    batches: Batches
    offsets: Longs
    times_ms: Longs
    spans: Ints
    """One row per record, columns as `record_kernels` names them. A size of -1 is null, 0 is empty."""

    def __len__(self) -> int:
        return len(self.offsets)

    @property
    def batch(self) -> Ints:
        """The index of each record's batch in `batches`."""
        return self.spans[:, kernels.BATCH]

    @property
    def control(self) -> Flags:
        return self._flag(CONTROL)

    @property
    def transactional(self) -> Flags:
        return self._flag(TRANSACTIONAL)

    @property
    def append_time(self) -> Flags:
        return self._flag(APPEND_TIME)

    @property
    def producer_ids(self) -> Longs:
        return self.batches.headers["producer_id"].astype(np.int64)[self.batch]

    def key(self, row: int) -> bytes | None:
        return self._bytes(row, kernels.KEY_AT)

    def value(self, row: int) -> bytes | None:
        return self._bytes(row, kernels.VALUE_AT)

    def headers(self, row: int) -> list[tuple[bytes, bytes | None]]:
        """Names and values in their order. For single records: loops over all records belong into a kernel."""
        at, end = int(self.spans[row, kernels.HEADERS_AT]), int(self.spans[row, kernels.END_AT])
        found: list[tuple[bytes, bytes | None]] = []
        for _ in range(int(self.spans[row, kernels.HEADERS])):
            size, at = kernels.varint32(self.data, at, end)
            name, at = self.data[at : at + size].tobytes(), at + size
            size, at = kernels.varint32(self.data, at, end)
            found.append((name, None if size < 0 else self.data[at : at + size].tobytes()))
            at += max(size, 0)
        return found

    def chosen(self, rows: Flags) -> "RecordColumns":
        """Some of the records."""
        return RecordColumns(self.data, self.batches, self.offsets[rows], self.times_ms[rows], self.spans[rows])

    def within(self, start: int, end: int) -> "RecordColumns":
        """The records of `[start, end)`."""
        first, last = (int(i) for i in np.searchsorted(self.offsets, (start, end)))
        return RecordColumns(
            self.data, self.batches, self.offsets[first:last], self.times_ms[first:last], self.spans[first:last]
        )

    def _bytes(self, row: int, column: int) -> bytes | None:
        at, size = int(self.spans[row, column]), int(self.spans[row, column + 1])
        return None if size < 0 else self.data[at : at + size].tobytes()

    def _flag(self, bit: int) -> Flags:
        flags: Flags = ((self.batches.headers["attributes"] & np.int16(bit)) != 0)[self.batch]
        return flags


def decode(
    buffer: memoryview | bytes | bytearray, batches: Batches, largest: int = LARGEST_BATCH_BYTES
) -> Iterator[RecordColumns | Malformed]:
    """Every record of the batches, in order, some thousand batches at a time; `Malformed` for unreadable batches.

    Each item is valid until the next: columns and unpacked bytes are overwritten.
    """
    columns = _Columns()
    for part in sections(buffer, batches, largest):
        if isinstance(part, Unreadable):
            yield Malformed(int(part.batches.base_offsets[0]), -1, part.reason)
        else:
            yield from _decoded(part, columns)


def _decoded(part: Sections, columns: "_Columns") -> Iterator[RecordColumns | Malformed]:
    """A bounded number of records at a time: their columns stay in the processor's cache."""
    counts = np.cumsum(np.maximum(part.batches.headers["records"].astype(np.int64), 0))
    first = 0
    while first < len(part.batches):
        before = int(counts[first - 1]) if first else 0
        last = max(int(np.searchsorted(counts, before + _TOGETHER_RECORDS)), first + 1)
        yield from _decoded_together(part[first:last], columns)
        first = last


def _decoded_together(part: Sections, columns: "_Columns") -> Iterator[RecordColumns | Malformed]:
    while len(part.batches):
        rows = _rows(part)
        offsets, times, spans = columns.room(int(rows[:, kernels.COUNT].sum()))
        good, problem, index, at = kernels.decode_batches(part.data, rows, offsets, times, spans)
        if good:
            yield RecordColumns(part.data, part.batches, offsets[:good], times[:good], spans[:good])
        if problem == kernels.OK:
            return
        base = int(part.batches.base_offsets[index])
        yield Malformed(base, at - int(part.starts[index]), _REASONS[problem])
        part = part[index + 1 :]


def _rows(part: Sections) -> Longs:
    """What the kernel needs of each batch. A count that its bytes cannot hold is reduced to one that fails."""
    headers = part.batches.headers
    rows = np.empty((len(part.batches), kernels.BATCH_COLUMNS), np.int64)
    rows[:, kernels.START], rows[:, kernels.END] = part.starts, part.ends
    rows[:, kernels.BASE], rows[:, kernels.LAST] = part.batches.base_offsets, headers["last_offset_delta"]
    room = (part.ends - part.starts) // _LEAST_RECORD_BYTES + 1
    rows[:, kernels.COUNT] = np.minimum(headers["records"], room)
    appended = (headers["attributes"] & APPEND_TIME) != 0
    rows[:, kernels.TIME] = np.where(appended, headers["max_time_ms"], headers["base_time_ms"])
    rows[:, kernels.APPENDED] = appended
    return rows


class _Columns:
    """Memory for the columns of records, reused: allocating costs more than filling it."""

    def __init__(self) -> None:
        self._make(0)

    def room(self, rows: int) -> tuple[Longs, Longs, Ints]:
        if rows > len(self._offsets):
            self._make(rows)
        return self._offsets, self._times, self._spans

    def _make(self, rows: int) -> None:
        self._offsets, self._times = np.empty(rows, np.int64), np.empty(rows, np.int64)
        self._spans = np.empty((rows, kernels.SPAN_COLUMNS), np.int32)
