"""Take records out of a kept log, by zxid or by byte, without touching them."""

import io
from collections.abc import Callable
from typing import BinaryIO, Final, cast

from logkeep.errors import Damaged
from logkeep.formats.zookeeper.names import hex_zxid
from logkeep.formats.zookeeper.txnlog import HEADER_BYTES, ScannedLog, header, scan
from logkeep.zookeeper.model.archived import ArchivedLog, BackupView

_CHUNK: Final = 1 << 20
Sink = Callable[[memoryview], object]


def give_records(view: BackupView, log: ArchivedLog, first: int, last: int, sink: Sink) -> ScannedLog:
    """The records `first` to `last`, checked on the way; Damaged where they are not all there."""
    start = HEADER_BYTES
    if first != log.first:
        with view.open(log) as source:
            start = scan(source, until_zxid=first - 1).size_bytes
    with view.open(log) as source:
        return all_there(scan(source, start_at=start, until_zxid=last, sink=sink), log, first, last)


def all_there(found: ScannedLog, log: ArchivedLog, first: int, last: int) -> ScannedLog:
    """What was found, if it is what was looked for."""
    if (found.first_zxid, found.last_zxid) != (first, last):
        held = f"{hex_zxid(found.first_zxid)} to {hex_zxid(found.last_zxid)}"
        raise Damaged(f"holds {held} instead of {hex_zxid(first)} to {hex_zxid(last)}", subject=log.name)
    return found


class LogPart(io.RawIOBase):
    """Bytes `[start, end)` of a source as a log of their own: a header stands before them."""

    def __init__(self, source: BinaryIO, start: int, end: int, before: bytes = header()) -> None:
        super().__init__()
        self._source, self._before, self._left = source, before, end - start
        _skip(source, start)

    def readable(self) -> bool:
        return True

    def readinto(self, buffer: object) -> int:
        target = memoryview(cast("bytearray", buffer)).cast("B")
        if self._before:
            data = self._before[: len(target)]
            self._before = self._before[len(data) :]
        else:
            data = self._source.read(min(len(target), self._left))
            self._left -= len(data)
        target[: len(data)] = data
        return len(data)

    def close(self) -> None:
        self._source.close()
        super().close()

    def buffered(self) -> BinaryIO:
        return cast("BinaryIO", io.BufferedReader(self, _CHUNK))


def _skip(source: BinaryIO, size: int) -> None:
    if source.seekable():
        source.seek(size, io.SEEK_CUR)
        return
    while size and (piece := source.read(min(size, _CHUNK))):
        size -= len(piece)
