"""The latest value and the latest tombstone of every key, over the records of a log. Whole columns, in Arrow.

Records are added in the order of the log. Memory is that of the keys: when enough records were added, all but the
latest of each key are dropped. Keys are compared as bytes, not by a hash.
"""

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from logkeep.formats.datasets.arrow import binary_column
from logkeep.formats.kafka import record_kernels as k
from logkeep.formats.kafka.records import RecordColumns

_MOST_ROWS = 100_000
_MOST_BYTES = 64 << 20
"""Added since the last time that older records were dropped."""
_KEY = ("kind", "key", "erased")


@dataclass(frozen=True)
class LatestRecord:
    kind: int
    type: int
    key: bytes
    """Without its type."""
    offset: int
    time_ms: int
    value: bytes | None


class LatestRecords:
    """Keys begin with a type of two bytes. Types that the caller gives one kind are the same key."""

    def __init__(self, most_rows: int = _MOST_ROWS) -> None:
        self._most_rows = most_rows
        self._tables: list[pa.Table] = []
        self._rows = self._bytes = 0

    def add(self, records: RecordColumns, types: npt.NDArray[np.int16], kinds: npt.NDArray[np.int16]) -> None:
        spans = records.spans.astype(np.int64)
        if not len(spans):
            return
        values = binary_column(records.data, spans[:, k.VALUE_AT], spans[:, k.VALUE_SIZE])
        keys = binary_column(records.data, spans[:, k.KEY_AT] + 2, spans[:, k.KEY_SIZE] - 2)
        table = pa.table(
            {
                "kind": _column(kinds, pa.int16()),
                "type": _column(types, pa.int16()),
                "key": keys.cast(pa.large_binary()),
                "erased": values.is_null(),
                "offset": _column(records.offsets, pa.int64()),
                "time_ms": _column(records.times_ms, pa.int64()),
                "value": values.cast(pa.large_binary()),
            }
        )
        self._tables.append(table)
        self._rows, self._bytes = self._rows + len(table), self._bytes + table.nbytes
        if self._rows >= self._most_rows or self._bytes >= _MOST_BYTES:
            self._drop_older()

    def __iter__(self) -> Iterator[LatestRecord]:
        """In no order. A key may have a value and a tombstone: the one with the greater offset is the later one."""
        self._drop_older()
        for table in self._tables:
            for batch in table.to_batches(max_chunksize=10_000):
                for row in batch.to_pylist():
                    del row["erased"]
                    yield LatestRecord(**row)

    def _drop_older(self) -> None:
        if not self._tables:
            return
        whole = pa.concat_tables(self._tables)
        numbered = whole.append_column("row", _column(np.arange(len(whole)), pa.int64()))
        last = numbered.group_by(list(_KEY)).aggregate([("row", "max")])["row_max"]
        self._tables = [whole.take(last).combine_chunks()]
        self._rows = self._bytes = 0


def _column(numbers: npt.NDArray[np.generic], kind: pa.DataType) -> pa.Array:
    """A copy. (`pyarrow.array` would import pandas.)"""
    return pa.Array.from_buffers(kind, len(numbers), [None, pa.py_buffer(np.ascontiguousarray(numbers).copy())])
