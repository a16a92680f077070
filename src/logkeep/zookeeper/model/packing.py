"""Archived bytes read back as a stream, and the log that a repair writes."""

import io
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import BinaryIO, cast

from logkeep.repository.object_writer import StoredObject, StoredWriter
from logkeep.zookeeper.model.archived import ArchivedLog


def unpacked_stream(pieces: Iterator[memoryview]) -> BinaryIO:
    return cast("BinaryIO", io.BufferedReader(PiecesStream(pieces), 1 << 20))


class PiecesStream(io.RawIOBase):
    """A stream over consecutive pieces; wrap it in a `BufferedReader`."""

    def __init__(self, pieces: Iterator[memoryview]) -> None:
        self._pieces, self._rest = pieces, memoryview(b"")

    def readable(self) -> bool:
        return True

    def readinto(self, buffer: memoryview) -> int:  # type: ignore[override]  # typeshed's name for a buffer is private
        while not len(self._rest):
            following = next(self._pieces, None)
            if following is None:
                return 0
            self._rest = following
        count = min(len(buffer), len(self._rest))
        buffer[:count] = self._rest[:count]
        self._rest = self._rest[count:]
        return count


@dataclass
class RepairedLog:
    """A log that a repair writes. `done` is called with what it holds when it is complete."""

    writer: StoredWriter
    done: Callable[[ArchivedLog, StoredObject], None]

    def write(self, data: memoryview | bytes) -> None:
        self.writer.write(data)

    def close(self, kept: ArchivedLog) -> None:
        self.done(kept, self.writer.close())

    def abort(self) -> None:
        self.writer.abort()
