"""A partition's log in a list. A crash may drop what is not synced; a new term fences old leaders."""

from collections.abc import Iterator, Sequence
from random import Random

from logkeep.checkpoint.records import Kind, Record
from logkeep.errors import ObjectMissing, PartitionFenced
from logkeep.formats.plain_batches import BatchRecord, encode_batch

FENCED = "another leader has the partition"
HOLE = Record(Kind.IGNORED, None, b"", ())
"""In the place of a record that a restored log does not have."""


class Deposed(Exception):
    """Another leader has the partition."""


class Compacted(Exception):
    """The position is no longer in the log."""


class SimLog:
    """`everything` keeps what compaction removes: the judge reads it, no leader does."""

    def __init__(self, choose: Random) -> None:
        self.everything: list[Record] = []
        self.start = 0
        self.term = 0
        self._choose = choose
        self._synced = 0
        self._batch_ends: list[int] = []

    @property
    def end(self) -> int:
        return len(self.everything)

    def append(self, term: int, records: Sequence[Record], now_ms: int) -> list[Record]:
        self._check(term)
        stored = [record.at(len(self.everything) + number, now_ms) for number, record in enumerate(records)]
        self.everything.extend(stored)
        self._batch_ends.append(self.end)
        return stored

    def sync(self, term: int) -> None:
        self._check(term)
        self._keep(self.end)

    def take_over(self) -> int:
        """A new leader: of the batches that were not synced some prefix is there. The new term."""
        ends = [self._synced, *(end for end in self._batch_ends if end > self._synced)]
        self._keep(self._choose.choice(ends))
        self.term += 1
        return self.term

    def read(self, position: int) -> Record | None:
        if position < self.start:
            raise Compacted(f"{position} is before {self.start}")
        return self.everything[position] if position < self.end else None

    def compact(self, before: int) -> None:
        self.start = max(self.start, min(before, self._synced))

    def _keep(self, end: int) -> None:
        del self.everything[end:]
        self._synced, self._batch_ends = end, []

    def _check(self, term: int) -> None:
        if term != self.term:
            raise Deposed(f"term {term} after {self.term}")

    def fill(self, records: Sequence[Record], start: int) -> None:
        """A restored log. What was compacted before its start is not known here."""
        self.everything = [HOLE] * start + list(records)
        self.start, self._synced, self._batch_ends = start, self.end, []


class TermLog:
    """The log as the leader of one term sees it: see `PartitionLog`. Every record is a batch."""

    def __init__(self, log: SimLog, term: int) -> None:
        self._log, self.term, self._start = log, term, log.start

    @property
    def start(self) -> int:
        """A deposed leader does not know what the next one has removed."""
        if self.term == self._log.term:
            self._start = self._log.start
        return self._start

    @property
    def end(self) -> int:
        return self._log.end

    @property
    def size_bytes(self) -> int:
        return self.size_from(self.start)

    def size_from(self, position: int) -> int:
        return sum(len(record.value) for record in self._log.everything[position:])

    def append(self, records: Sequence[Record]) -> int:
        raise NotImplementedError("the simulated leader appends by itself")

    def read(self, start: int, most_bytes: int) -> list[Record]:
        raise NotImplementedError("the simulated leader reads by itself")

    def batch_start(self, position: int) -> int:
        return min(position, self.end)

    def cut_end(self, create: int) -> int:
        return create + 1

    def batches(self, start: int, end: int) -> Iterator[bytes]:
        for position in range(start, end):
            try:
                record = self._log.read(position)
            except Compacted as error:
                if self.term != self._log.term:
                    raise PartitionFenced(FENCED) from error
                raise ObjectMissing(str(error)) from error
            if record is not None:
                plain = BatchRecord(record.key, record.value, record.headers, record.timestamp_ms)
                yield encode_batch(position, self.term, [plain])

    def compact(self, before: int) -> int:
        self._log.compact(before)
        return self.start

    def close(self) -> None:
        """There is nothing to release."""
