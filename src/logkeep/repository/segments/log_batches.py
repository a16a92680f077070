"""Reads archived logs batch by batch: whole batches back to back, rising offsets, right checksums."""

import hashlib
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor

from logkeep.errors import Damaged
from logkeep.formats.kafka.batches import OVERHEAD_BYTES, Batches, Bytes, WalkEnd, first_broken, walk
from logkeep.model.segments import Segment
from logkeep.model.work import Progress
from logkeep.repository.chain import layout
from logkeep.repository.chain.commits import SourceRef
from logkeep.repository.segments.reader import StoredLog

_LARGEST_BATCH = 1 << 30
"""Limits how much is read because of a wrong length."""


def proven_batches(
    place: SourceRef, row: Segment, after: int, progress: Progress, *, ahead: bool = False
) -> Iterator[tuple[Bytes, Batches]]:
    """The batches of an object, some megabytes at a time; its hash is checked at the end. Raises Damaged.

    `ahead`: a thread reads and hashes the next piece while the caller works on this one.
    """
    name = layout.segment(place.source, row)
    digest, pieces, received = hashlib.sha256(), LogPieces(after), list[int]()

    def watch(chunk: bytes) -> None:
        digest.update(chunk)
        received.append(len(chunk))

    stored = StoredLog.of(place, row).pieces(watch)
    for piece in _read_ahead(stored) if ahead else stored:
        while received:
            progress(received.pop())
        found = pieces.take(piece)
        if pieces.problem:
            raise Damaged(pieces.problem, subject=name)
        yield from found
    if pieces.end_problem():
        raise Damaged(pieces.end_problem(), subject=name)
    if digest.hexdigest() != row.sha256:
        raise Damaged("the bytes are not those that were written", subject=name)


def _read_ahead(pieces: Iterator[memoryview]) -> Iterator[memoryview]:
    def following() -> memoryview | None:
        return next(pieces, None)

    with ThreadPoolExecutor(1) as pool:
        coming = pool.submit(following)
        while (piece := coming.result()) is not None:
            coming = pool.submit(following)
            yield piece


class LogPieces:
    """Walks a log that is read in pieces. All offsets are greater than `after`.

    Only a batch that two pieces share is copied into one buffer; all others stay in theirs.
    """

    def __init__(self, after: int = -1) -> None:
        self._rest: Bytes = b""
        self._after = after
        self.problem = ""

    def take(self, piece: Bytes) -> list[tuple[Bytes, Batches]]:
        """Walk all whole batches. After the first problem nothing more is returned."""
        if not len(self._rest):
            return self._walk(piece)
        cut = _missing(self._rest, piece)
        across = self._walk(b"".join((self._rest, piece[:cut])))
        return [*across, *self._walk(piece[cut:])] if cut < len(piece) else across

    def _walk(self, buffer: Bytes) -> list[tuple[Bytes, Batches]]:
        if self.problem:
            return []
        walked = walk(buffer, self._after)
        batches, broken = walked.batches, first_broken(buffer, walked.batches)
        if broken is not None:
            offset, batches = int(batches.base_offsets[broken]), batches[:broken]
            self.problem = f"the batch at offset {offset} does not have the CRC-32C of its header"
        if len(batches):
            self._after = int(batches.last_offsets[-1])
        if not self.problem and walked.stop not in (WalkEnd.END, WalkEnd.TORN):
            self.problem = f"after offset {self._after}: {walked.reason}"
        self._rest = buffer[walked.stopped_at :]
        if len(self._rest) > _LARGEST_BATCH:
            self.problem = self.problem or f"after offset {self._after}: a batch without end"
        return [(buffer, batches)]

    def put_back(self, most: int) -> int:
        """Drop the unfinished batch at the end of the last piece, if it has at most `most` bytes.

        Returns how many bytes were dropped: the next piece has to contain them again.
        """
        size = len(self._rest)
        if size > most:
            return 0
        self._rest = b""
        return size

    def end_problem(self) -> str:
        return f"after offset {self._after}: the last batch is cut off" if len(self._rest) else ""


def _missing(rest: Bytes, piece: Bytes) -> int:
    """How many bytes of a piece complete the batch that begins with the rest; all of them if that is not known."""
    start = bytes(rest[:OVERHEAD_BYTES]) + bytes(piece[:OVERHEAD_BYTES])
    size = OVERHEAD_BYTES + int.from_bytes(start[8:OVERHEAD_BYTES], "big", signed=True)
    return min(size - len(rest), len(piece)) if size > len(rest) else len(piece)
