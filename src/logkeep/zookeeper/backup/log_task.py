"""The task that copies one log: read once, checked, hashed and stored in the same pass, in as many pieces as it takes.

A plain function on a picklable unit. A piece is of one epoch, and either known to be committed or not; damage ends one
and another one begins behind it. What was purged, torn or damaged is told in the result. A server that has caught up
with others may log once more what it has: such records, if they are the same, are passed over. If they are others,
nothing from there on is kept of the file.
"""

from dataclasses import dataclass
from typing import BinaryIO

import msgspec

from logkeep.errors import Damaged
from logkeep.formats.zookeeper.names import epoch_of
from logkeep.formats.zookeeper.txnlog import HEADER_BYTES, Padding, ScannedLog, header
from logkeep.formats.zookeeper.window import CHUNK_BYTES
from logkeep.model.segments import Proof
from logkeep.model.work import Progress
from logkeep.repository.object_writer import StoredObject
from logkeep.zookeeper.backup.known_records import KnownRecords, is_same
from logkeep.zookeeper.backup.source_file import base_of, goes_back, opened_file, reading, scanned
from logkeep.zookeeper.model.sink import PieceWriter, Shelf

_FIRST_ZXID = slice(24, 32)
"""Within a record: checksum, length, session and cxid come before it."""


@dataclass(frozen=True)
class LogCopyUnit:
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
    held: tuple[KnownRecords, ...] = ()
    """What is kept already, and may come again here."""


class CopiedPiece(msgspec.Struct, frozen=True, kw_only=True):
    """Records one behind the other, stored as a log of their own."""

    stored: StoredObject
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
    joins_at: int
    """The byte behind what comes right before it: records between them are the very last ones of that, once more."""
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


class OtherRecords(msgspec.Struct, frozen=True, kw_only=True):
    """Records of an epoch that contradict kept ones, or stand behind such: none of them is kept."""

    position: int
    first: int
    last: int


class CopiedLog(msgspec.Struct, frozen=True, kw_only=True):
    vanished: bool = False
    """It was purged before it could be opened."""
    pieces: tuple[CopiedPiece, ...] = ()
    damage: tuple[FoundDamage, ...] = ()
    again: tuple[LoggedAgain, ...] = ()
    others: tuple[OtherRecords, ...] = ()
    end_at: int = 0
    """How far the file was read, for whoever goes on there; 0 when nothing was."""
    closes_at: int = 0
    """The byte behind its last record that is kept, if that is also the last one of the file; else 0."""


def copy_log(unit: LogCopyUnit, progress: Progress) -> CopiedLog:
    """Store the records of a log up to the last one that is wanted, in as many pieces as damage makes of them."""
    try:
        file = opened_file(unit.path, unit.pinned)
    except FileNotFoundError:
        return CopiedLog(vanished=True)
    with file, reading(unit.path):
        copy = _LogCopy(unit, file, progress)
        copy.run()
    return CopiedLog(
        pieces=tuple(copy.pieces),
        damage=tuple(copy.damage),
        again=tuple(copy.again),
        others=tuple(copy.others),
        end_at=copy.at,
        closes_at=copy.closes_at,
    )


class _LogCopy:
    def __init__(self, unit: LogCopyUnit, file: BinaryIO, progress: Progress) -> None:
        self._unit, self._file, self._progress = unit, file, progress
        self.pieces: list[CopiedPiece] = []
        self.damage: list[FoundDamage] = []
        self.again: list[LoggedAgain] = []
        self.others: list[OtherRecords] = []
        self.at = unit.start_at
        self._held = list(unit.held)
        self._repeats_from: int | None = None
        """Where the very last kept records began once more, right before the place that is looked at."""
        self._unsure = False
        """Not all of them came again, so that nobody knows what is the last one."""
        self._read_to = 0

    @property
    def closes_at(self) -> int:
        if self.damage or self.others or self._unsure:
            return 0
        return self.at if self._repeats_from is None else self._repeats_from

    def run(self) -> None:
        """One piece after the other: of one epoch each, and either proven or not."""
        if self._unit.limit is not None and self._unit.limit < 1:
            return
        following: int | None = self.at
        while following is not None and (start := self._unkept(following)) is not None:
            following = self._piece(start)

    def _piece(self, start: int) -> int | None:
        """One run of records, and where the next one begins."""
        first = self._peeked(start)
        until, proof = wanted_until(first, self._unit.proven, self._unit.limit)
        until = min([until, *(held.first - 1 for held in self._held if held.first > first)])
        tail_from = self._unit.tail_from
        tail = proof is Proof.UNPROVEN and tail_from is not None and first > tail_from
        place = _Lazily(self._unit, start, self._progress, tail=tail)
        try:
            found = scanned(self._file, start, until, place.write, self._unit.largest_record, self._unit.chunk_bytes)
            if found.records:
                self._keep(found, place.close(), proof, start, tail=tail)
        finally:
            place.abort()
        if found.records or self._repeats_from is None:
            self.at = start + found.size_bytes
        return self._behind(found, start)

    def _keep(self, found: ScannedLog, stored: StoredObject, proof: Proof, start: int, *, tail: bool) -> None:
        joins_at = max(start if self._repeats_from is None else self._repeats_from, HEADER_BYTES)
        self.pieces.append(_piece(found, stored, proof, start, -1 if self._unsure else joins_at, tail=tail))
        self._repeats_from, self._unsure, self._read_to = None, False, found.last_zxid
        path, pinned = self._unit.path, self._unit.pinned
        self._held.append(KnownRecords(found.first_zxid, found.last_zxid, found.last_adler, path, pinned, start))

    def _unkept(self, start: int) -> int | None:
        """Where the next record begins that is not kept yet. None: there is none, or none that may be kept."""
        while held := self._kept_at(self._peeked(start)):
            until = held.last if self._unit.limit is None else min(held.last, self._unit.limit)
            found = scanned(self._file, start, until, None, self._unit.largest_record, self._unit.chunk_bytes)
            if not found.records:
                return start  # damaged: nothing is known of it
            path, pinned = self._unit.path, self._unit.pinned
            if not is_same(
                KnownRecords(found.first_zxid, found.last_zxid, found.last_adler, path, pinned, start), held
            ):
                self._contradicted(start)
                return None
            whole = found.last_zxid == max(each.last for each in self._held)
            if not whole and not found.damage and found.padding is not Padding.RECORDS:
                self._unsure = True  # it may go on with the others in a moment
                return None
            self._pass_over(found, start, whole=whole)
            start += found.size_bytes
            if found.padding is Padding.RECORDS and not self._is_wanted(start):
                return None
        return start

    def _kept_at(self, zxid: int) -> KnownRecords | None:
        return next((held for held in self._held if zxid > 0 and held.first <= zxid <= held.last), None)

    def _pass_over(self, found: ScannedLog, start: int, *, whole: bool) -> None:
        position = max(start, HEADER_BYTES)
        self.again.append(LoggedAgain(position=position, first=found.first_zxid, last=found.last_zxid))
        self._repeats_from = position if self._repeats_from is None else self._repeats_from
        self._unsure, self._read_to = not whole, found.last_zxid

    def _contradicted(self, start: int) -> None:
        """Name everything from there on, with what was taken for new right before it."""
        if self.pieces and self.pieces[-1].end_at == start and self.pieces[-1].last + 1 == self._peeked(start):
            start = self.pieces.pop().start_at
        at: int | None = start
        while at is not None:
            end = self._peeked(at) | 0xFFFF_FFFF
            until = end if self._unit.limit is None else min(end, self._unit.limit)
            found = scanned(self._file, at, until, None, self._unit.largest_record, self._unit.chunk_bytes)
            if found.records:
                position = max(at, HEADER_BYTES)
                self.others.append(OtherRecords(position=position, first=found.first_zxid, last=found.last_zxid))
            goes_on = found.padding is Padding.RECORDS or goes_back(found)
            at = at + found.size_bytes if found.records and goes_on else None

    def _is_wanted(self, at: int) -> bool:
        """Of a good record."""
        return self._unit.limit is None or self._peeked(at) <= self._unit.limit

    def _peeked(self, start: int) -> int:
        """The zxid of the record that begins there. Of a damaged one it may be anything: nothing is made of it."""
        self._file.seek(max(start, HEADER_BYTES))
        return int.from_bytes(self._file.read(_FIRST_ZXID.stop)[_FIRST_ZXID], signed=True)

    def _behind(self, found: ScannedLog, start: int) -> int | None:
        if not found.damage:
            goes_on = found.padding is Padding.RECORDS and found.records and self._is_wanted(self.at)
            return self.at if goes_on else None
        if goes_back(found):
            return self.at
        base, first = base_of(start), found.damage[0]
        told = FoundDamage(
            position=base + first.position,
            kind=first.kind,
            after_zxid=first.after_zxid or self._read_to,
            resumes_zxid=first.resumes_zxid,
        )
        self.damage.append(told)
        return None if first.resumes_at is None else base + first.resumes_at


class _Lazily:
    """Opens the object with the first records, whose zxid names it: a log without records is not stored at all."""

    def __init__(self, unit: LogCopyUnit, start: int, progress: Progress, *, tail: bool) -> None:
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

    def close(self) -> StoredObject:
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


def _piece(
    found: ScannedLog, stored: StoredObject, proof: Proof, start: int, joins_at: int, *, tail: bool
) -> CopiedPiece:
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
        joins_at=joins_at,
        end_at=start + found.size_bytes,
    )
