"""The task that copies one log: read once, checked, hashed and stored in the same pass, in as many pieces as it takes.

A plain function on a picklable unit. A piece is of one epoch, and either known to be committed or not; damage ends one
and another one begins behind it. What was purged, torn or damaged is told in the result. A server that has caught up
with others may log once more what it has: such records, if they are the same, are passed over.
"""

from dataclasses import dataclass
from typing import BinaryIO

import msgspec

from logkeep.errors import Damaged
from logkeep.formats.zookeeper.names import epoch_of
from logkeep.formats.zookeeper.scanned_log import DamageKind
from logkeep.formats.zookeeper.txnlog import HEADER_BYTES, Padding, ScannedLog, header
from logkeep.formats.zookeeper.window import CHUNK_BYTES
from logkeep.model.segments import Proof
from logkeep.model.work import Progress
from logkeep.zookeeper.sink import PieceWriter, Shelf, Stored
from logkeep.zookeeper.source_file import base_of, opened_file, reading, scanned

_FIRST_ZXID = slice(24, 32)
"""Within a record: checksum, length, session and cxid come before it."""


@dataclass(frozen=True)
class LogUnit:
    path: str
    pinned: str
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
    held: tuple[int, int] | None = None
    """The last record that is kept of what may come again here: its zxid and its checksum."""


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


class LoggedAgain(msgspec.Struct, frozen=True, kw_only=True):
    """Records that are kept already, the same ones."""

    position: int
    first: int
    last: int


class CopiedLog(msgspec.Struct, frozen=True, kw_only=True):
    vanished: bool = False
    """It was purged before it could be opened."""
    pieces: tuple[CopiedPiece, ...] = ()
    damage: tuple[FoundDamage, ...] = ()
    again: tuple[LoggedAgain, ...] = ()
    end_at: int = 0
    """How far the file was read, for whoever goes on there; 0 when nothing was."""


def copy_log(unit: LogUnit, progress: Progress) -> CopiedLog:
    """Store the records of a log up to the last one that is wanted, in as many pieces as damage makes of them."""
    try:
        file = opened_file(unit.path, unit.pinned)
    except FileNotFoundError:
        return CopiedLog(vanished=True)
    with file, reading(unit.path):
        copy = _LogCopy(unit, file, progress)
        copy.run()
    return CopiedLog(pieces=tuple(copy.pieces), damage=tuple(copy.damage), again=tuple(copy.again), end_at=copy.at)


class _LogCopy:
    def __init__(self, unit: LogUnit, file: BinaryIO, progress: Progress) -> None:
        self._unit, self._file, self._progress = unit, file, progress
        self.pieces: list[CopiedPiece] = []
        self.damage: list[FoundDamage] = []
        self.again: list[LoggedAgain] = []
        self.at = unit.start_at

    def run(self) -> None:
        """One piece after the other: of one epoch each, and either proven or not."""
        if self._unit.limit is not None and self._unit.limit < 1:
            return
        following = self._behind_held(self.at, self._unit.held)
        while following is not None:
            following = self._piece(following)

    def _piece(self, start: int) -> int | None:
        """One run of records, and where the next one begins."""
        until, proof = wanted_until(self._peeked(start), self._unit.proven, self._unit.limit)
        tail_from = self._unit.tail_from
        tail = proof is Proof.UNPROVEN and tail_from is not None and self._peeked(start) > tail_from
        place = _Lazily(self._unit, start, self._progress, tail=tail)
        try:
            found = scanned(self._file, start, until, place.write, self._unit.largest_record, self._unit.chunk_bytes)
            if found.records:
                self.pieces.append(_piece(found, place.close(), proof, start, tail=tail))
        finally:
            place.abort()
        self.at = start + found.size_bytes
        return self._behind(found, start)

    def _behind_held(self, start: int, held: tuple[int, int] | None) -> int | None:
        """Where records begin that are not kept yet. None: all that is there so far is kept.

        It stays where it is when other records than the kept ones are there, or something is damaged.
        """
        first = self._peeked(start)
        if held is None or not 0 < first <= held[0]:
            return start
        found = scanned(self._file, start, held[0], None, self._unit.largest_record, self._unit.chunk_bytes)
        if found.records and (found.last_zxid, found.last_adler) == held:
            self.again.append(LoggedAgain(position=max(start, HEADER_BYTES), first=first, last=found.last_zxid))
            return start + found.size_bytes
        return None if found.records and found.last_zxid < held[0] and not found.damage else start

    def _peeked(self, start: int) -> int:
        """The zxid of the record that begins there. Of a damaged one it may be anything: nothing is made of it."""
        self._file.seek(max(start, HEADER_BYTES))
        return int.from_bytes(self._file.read(_FIRST_ZXID.stop)[_FIRST_ZXID], signed=True)

    def _behind(self, found: ScannedLog, start: int) -> int | None:
        if not found.damage:
            wanted = self._unit.limit is None or self._peeked(self.at) <= self._unit.limit
            return self.at if found.padding is Padding.RECORDS and found.records and wanted else None
        base = base_of(start)
        first = found.damage[0]
        if first.kind is DamageKind.ORDER and self.pieces:
            last = self.pieces[-1]
            following = self._behind_held(self.at, (last.last, last.last_adler))
            if following != self.at:
                return following
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
