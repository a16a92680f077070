"""Reads the archived batches of one log in order. Each is returned only after its CRC-32C was checked.

The CRC does not cover the first bytes of a batch, its offset among them: `header_check` checks those. A small object
is hashed instead, which costs less than reading its index.
"""

import hashlib
from collections.abc import Iterable, Iterator

from logkeep.errors import Damaged
from logkeep.formats.kafka.batches import BatchStretch
from logkeep.formats.kafka.transactions import SettledTransactions, Settling
from logkeep.kafka.logs.header_check import NOT_WRITTEN, HeaderCheck
from logkeep.model.segments import Codec, LogName, Segment
from logkeep.repository.chain import layout
from logkeep.repository.chain.commits import SourceRef
from logkeep.repository.segments.log_batches import LogPieces
from logkeep.repository.segments.reader import StoredLog

PIECE_BYTES = 2 << 20
"""Read from the archive at once: several logs are open at the same time."""
HASHED_BYTES = 256 << 10
"""Up to this size, also unpacked, an object is read as a whole and hashed."""


def stretches(place: SourceRef, segments: Iterable[Segment], start: int, end: int) -> Iterator[BatchStretch]:
    """All archived batches of `[start, end)`. Raises Damaged, ObjectMissing or another StoreError."""
    for segment in segments:
        if segment.has_object and segment.end > start and segment.start < end:
            yield from _segment(place, segment)


def settled_transactions(
    place: SourceRef, log: LogName, segments: Iterable[Segment], start: int, end: int
) -> SettledTransactions:
    """How the transactions of `[start, end)` ended. Raises Damaged, also for a marker that cannot be read."""
    settling = Settling()
    for stretch in stretches(place, segments, start, end):
        before_end = stretch.touching(0, end)
        settling.take(before_end.buffer, before_end.batches)
    if settling.problems:
        raise Damaged(f"a transaction marker cannot be read: {settling.problems[0]}", subject=str(log))
    return settling.settled()


def _read(stored: StoredLog, pieces: LogPieces) -> Iterator[memoryview]:
    """Read the object in pieces. If a piece ends with the beginning of a batch, and that is short, the batch is read
    again as a whole with the next piece. Joining it from two reads would make a stretch of its own, which costs more
    time than reading some bytes twice."""
    if stored.codec is not Codec.NONE:
        return stored.pieces(piece_bytes=PIECE_BYTES)
    return stored.again_from(lambda: pieces.put_back(PIECE_BYTES // 8), PIECE_BYTES)


def _segment(place: SourceRef, segment: Segment) -> Iterator[BatchStretch]:
    """The batches that a segment covers, as they are read."""
    small = max(segment.plain_bytes, segment.stored_bytes) <= HASHED_BYTES
    for stretch in _hashed(place, segment) if small else _header_checked(place, segment):
        own = stretch.touching(segment.start, segment.end)
        if len(own.batches):
            yield own


def _hashed(place: SourceRef, segment: Segment) -> list[BatchStretch]:
    """All of a small object."""
    sha256, pieces, name = hashlib.sha256(), LogPieces(), layout.segment(place.source, segment)
    stored = StoredLog.of(place, segment)
    found = [each for piece in stored.pieces(sha256.update, HASHED_BYTES) for each in pieces.take(piece)]
    problem = pieces.problem or pieces.end_problem()
    if problem or sha256.hexdigest() != segment.sha256:
        raise Damaged(problem or NOT_WRITTEN, subject=name)
    return [BatchStretch(buffer, batches) for buffer, batches in found]


def _header_checked(place: SourceRef, segment: Segment) -> Iterator[BatchStretch]:
    """Some megabytes of an object at a time, each compared with the index first."""
    pieces, name = LogPieces(), layout.segment(place.source, segment)
    headers = HeaderCheck(place, segment)
    for piece in _read(StoredLog.of(place, segment), pieces):
        found = pieces.take(piece)
        if pieces.problem:
            raise Damaged(pieces.problem, subject=name)
        for buffer, batches in found:
            headers.check_next(batches)
            yield BatchStretch(buffer, batches)
    if pieces.end_problem():
        raise Damaged(pieces.end_problem(), subject=name)
    headers.check_end()
