"""Rows of records, divided by the hash of their key into slices that fit into memory, in temporary files if several."""

import tempfile
from collections.abc import Iterator
from typing import IO, Any

import numpy as np
import numpy.typing as npt

Rows = npt.NDArray[np.void]


class RowSlices:
    """In memory if there is one slice, otherwise in temporary files. Rows have a column `hash`."""

    def __init__(self, slices: int, row: "np.dtype[Any]") -> None:
        self._kept: list[Rows] = []
        self._row = row
        self._files: list[IO[bytes]] = [tempfile.TemporaryFile() for _ in range(slices)] if slices > 1 else []  # noqa: SIM115

    def add(self, rows: Rows) -> None:
        if not self._files:
            self._kept.append(rows)
            return
        belongs = rows["hash"] % np.uint64(len(self._files))
        for number, file in enumerate(self._files):
            file.write(rows[belongs == number].tobytes())

    def __iter__(self) -> Iterator[Rows]:
        if not self._files:
            yield np.concatenate([np.empty(0, self._row), *self._kept])
        for file in self._files:
            file.seek(0)
            yield np.frombuffer(file.read(), self._row)

    def close(self) -> None:
        for file in self._files:
            file.close()
