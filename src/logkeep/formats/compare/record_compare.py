"""Compares the records of two logs in one pass: the digests of both, and how far they certainly agree.

`PairedComparison` aligns the batches of both logs by the number of records before them, so it does not matter which
offsets they have, nor that one log has several batches where the other has one. Where a pair has the same record bytes
and times, both digests come from one decoding; everything else is decoded on both sides. When the two no longer have a
common border, each is read on by itself: the digests are right whatever the logs hold. Memory is a few stretches of
each log and the records that a few thousand batches decode to.

`StreamComparison` is for records that were spread over other partitions: no batch of one side is a batch of the other,
so both sides are decoded, one after the other.
"""

from collections import deque
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from functools import reduce

import numpy as np
import numpy.typing as npt

from logkeep.errors import Damaged
from logkeep.formats.compare.digest import NOTHING, Digest, digest_of, with_offsets
from logkeep.formats.compare.log_compare_kernels import same_batches
from logkeep.formats.kafka.batches import (
    APPEND_TIME,
    CODEC_MASK,
    HEADER_BYTES,
    Batches,
    BatchStretch,
    Bytes,
    Headers,
    Longs,
)
from logkeep.formats.kafka.record_view import View, chosen, readable
from logkeep.formats.kafka.records import RecordColumns

Flags = npt.NDArray[np.bool_]
RecordSource = Callable[[], Iterator[RecordColumns]]
"""Opens a stream of records."""

_MOST_PENDING_BYTES = 48 << 20
_WORTHWHILE_BATCHES = 4
"""Shorter runs of equal batches are decoded twice: switching costs more."""


@dataclass(frozen=True)
class CountedBatches:
    """Batches in a buffer that belong to the view, and how many of their records do."""

    buffer: Bytes
    batches: Batches
    counts: Longs

    def __getitem__(self, some: slice) -> "CountedBatches":
        return CountedBatches(self.buffer, self.batches[some], self.counts[some])

    def copied(self) -> "CountedBatches":
        """The same with a copy of the bytes."""
        start, end = self.batches.start, self.batches.end
        return CountedBatches(
            bytes(memoryview(self.buffer)[start:end]),
            Batches(self.batches.headers, self.batches.positions - start),
            self.counts,
        )


@dataclass(frozen=True)
class LogSide:
    """One of two logs. A stretch may become invalid when the next one is requested."""

    stretches: Iterator[BatchStretch]
    view: View
    counted: Callable[[Batches], Flags]
    """Which batches of the view's range count."""
    name: str
    """Names the log in errors."""

    def parts(self) -> Iterator[CountedBatches]:
        """Raises Damaged for a batch on a border that cannot be read."""
        for stretch in self.stretches:
            around = self.view.touching(stretch)
            batches = chosen(around.batches, self.counted(around.batches) & (around.batches.headers["records"] > 0))
            counts = batches.headers["records"].astype(np.int64)
            for at in np.flatnonzero(~self.view.inside(batches)).tolist():
                counts[at] = sum(len(records) for records in self._readable(around.buffer, batches[at : at + 1]))
            some = counts > 0
            if some.any():
                yield CountedBatches(around.buffer, chosen(batches, some), counts[some])

    def records(self, parts: Iterable[CountedBatches]) -> Iterator[RecordColumns]:
        """Each item is valid until the next. Raises Damaged."""
        return (records for part in parts for records in self._readable(part.buffer, part.batches))

    def _readable(self, buffer: Bytes, batches: Batches) -> Iterator[RecordColumns]:
        try:
            yield from readable(buffer, batches, self.view)
        except Damaged as error:
            raise Damaged(error.what, subject=self.name) from error


@dataclass
class _Pending:
    """Batches of one side that were read and not yet compared."""

    source: Iterator[CountedBatches]
    parts: deque[CountedBatches] = field(default_factory=deque)

    @property
    def records(self) -> int:
        return sum(int(part.counts.sum()) for part in self.parts)

    @property
    def too_much(self) -> bool:
        return sum(int(part.batches.sizes.sum()) for part in self.parts) > _MOST_PENDING_BYTES

    def borders(self) -> Longs:
        return np.cumsum(np.concatenate([part.counts for part in self.parts] or [np.empty(0, np.int64)]))

    def more(self) -> bool:
        """Read the next part. Pending parts are copied first: the reader reuses its buffer."""
        self.parts = deque(part.copied() for part in self.parts)
        part = next(self.source, None)
        if part is not None:
            self.parts.append(part)
        return part is not None

    def take(self, batches: int) -> list[CountedBatches]:
        """Remove this many batches from the front."""
        taken: list[CountedBatches] = []
        while batches:
            part = self.parts.popleft()
            now = min(batches, len(part.batches))
            taken.append(part[:now])
            if now < len(part.batches):
                self.parts.appendleft(part[now:])
            batches -= now
        return taken

    def rest(self) -> Iterator[CountedBatches]:
        while self.parts:
            yield self.parts.popleft()
        yield from self.source


@dataclass
class PairedComparison:
    """Digests of both sides. `run` it once."""

    left: LogSide
    right: LogSide
    left_digest: Digest = NOTHING
    right_digest: Digest = NOTHING
    border: tuple[int, int] = (-1, -1)
    """On each side the offset after the last batch up to which everything agrees; (-1, -1): nothing is known."""
    complete: bool = False
    """Whether both were read to their ends."""
    _agreed: bool = True

    @property
    def same(self) -> bool:
        return self.left_digest.same_content(self.right_digest) and self._same_offsets(
            self.left_digest, self.right_digest
        )

    def run(self) -> "PairedComparison":
        """Raises Damaged if records cannot be read."""
        left, right = _Pending(self.left.parts()), _Pending(self.right.parts())
        while True:
            self._compare(left, right)
            if left.too_much or right.too_much or not (left if left.records <= right.records else right).more():
                break
        self.left_digest = self.left_digest.then(_digest(self.left.records(left.rest())))
        self.right_digest = self.right_digest.then(_digest(self.right.records(right.rest())))
        self.complete = True
        return self

    def _same_offsets(self, one: Digest, other: Digest) -> bool:
        """Offsets are compared only where they had to be kept."""
        return not self.left.view.keep_offsets or one.offsets == other.offsets

    def _compare(self, left: _Pending, right: _Pending) -> None:
        """Compare everything up to the last common border."""
        ours, theirs = left.borders(), right.borders()
        common = np.intersect1d(ours, theirs, assume_unique=True)
        if not len(common):
            return
        ends = np.searchsorted(ours, common) + 1, np.searchsorted(theirs, common) + 1
        window = _Window(left.take(int(ends[0][-1])), right.take(int(ends[1][-1])), *ends)
        for run in window.runs():
            self._add(run)
        if self._agreed:
            self.border = _end_offset(window.left), _end_offset(window.right)

    def _add(self, run: "_Run") -> None:
        one, other = self._digests(run)
        self._agreed = self._agreed and one.same_content(other) and self._same_offsets(one, other)
        self.left_digest, self.right_digest = self.left_digest.then(one), self.right_digest.then(other)

    def _digests(self, run: "_Run") -> tuple[Digest, Digest]:
        if not run.same:
            return _digest(self.left.records(run.left)), _digest(self.right.records(run.right))
        one = other = NOTHING
        bases, places = (np.concatenate([p.batches.base_offsets for p in side]) for side in (run.left, run.right))
        for records in self.left.records(run.left):
            digest = digest_of(records)
            first = int(np.searchsorted(bases, records.batches.base_offsets[0]))
            shifts = (places - bases)[first : first + len(records.batches)]
            one = one.then(digest)
            other = other.then(
                with_offsets(digest, records.offsets + shifts[records.batch]) if shifts.any() else digest
            )
        return one, other


@dataclass
class StreamComparison:
    """Digests of both sides. `run` it once."""

    left: Sequence[RecordSource]
    """Read one after the other."""
    right: RecordSource
    left_digest: Digest = NOTHING
    right_digest: Digest = NOTHING
    shares: tuple[int, ...] = ()
    """How many records each of the left streams has."""
    border: tuple[int, int] = (-1, -1)
    """As in `PairedComparison`: here nothing is known."""
    complete: bool = False
    """Whether both were read to their ends."""

    @property
    def same(self) -> bool:
        return self.left_digest.same_content(self.right_digest)

    def run(self) -> "StreamComparison":
        """Raises Damaged if records cannot be read."""
        for each in self.left:
            one = _digest(each())
            self.left_digest = self.left_digest.then(one)
            self.shares = (*self.shares, one.records)
        self.right_digest = _digest(self.right())
        self.complete = True
        return self


@dataclass(frozen=True)
class _Run:
    """Batches of both sides with the same number of records; `same`: they need not be decoded twice."""

    same: bool
    left: list[CountedBatches]
    right: list[CountedBatches]


@dataclass(frozen=True)
class _Window:
    """Both sides up to a common border. The ends count the batches before each common border inside."""

    left: list[CountedBatches]
    right: list[CountedBatches]
    left_ends: Longs
    right_ends: Longs

    def runs(self) -> Iterator[_Run]:
        same = self._same()
        changes = np.flatnonzero(np.diff(same.astype(np.int8))) + 1
        for first, last in zip([0, *changes.tolist()], [*changes.tolist(), len(same)], strict=True):
            yield _Run(
                bool(same[first]),
                _slice(self.left, self.left_ends, first, last),
                _slice(self.right, self.right_ends, first, last),
            )

    def _same(self) -> Flags:
        """For each stretch between common borders, whether it is one batch on both sides with the same records."""
        left, right = _Columns.of(self.left), _Columns.of(self.right)
        ours, theirs = self.left_ends - 1, self.right_ends - 1
        same: Flags = (np.diff(self.left_ends, prepend=0) == 1) & (np.diff(self.right_ends, prepend=0) == 1)
        same &= _alike(left.headers[ours], right.headers[theirs])
        same &= (left.counts[ours] == left.headers["records"][ours]) & (right.counts[theirs] == left.counts[ours])
        for at in np.unique(left.part[ours][same]).tolist():
            for there in np.unique(right.part[theirs][same]).tolist():
                both = np.flatnonzero(same & (left.part[ours] == at) & (right.part[theirs] == there))
                same[both] = _same_records(
                    self.left[at].buffer, left.positions[ours][both],
                    self.right[there].buffer, right.positions[theirs][both], left.sizes[ours][both],
                )  # fmt: skip
        return _worthwhile(same)


@dataclass(frozen=True)
class _Columns:
    headers: Headers
    positions: Longs
    sizes: Longs
    counts: Longs
    part: Longs

    @classmethod
    def of(cls, parts: Sequence[CountedBatches]) -> "_Columns":
        return cls(
            np.concatenate([p.batches.headers for p in parts]),
            np.concatenate([p.batches.positions for p in parts]),
            np.concatenate([p.batches.sizes for p in parts]),
            np.concatenate([p.counts for p in parts]),
            np.repeat(np.arange(len(parts)), [len(p.batches) for p in parts]),
        )


def _alike(left: Headers, right: Headers) -> Flags:
    """Whether equal record bytes mean equal records, apart from their base offset."""
    codecs = (left["attributes"] & (CODEC_MASK | APPEND_TIME), right["attributes"] & (CODEC_MASK | APPEND_TIME))
    alike: Flags = (codecs[0] == codecs[1]) & ((codecs[0] & APPEND_TIME) == 0)
    for name in ("length", "last_offset_delta", "base_time_ms", "records"):
        alike &= left[name] == right[name]
    return alike


def _same_records(left: Bytes, starts: Longs, right: Bytes, there: Longs, sizes: Longs) -> Flags:
    same = np.zeros(len(starts), np.uint8)
    same_batches(_plain(left), starts + HEADER_BYTES, _plain(right), there + HEADER_BYTES, sizes - HEADER_BYTES, same)
    return same.astype(np.bool_)


def _worthwhile(same: Flags) -> Flags:
    """Without runs that are too short, unless everything is equal."""
    if same.all():
        return same
    changes = np.flatnonzero(np.diff(same.astype(np.int8))) + 1
    lengths = np.diff(np.concatenate(([0], changes, [len(same)])))
    long_enough: Flags = np.repeat(lengths >= _WORTHWHILE_BATCHES, lengths)
    return same & long_enough


def _slice(parts: Sequence[CountedBatches], ends: Longs, first: int, last: int) -> list[CountedBatches]:
    """The batches between the borders before `first` and after `last - 1`."""
    start, end, found = int(ends[first - 1]) if first else 0, int(ends[last - 1]), list[CountedBatches]()
    for part in parts:
        if start < len(part.batches) and end > 0:
            found.append(part[max(start, 0) : end])
        start, end = start - len(part.batches), end - len(part.batches)
    return found


def _digest(records: Iterator[RecordColumns]) -> Digest:
    return reduce(Digest.then, map(digest_of, records), NOTHING)


def _end_offset(parts: Sequence[CountedBatches]) -> int:
    return int(parts[-1].batches.last_offsets[-1]) + 1


def _plain(buffer: Bytes) -> npt.NDArray[np.uint8]:
    return np.frombuffer(memoryview(buffer).toreadonly(), np.uint8)
