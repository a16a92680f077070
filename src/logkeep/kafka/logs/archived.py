"""The archived batches of one log, in order, each believed only after its CRC-32C was computed again.

That does not cover the first bytes of a batch, its offset among them: `witness` vouches for those. A small object is
hashed instead, which costs less than to ask for its index.
"""

import hashlib
from collections.abc import Iterator

import msgspec

from logkeep.errors import Damaged
from logkeep.formats.compare.log_compare import BatchStretch
from logkeep.formats.kafka.partitioner import Share
from logkeep.formats.kafka.record_view import View, visible_records
from logkeep.formats.kafka.records import RecordColumns
from logkeep.formats.kafka.transactions import SettledTransactions, Settling
from logkeep.kafka.logs.batch_check import LogPieces
from logkeep.kafka.logs.header_check import NOT_WRITTEN, HeaderCheck
from logkeep.kafka.restore.facts.units import Offsets, ReplayLog, RestoreIsolation
from logkeep.model.segments import Codec, Segment
from logkeep.repository.backups.segment_bytes import StoredLog
from logkeep.repository.chain import layout
from logkeep.repository.chain.commits import SourceRef

PIECE_BYTES = 2 << 20
"""Of the archive, read at once: several logs are open at the same time."""
HASHED_BYTES = 256 << 10
"""Up to this size, also unpacked, an object is read as a whole and hashed."""


def stretches(place: SourceRef, log: ReplayLog) -> Iterator[BatchStretch]:
    """All that is archived of the log's range. Raises Damaged, ObjectMissing or another StoreError."""
    for segment in log.segments:
        if segment.has_object and segment.end > log.start and segment.start < log.end:
            yield from _segment(place, segment)


def settled_of(place: SourceRef, log: ReplayLog) -> SettledTransactions | None:
    """What became of the log's transactions up to its end. None: all records count, whatever became of them.

    A log without transactions is not read for that.
    """
    if log.isolation is RestoreIsolation.ALL:
        return None
    settling = Settling()
    whole = msgspec.structs.replace(log, end=max(log.end, log.settled_to))
    for stretch in stretches(place, whole) if log.transactional else ():
        before_end = stretch.touching(0, whole.end)
        settling.take(before_end.buffer, before_end.batches)
        if settling.problems:
            raise Damaged(f"a transaction marker cannot be read: {settling.problems[0]}", subject=str(log.log))
    return settling.settled()


def view_of(log: ReplayLog, settled: SettledTransactions | None) -> View:
    share = Share(log.partition, log.spread_over, log.log.partition) if log.spread_over else None
    return View(log.start, log.end, settled, log.offsets is Offsets.PRESERVE, log.before_ms, share)


def share_of(place: SourceRef, source: ReplayLog) -> Iterator[RecordColumns]:
    """The records of one log that go into a partition which gets a share of it. Reads transactions first."""
    try:
        yield from visible_records(stretches(place, source), view_of(source, settled_of(place, source)))
    except Damaged as error:
        raise Damaged(error.what, subject=error.subject or f"the archive of {source.log}") from error


def _read(stored: StoredLog, pieces: LogPieces) -> Iterator[memoryview]:
    """What costs is the number of stretches, not some bytes of a batch that are read twice: a batch of which little is
    there is read again as a whole instead of being put together from two reads."""
    if stored.codec is not Codec.NONE:
        return stored.pieces(piece_bytes=PIECE_BYTES)
    return stored.again_from(lambda: pieces.put_back(PIECE_BYTES // 8), PIECE_BYTES)


def _segment(place: SourceRef, segment: Segment) -> Iterator[BatchStretch]:
    """The batches that a segment answers for, as they are read."""
    small = max(segment.plain_bytes, segment.stored_bytes) <= HASHED_BYTES
    for stretch in _hashed(place, segment) if small else _witnessed(place, segment):
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


def _witnessed(place: SourceRef, segment: Segment) -> Iterator[BatchStretch]:
    """Some megabytes of an object at a time, each when it has been compared with the index."""
    pieces, name = LogPieces(), layout.segment(place.source, segment)
    witness = HeaderCheck(place, segment)
    for piece in _read(StoredLog.of(place, segment), pieces):
        found = pieces.take(piece)
        if pieces.problem:
            raise Damaged(pieces.problem, subject=name)
        for buffer, batches in found:
            witness.heard(batches)
            yield BatchStretch(buffer, batches)
    if pieces.end_problem():
        raise Damaged(pieces.end_problem(), subject=name)
    witness.ended()
