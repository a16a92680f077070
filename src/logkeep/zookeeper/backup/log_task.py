"""The task that copies one log: read, checked, hashed and stored in one pass, as one or more pieces.

A plain function on a picklable unit. A piece is of one epoch, and either known to be committed or not; damage ends one
piece, and another one begins after it. What was purged, torn or damaged is in the result. A server that has caught up
with others may log records again: if they are the same, they are skipped. If they differ, nothing of the file from
there on is archived.
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
from logkeep.zookeeper.model.sink import NewObjects, PieceWriter

_FIRST_ZXID = slice(24, 32)
"""In a record, after checksum, length, session and cxid."""


@dataclass(frozen=True)
class LogCopyUnit:
    path: str
    pinned: str
    """Where it can be read after its name is gone; empty: nowhere."""
    size_bytes: int
    member: str
    history: str
    new_objects: NewObjects
    start_at: int = 0
    """The byte of the first record to copy; 0: from the header on."""
    limit: int | None = None
    """The last transaction to copy; None: all."""
    proven: tuple[int, ...] = ()
    """Transactions known to be committed: each proves all before it in its epoch, and no others."""
    tail_from: int | None = None
    """The server may rewrite what is after this zxid and not proven: it is stored apart."""
    largest_record: int | None = None
    chunk_bytes: int = CHUNK_BYTES
    held: tuple[KnownRecords, ...] = ()
    """Archived records that may be logged again here."""


class CopiedPiece(msgspec.Struct, frozen=True, kw_only=True):
    """Consecutive records, stored as a log of their own."""

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
    """The byte after the record directly before it: records in between are the last ones of that, logged again."""
    end_at: int
    """The byte after its last record."""


class FoundDamage(msgspec.Struct, frozen=True, kw_only=True):
    """Damage in a log. No good record follows if `resumes_zxid` is None."""

    position: int
    kind: str
    after_zxid: int
    resumes_zxid: int | None = None


class LoggedAgain(msgspec.Struct, frozen=True, kw_only=True):
    """Records that are archived already and are the same."""

    position: int
    first: int
    last: int


class OtherRecords(msgspec.Struct, frozen=True, kw_only=True):
    """Records of an epoch that contradict archived ones, or come after such: none of them is archived."""

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
    """How far the file was read, so that the next round continues there; 0 if nothing was read."""
    closes_at: int = 0
    """The byte after its last archived record, if that is the last one of the file; else 0."""


def copy_log(unit: LogCopyUnit, progress: Progress) -> CopiedLog:
    """Store the records of a log up to the limit, as one piece for each undamaged run."""
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
        """The byte at which the last archived records begin again, directly before the current position."""
        self._unsure = False
        """Not all of them were logged again, so the last one is unknown."""
        self._read_to = 0

    @property
    def closes_at(self) -> int:
        if self.damage or self.others or self._unsure:
            return 0
        return self.at if self._repeats_from is None else self._repeats_from

    def run(self) -> None:
        """Copy one piece after the other."""
        if self._unit.limit is not None and self._unit.limit < 1:
            return
        following: int | None = self.at
        while following is not None and (start := self._next_new(following)) is not None:
            following = self._piece(start)

    def _piece(self, start: int) -> int | None:
        """Copy one run of records; returns where the next one begins."""
        first = self._zxid_at(start)
        until, proof = wanted_until(first, self._unit.proven, self._unit.limit)
        until = min([until, *(held.first - 1 for held in self._held if held.first > first)])
        tail_from = self._unit.tail_from
        tail = proof is Proof.UNPROVEN and tail_from is not None and first > tail_from
        place = _PieceOutput(self._unit, start, self._progress, tail=tail)
        try:
            found = scanned(self._file, start, until, place.write, self._unit.largest_record, self._unit.chunk_bytes)
            if found.records:
                self._keep(found, place.close(), proof, start, tail=tail)
        finally:
            place.abort()
        if found.records or self._repeats_from is None:
            self.at = start + found.size_bytes
        return self._next_start(found, start)

    def _keep(self, found: ScannedLog, stored: StoredObject, proof: Proof, start: int, *, tail: bool) -> None:
        joins_at = max(start if self._repeats_from is None else self._repeats_from, HEADER_BYTES)
        self.pieces.append(_piece(found, stored, proof, start, -1 if self._unsure else joins_at, tail=tail))
        self._repeats_from, self._unsure, self._read_to = None, False, found.last_zxid
        path, pinned = self._unit.path, self._unit.pinned
        self._held.append(KnownRecords(found.first_zxid, found.last_zxid, found.last_adler, path, pinned, start))

    def _next_new(self, start: int) -> int | None:
        """Where the next new record begins. None: there is none, or none that may be archived."""
        while held := self._known_at(self._zxid_at(start)):
            until = held.last if self._unit.limit is None else min(held.last, self._unit.limit)
            found = scanned(self._file, start, until, None, self._unit.largest_record, self._unit.chunk_bytes)
            if not found.records:
                return start  # damaged
            path, pinned = self._unit.path, self._unit.pinned
            if not is_same(
                KnownRecords(found.first_zxid, found.last_zxid, found.last_adler, path, pinned, start), held
            ):
                self._contradicted(start)
                return None
            whole = found.last_zxid == max(each.last for each in self._held)
            if not whole and not found.damage and found.padding is not Padding.RECORDS:
                self._unsure = True  # the server may log the others soon
                return None
            self._pass_over(found, start, whole=whole)
            start += found.size_bytes
            if found.padding is Padding.RECORDS and not self._is_wanted(start):
                return None
        return start

    def _known_at(self, zxid: int) -> KnownRecords | None:
        return next((held for held in self._held if zxid > 0 and held.first <= zxid <= held.last), None)

    def _pass_over(self, found: ScannedLog, start: int, *, whole: bool) -> None:
        position = max(start, HEADER_BYTES)
        self.again.append(LoggedAgain(position=position, first=found.first_zxid, last=found.last_zxid))
        self._repeats_from = position if self._repeats_from is None else self._repeats_from
        self._unsure, self._read_to = not whole, found.last_zxid

    def _contradicted(self, start: int) -> None:
        """Report everything from there on, with the piece directly before it."""
        if self.pieces and self.pieces[-1].end_at == start and self.pieces[-1].last + 1 == self._zxid_at(start):
            start = self.pieces.pop().start_at
        at: int | None = start
        while at is not None:
            end = self._zxid_at(at) | 0xFFFF_FFFF
            until = end if self._unit.limit is None else min(end, self._unit.limit)
            found = scanned(self._file, at, until, None, self._unit.largest_record, self._unit.chunk_bytes)
            if found.records:
                position = max(at, HEADER_BYTES)
                self.others.append(OtherRecords(position=position, first=found.first_zxid, last=found.last_zxid))
            continues = found.padding is Padding.RECORDS or goes_back(found)
            at = at + found.size_bytes if found.records and continues else None

    def _is_wanted(self, at: int) -> bool:
        """Whether a good record is within the limit."""
        return self._unit.limit is None or self._zxid_at(at) <= self._unit.limit

    def _zxid_at(self, start: int) -> int:
        """The zxid of the record that begins there. For a damaged one it is arbitrary, and the scan decides."""
        self._file.seek(max(start, HEADER_BYTES))
        return int.from_bytes(self._file.read(_FIRST_ZXID.stop)[_FIRST_ZXID], signed=True)

    def _next_start(self, found: ScannedLog, start: int) -> int | None:
        if not found.damage:
            continues = found.padding is Padding.RECORDS and found.records and self._is_wanted(self.at)
            return self.at if continues else None
        if goes_back(found):
            return self.at
        base, first = base_of(start), found.damage[0]
        damage = FoundDamage(
            position=base + first.position,
            kind=first.kind,
            after_zxid=first.after_zxid or self._read_to,
            resumes_zxid=first.resumes_zxid,
        )
        self.damage.append(damage)
        return None if first.resumes_at is None else base + first.resumes_at


class _PieceOutput:
    """Opens the object with the first record, whose zxid is in its name: a log without records is not stored."""

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
            self._writer = self._unit.new_objects.open_log(
                self._unit.member, self._unit.history, first, tail=self._tail
            )
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
    """The last transaction of a piece that begins with `first`: where its epoch, or the proven part of it, ends."""
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
