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
_HELD_BYTES = 16 << 20
"""Rows that are collected before they are appended to the file."""


class RowSlices:
    """Rows divided into slices: add all rows, then iterate, which yields one array for each slice. Close it.

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
        self._held, self._size = [], 0
        belongs = (rows["hash"] % np.uint64(self._slices)).astype(np.uint16 if self._slices <= 1 << 16 else np.int64)
        counts = np.bincount(belongs, minlength=self._slices)
        begin = self._file.tell()
        self._borders.append(begin + self._row.itemsize * np.concatenate(([0], np.cumsum(counts))).astype(np.int64))
        # As rows of bytes: numpy copies elements of structured arrays one by one.
        plain = rows.view(np.uint8).reshape(len(rows), self._row.itemsize)
        self._file.write(plain.take(np.argsort(belongs, kind="stable"), axis=0).data)

    def __iter__(self) -> Iterator[SliceRows]:
        if self._file is None:
            yield np.concatenate([np.empty(0, self._row), *self._held])
            return
        self._append()
        for number in range(self._slices):
            yield self._read(number)

    def _read(self, number: int) -> SliceRows:
        """One slice, without a second copy of it."""
        assert self._file is not None  # noqa: S101
        blocks = [(int(borders[number]), int(borders[number + 1])) for borders in self._borders]
        found = np.empty(sum(end - start for start, end in blocks), np.uint8)
        filled = 0
        for start, end in blocks:
            self._file.seek(start)
            self._file.readinto(found[filled : filled + end - start].data)
            filled += end - start
        return found.view(self._row)

    def close(self) -> None:
        if self._file is not None:
            self._file.close()
