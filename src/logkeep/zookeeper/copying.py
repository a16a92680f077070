"""The tasks of a backup: one file each, read once, checked, hashed and stored in the same pass.

Plain functions on picklable units. What a task can foresee is a value in its result: a file that was purged before it
was opened, a snapshot that is not finished, a record that was just being written. It raises for what a retry can cure,
and for a store that refuses.
"""

import errno
import os
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from enum import StrEnum
from pathlib import Path
from typing import BinaryIO, cast

import msgspec

from logkeep.errors import BackupFailed, Damaged, DataDirUnusable
from logkeep.formats.zookeeper.names import Packing, epoch_of
from logkeep.formats.zookeeper.packed import opened
from logkeep.formats.zookeeper.snapshot import SnapshotReader
from logkeep.formats.zookeeper.txnlog import HEADER_BYTES, Padding, ScannedLog, header, scan
from logkeep.formats.zookeeper.window import CHUNK_BYTES
from logkeep.model.segments import Proof
from logkeep.model.work import Progress
from logkeep.zookeeper.sink import PieceWriter, Shelf, Stored

_CHUNK = 1 << 20
_FIRST_ZXID = slice(24, 32)
"""Within a record: checksum, length, session and cxid come before it."""


class Outcome(StrEnum):
    KEPT = "kept"
    VANISHED = "vanished"
    UNUSABLE = "unusable"


@dataclass(frozen=True)
class SnapshotUnit:
    path: str
    name: str
    zxid: int
    packing: Packing
    size_bytes: int
    member: str
    history: str
    shelf: Shelf
    as_is: bool = False
    """The server packed it, or another one of the same zxid: packing it ourselves would give it that one's name."""


class CopiedSnapshot(msgspec.Struct, frozen=True, kw_only=True):
    outcome: Outcome
    why: str = ""
    stored: Stored | None = None
    fuzzy_end: int | None = None
    digest: int | None = None
    digest_zxid: int = 0
    nodes: int = 0
    schemes: tuple[str, ...] = ()


@dataclass(frozen=True)
class LogUnit:
    path: str
    size_bytes: int
    member: str
    history: str
    shelf: Shelf
    start_at: int = 0
    """The byte of the first record that is wanted; 0: from the header on."""
    limit: int | None = None
    """The last transaction that is wanted; None: all that there are."""
    proven: tuple[int, ...] = ()
    """Transactions that are known to be committed: with each all before it in its epoch, and no others."""
    tail_from: int | None = None
    """What is behind this zxid and not proven may be rewritten by the server: it is stored apart."""
    largest_record: int | None = None
    chunk_bytes: int = CHUNK_BYTES


class CopiedPiece(msgspec.Struct, frozen=True, kw_only=True):
    """Records one behind the other, stored as a log of their own."""

    stored: Stored
    first: int
    last: int
    records: int
    min_time_ms: int
    max_time_ms: int
    last_adler: int
    proof: Proof
    digests: bool
    tail: bool
    start_at: int
    """The byte of its first record in the file."""
    end_at: int
    """The byte behind its last one."""


class FoundDamage(msgspec.Struct, frozen=True, kw_only=True):
    """Something wrong in a log. Nothing good is behind it when `resumes_zxid` is None."""

    position: int
    kind: str
    after_zxid: int
    resumes_zxid: int | None = None


class CopiedLog(msgspec.Struct, frozen=True, kw_only=True):
    outcome: Outcome
    pieces: tuple[CopiedPiece, ...] = ()
    damage: tuple[FoundDamage, ...] = ()
    end_at: int = 0
    """How far the file was read, for whoever goes on there; 0 when nothing was."""


def copy_snapshot(unit: SnapshotUnit, progress: Progress) -> CopiedSnapshot:
    """Store a snapshot file as it is, if all its seals fit."""
    try:
        file = _opened(unit.path)
    except FileNotFoundError:
        return CopiedSnapshot(outcome=Outcome.VANISHED)
    with file, _reading(unit.path):
        writer = unit.shelf.open_snapshot(unit.member, unit.history, unit.name, unit.zxid, packed=unit.as_is)
        try:
            return _checked_snapshot(unit, _Copied(file, writer, progress), writer)
        except Damaged as damage:
            return CopiedSnapshot(outcome=Outcome.UNUSABLE, why=str(damage))
        finally:
            writer.abort()


def _checked_snapshot(unit: SnapshotUnit, source: "_Copied", writer: PieceWriter) -> CopiedSnapshot:
    reader = SnapshotReader(opened(cast("BinaryIO", source), unit.packing))
    reader.sessions()
    acls = reader.acls()
    nodes = largest = 0
    for row in reader.nodes():
        nodes += 1
        largest = max(largest, row.czxid, row.mzxid, row.pzxid)
    ending = reader.ending()
    source.drain()
    return CopiedSnapshot(
        outcome=Outcome.KEPT,
        stored=writer.close(),
        fuzzy_end=ending.fuzzy_end(unit.zxid, largest),
        digest=ending.digest,
        digest_zxid=ending.digest_zxid,
        nodes=nodes,
        schemes=tuple(sorted({a.scheme.decode("utf-8", "replace") for one in acls.values() for a in one})),
    )


class _Copied:
    """A file that is stored while it is read."""

    def __init__(self, file: BinaryIO, writer: PieceWriter, progress: Progress) -> None:
        self._file, self._writer, self._progress = file, writer, progress

    def read(self, size: int = -1) -> bytes:
        data = self._file.read(size)
        if data:
            self._writer.write(data)
            self._progress(len(data))
        return data

    def close(self) -> None:
        """Whoever unpacks it closes what it read from; the file is closed by who opened it."""

    def drain(self) -> None:
        """Whatever the reader left unread: a file is stored whole."""
        while self.read(1 << 20):
            pass


def copy_log(unit: LogUnit, progress: Progress) -> CopiedLog:
    """Store the records of a log up to the last one that is wanted, in as many pieces as damage makes of them."""
    try:
        file = _opened(unit.path)
    except FileNotFoundError:
        return CopiedLog(outcome=Outcome.VANISHED)
    with file, _reading(unit.path):
        copy = _LogCopy(unit, file, progress)
        copy.run()
    return CopiedLog(outcome=Outcome.KEPT, pieces=tuple(copy.pieces), damage=tuple(copy.damage), end_at=copy.at)


class _LogCopy:
    def __init__(self, unit: LogUnit, file: BinaryIO, progress: Progress) -> None:
        self._unit, self._file, self._progress = unit, file, progress
        self.pieces: list[CopiedPiece] = []
        self.damage: list[FoundDamage] = []
        self.at = unit.start_at

    def run(self) -> None:
        """One piece after the other: of one epoch each, and either proven or not."""
        if self._unit.limit is not None and self._unit.limit < 1:
            return
        following: int | None = self.at
        while following is not None:
            following = self._piece(following)

    def _piece(self, start: int) -> int | None:
        """One run of records, and where the next one begins."""
        until, proof = wanted_until(self._peeked(start), self._unit.proven, self._unit.limit)
        tail_from = self._unit.tail_from
        tail = proof is Proof.UNPROVEN and tail_from is not None and self._peeked(start) > tail_from
        place = _Lazily(self._unit, start, self._progress, tail=tail)
        try:
            found = _scanned(self._file, start, until, place.write, self._unit.largest_record, self._unit.chunk_bytes)
            if found.records:
                self.pieces.append(_piece(found, place.close(), proof, start, tail=tail))
        finally:
            place.abort()
        self.at = start + found.size_bytes
        return self._behind(found, start)

    def _peeked(self, start: int) -> int:
        """The zxid of the record that begins there. Of a damaged one it may be anything: nothing is made of it."""
        self._file.seek(max(start, HEADER_BYTES))
        return int.from_bytes(self._file.read(_FIRST_ZXID.stop)[_FIRST_ZXID], signed=True)

    def _behind(self, found: ScannedLog, start: int) -> int | None:
        if not found.damage:
            wanted = self._unit.limit is None or self._peeked(self.at) <= self._unit.limit
            return self.at if found.padding is Padding.RECORDS and found.records and wanted else None
        base = _base(start)
        first = found.damage[0]
        after = first.after_zxid or (self.pieces[-1].last if self.pieces else 0)
        told = FoundDamage(
            position=base + first.position, kind=first.kind, after_zxid=after, resumes_zxid=first.resumes_zxid
        )
        self.damage.append(told)
        return None if first.resumes_at is None else base + first.resumes_at


class _Lazily:
    """Opens the object with the first records, whose zxid names it: a log without records is not stored at all."""

    def __init__(self, unit: LogUnit, start: int, progress: Progress, *, tail: bool) -> None:
        self._unit, self._start, self._progress, self._tail = unit, start, progress, tail
        self._writer: PieceWriter | None = None

    def write(self, data: memoryview) -> None:
        records = data if self._start else data[HEADER_BYTES:]
        if self._writer is None:
            if not len(records):
                self._start = HEADER_BYTES
                return
            first = int.from_bytes(records[_FIRST_ZXID], signed=True)
            self._writer = self._unit.shelf.open_log(self._unit.member, self._unit.history, first, tail=self._tail)
            self._writer.write(header())
            data, self._start = records, max(self._start, HEADER_BYTES)
        self._writer.write(data)
        self._progress(len(data))

    def close(self) -> Stored:
        if self._writer is None:
            raise Damaged("records were found and not stored", subject=self._unit.path)
        return self._writer.close()

    def abort(self) -> None:
        if self._writer is not None:
            self._writer.abort()


def wanted_until(first: int, proven: tuple[int, ...], limit: int | None) -> tuple[int, Proof]:
    """How far a piece goes that begins with a transaction: to where its epoch, or what is known of it, ends."""
    known = max((zxid for zxid in proven if epoch_of(zxid) == epoch_of(first)), default=-1)
    if first <= known:
        return known, Proof.PROVEN
    end = first | 0xFFFF_FFFF
    return end if limit is None else min(end, limit), Proof.UNPROVEN


def _piece(found: ScannedLog, stored: Stored, proof: Proof, start: int, *, tail: bool) -> CopiedPiece:
    return CopiedPiece(
        stored=stored,
        first=found.first_zxid,
        last=found.last_zxid,
        records=found.records,
        min_time_ms=found.min_time_ms,
        max_time_ms=found.max_time_ms,
        last_adler=found.last_adler,
        proof=proof,
        digests=found.with_digests,
        tail=tail,
        start_at=max(start, HEADER_BYTES),
        end_at=start + found.size_bytes,
    )


def _base(start: int) -> int:
    """From which byte on positions are counted when a scan begins at a record: the skipped bytes are not read."""
    return start - 1 if start else 0


def _scanned(
    file: BinaryIO,
    start: int,
    until: int | None,
    sink: Callable[[memoryview], object] | None,
    largest: int | None,
    chunk_bytes: int = CHUNK_BYTES,
) -> ScannedLog:
    file.seek(_base(start))
    begin = 1 if start else 0
    return scan(file, sink=sink, start_at=begin, until_zxid=until, largest_record=largest, chunk_bytes=chunk_bytes)


@dataclass(frozen=True)
class Mark:
    """The last record at or below a zxid in a file: which it is, its checksum, and the byte behind it."""

    zxid: int
    adler: int
    end_at: int


def mark_in(path: Path, zxid: int) -> Mark | None:
    """Look for a record. None when the file is gone, or holds nothing at or below that zxid."""
    try:
        file = _opened(str(path))
    except FileNotFoundError:
        return None
    with file, _reading(str(path)):
        found = _scanned(file, 0, zxid, None, None)
    return Mark(found.last_zxid, found.last_adler, found.size_bytes) if found.records else None


@contextmanager
def _reading(path: str) -> Iterator[None]:
    """A disk that cannot be read is the source's trouble. Stores have errors of their own."""
    try:
        yield
    except OSError as error:
        what = f"the file cannot be read: {(error.strerror or 'unknown reason').lower()}"
        raise BackupFailed(what, subject=path, remedy="check the disk of this server") from error


def _opened(path: str) -> BinaryIO:
    """Raises FileNotFoundError for what was purged, DataDirUnusable for what may not be read."""
    try:
        return Path(path).open("rb")
    except FileNotFoundError:
        raise
    except OSError as error:
        raise DataDirUnusable(
            f"it cannot be read: {(error.strerror or 'unknown reason').lower()}", subject=path
        ) from error


@dataclass(frozen=True)
class VerbatimUnit:
    """A damaged file, to be stored as it is."""

    path: str
    name: str
    zxid: int
    size_bytes: int
    member: str
    history: str
    shelf: Shelf


class CopiedVerbatim(msgspec.Struct, frozen=True, kw_only=True):
    stored: Stored | None


def copy_verbatim(unit: VerbatimUnit, progress: Progress) -> CopiedVerbatim:
    """All bytes up to the hole that the file ends with; nothing when it is gone."""
    try:
        file = _opened(unit.path)
    except FileNotFoundError:
        return CopiedVerbatim(stored=None)
    with file, _reading(unit.path):
        writer = unit.shelf.open_damaged(unit.member, unit.history, unit.name, unit.zxid)
        try:
            left = _data_end(file)
            while left and (piece := file.read(min(left, _CHUNK))):
                writer.write(piece)
                progress(len(piece))
                left -= len(piece)
            return CopiedVerbatim(stored=writer.close())
        finally:
            writer.abort()


def _data_end(file: BinaryIO) -> int:
    """Where the last bytes end that are no hole."""
    descriptor, end = file.fileno(), 0
    try:
        while True:
            end = os.lseek(descriptor, os.lseek(descriptor, end, os.SEEK_DATA), os.SEEK_HOLE)
    except OSError as error:
        if error.errno != errno.ENXIO:  # a file system that does not tell
            end = os.fstat(descriptor).st_size
    file.seek(0)
    return end
