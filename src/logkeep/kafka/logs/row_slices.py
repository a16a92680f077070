"""Rows about records of one log, divided by the hash of their key into slices that fit into memory.

One slice stays in memory. Several are in one temporary file without a name: rows are collected, sorted by slice and
appended together, so a log of any size needs one open file.
"""

import tempfile
from collections.abc import Iterator

import numpy as np
import numpy.typing as npt

from logkeep.formats.kafka.batches import Longs

SliceRows = npt.NDArray[np.void]
_HELD_BYTES = 32 << 20
"""Rows that are collected before they are appended to the file."""


class RowSlices:
    """Add all rows, then iterate: one array for each slice. Close it.

    Rows have a field `hash`.
    """

    def __init__(self, slices: int, row: np.dtype[np.void], held_bytes: int = _HELD_BYTES) -> None:
        self._slices, self._row, self._most = slices, row, held_bytes
        self._held: list[SliceRows] = []
        self._size = 0
        self._file = tempfile.TemporaryFile() if slices > 1 else None  # noqa: SIM115 - `close` closes it
        self._borders: list[Longs] = []
        """For each appended block, where the rows of each slice begin in the file, and where the last ones end."""

    def add(self, rows: SliceRows) -> None:
        self._held.append(rows)
        self._size += rows.nbytes
        if self._file is not None and self._size >= self._most:
            self._append()

    def _append(self) -> None:
        assert self._file is not None  # noqa: S101
        rows = np.concatenate([np.empty(0, self._row), *self._held])
        belongs = (rows["hash"] % np.uint64(self._slices)).astype(np.int64)
        counts = np.bincount(belongs, minlength=self._slices)
        begin = self._file.tell()
        self._borders.append(begin + self._row.itemsize * np.concatenate(([0], np.cumsum(counts))).astype(np.int64))
        self._file.write(rows[np.argsort(belongs, kind="stable")].tobytes())
        self._held, self._size = [], 0

    def __iter__(self) -> Iterator[SliceRows]:
        if self._file is None:
            yield np.concatenate([np.empty(0, self._row), *self._held])
            return
        self._append()
        for number in range(self._slices):
            yield np.frombuffer(b"".join(self._blocks(number)), self._row)

    def _blocks(self, number: int) -> Iterator[bytes]:
        assert self._file is not None  # noqa: S101
        for borders in self._borders:
            self._file.seek(int(borders[number]))
            yield self._file.read(int(borders[number + 1] - borders[number]))

    def close(self) -> None:
        if self._file is not None:
            self._file.close()
