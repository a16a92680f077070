"""Seekable copies of the logs that a repair reads many times, while it is planned and carried out.

A compressed log cannot be read from its middle: it is unpacked once into a temporary file and read from there. Of a
damaged log all good records are found, also those after damage. Only a few such files exist at a time.
"""

import shutil
import tempfile
from collections.abc import Iterator, Sequence
from pathlib import Path
from types import TracebackType
from typing import BinaryIO, Final

from logkeep.formats.zookeeper.scanned_log import RecordStretch, ScannedLog
from logkeep.formats.zookeeper.txnlog import HEADER_BYTES, Sink, TransactionColumns, scan, tables
from logkeep.zookeeper.model.archived import ArchivedLog, BackupView
from logkeep.zookeeper.model.log_slices import LogPart, require_all
from logkeep.zookeeper.server.admin_download import scratch_disk

MOST_COPIES: Final = 4
"""The damaged log, two that are compared, and one more."""
_CHUNK_BYTES: Final = 256 << 10
"""Small, because parts may be small and many."""
_Key = tuple[int, ArchivedLog]


class LogCache:
    """Copies of logs of views that live as long as it does. Leaving the context removes the files."""

    def __init__(self) -> None:
        self._directory: tempfile.TemporaryDirectory[str] | None = None
        self._copies: dict[_Key, Path] = {}
        self._made = 0
        self._found: dict[_Key, tuple[RecordStretch, ...]] = {}
        self._reached: dict[_Key, tuple[int, int]] = {}
        """The last transaction that was given, and the byte after it."""

    def __enter__(self) -> "LogCache":
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None) -> None:
        if self._directory is not None:
            self._directory.cleanup()
        self._directory, self._copies = None, {}

    def open(self, view: BackupView, log: ArchivedLog) -> BinaryIO:
        """The same bytes as `BackupView.salvage`, as a seekable file."""
        key = id(view), log
        copy = self._copies.pop(key, None)
        if copy is None:
            source = view.salvage(log)
            if source.seekable():
                return source
            copy = self._unpack(source)
        self._copies[key] = copy  # ordered by last use
        while len(self._copies) > MOST_COPIES:
            self._copies.pop(next(iter(self._copies))).unlink()
        return copy.open("rb", buffering=0)

    def _unpack(self, source: BinaryIO) -> Path:
        """Raises BackupFailed if the disk is full."""
        place = self._directory.name if self._directory is not None else "the directory for temporary files"
        with source, scratch_disk(place, "a compressed log cannot be unpacked there"):
            if self._directory is None:
                self._directory = tempfile.TemporaryDirectory(prefix="logkeep-unpacked-")
            self._made += 1
            path = Path(self._directory.name, str(self._made))
            with path.open("wb") as target:
                shutil.copyfileobj(source, target, 1 << 20)
        return path

    def stretches(self, view: BackupView, log: ArchivedLog) -> tuple[RecordStretch, ...]:
        """Good records up to the last one of the log. Earlier ones may be included: an object may hold more."""
        key = id(view), log
        if key not in self._found:
            with self.open(view, log) as source:
                found = scan(source, deep=True, until_zxid=log.last)
            first = RecordStretch(HEADER_BYTES, found.size_bytes, found.records, found.first_zxid, found.last_zxid)
            self._found[key] = tuple(each for each in (first, *found.behind) if each.records)
        return self._found[key]

    def records(
        self, view: BackupView, log: ArchivedLog, parts: Sequence[tuple[int, int]]
    ) -> Iterator[TransactionColumns]:
        """The records of some stretches, each given by its bytes, as `tables` returns them."""
        for start, end in parts:
            with LogPart(self.open(view, log), start, end).buffered() as source:
                yield from tables(source)

    def good_records(self, view: BackupView, log: ArchivedLog) -> Iterator[TransactionColumns]:
        yield from self.records(view, log, [(each.start, each.end) for each in self.stretches(view, log)])

    def adler_of(self, view: BackupView, log: ArchivedLog, zxid: int) -> int | None:
        """The checksum of a record; None if the log does not have it."""
        holds = (each for each in self.stretches(view, log) if each.first_zxid <= zxid <= each.last_zxid)
        if not log.first <= zxid <= log.last or (stretch := next(holds, None)) is None:
            return None
        with self.open(view, log) as source:
            found = scan(source, start_at=stretch.start, until_zxid=zxid, chunk_bytes=_CHUNK_BYTES)
        return found.last_adler if found.last_zxid == zxid else None

    def give(self, view: BackupView, log: ArchivedLog, first: int, last: int, sink: Sink) -> ScannedLog:
        """Pass the records `first` to `last` to the sink, checked. Raises Damaged if any is missing."""
        holds = (each for each in self.stretches(view, log) if each.first_zxid <= first and last <= each.last_zxid)
        stretch = next(holds, RecordStretch(HEADER_BYTES, HEADER_BYTES))
        return self.give_from(view, log, first, last, sink, start=stretch.start, begins=stretch.first_zxid)

    def give_from(
        self, view: BackupView, log: ArchivedLog, first: int, last: int, sink: Sink, *, start: int, begins: int
    ) -> ScannedLog:
        """The same, if it is known that the transaction `begins` is at the byte `start`.

        A caller that asks for parts in order reads nothing twice: what is between them is scanned once."""
        key = id(view), log
        reached, behind = self._reached.get(key, (0, 0))
        if begins <= reached < first:
            start = max(start, behind)
        with self.open(view, log) as source:
            before = 0
            if begins != first:
                before = scan(source, start_at=start, until_zxid=first - 1, chunk_bytes=_CHUNK_BYTES).size_bytes
        with self.open(view, log) as source:
            found = scan(source, start_at=start + before, until_zxid=last, sink=sink, chunk_bytes=_CHUNK_BYTES)
        require_all(found, log, first, last)
        self._reached[key] = last, start + before + found.size_bytes
        return found
