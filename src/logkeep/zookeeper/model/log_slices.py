"""Parts of an archived log, by zxid or by byte, with their records unchanged."""

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
    """Pass the records `first` to `last` to the sink, checked on the way. Raises Damaged if any is missing."""
    start = HEADER_BYTES
    if first != log.first:
        with view.open(log) as source:
            start = scan(source, until_zxid=first - 1).size_bytes
    with view.open(log) as source:
        return require_all(scan(source, start_at=start, until_zxid=last, sink=sink), log, first, last)


def require_all(found: ScannedLog, log: ArchivedLog, first: int, last: int) -> ScannedLog:
    """Returns what was found. Raises Damaged if it is not the records `first` to `last`."""
    if (found.first_zxid, found.last_zxid) != (first, last):
        held = f"{hex_zxid(found.first_zxid)} to {hex_zxid(found.last_zxid)}"
        raise Damaged(f"holds {held} instead of {hex_zxid(first)} to {hex_zxid(last)}", subject=log.name)
    return found


class LogPart(io.RawIOBase):
    """Bytes `[start, end)` of a source, after a header, as a log of their own."""

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
