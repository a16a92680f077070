"""Logs of every shape for Hypothesis, as bytes and as plain records: the slow judge of what reads archives."""

from collections.abc import Sequence
from dataclasses import dataclass

from hypothesis import strategies as st

from logkeep.formats.kafka.batches import APPEND_TIME, CONTROL, DELETE_HORIZON, TRANSACTIONAL
from tests.support.kafka.slow_records import Slow, batch_of, gzipped

GZIP = 1
MARKER = b"\0\0\0"


@dataclass(frozen=True)
class Seen:
    """A record as a consumer of everything sees it."""

    offset: int
    time_ms: int
    record: Slow
    control: bool
    transactional: bool
    producer: int = -1


@dataclass(frozen=True)
class ShapedBatch:
    base: int
    delta: int
    attributes: int
    base_time_ms: int
    append_ms: int
    producer: int
    records: tuple[Slow, ...]

    @property
    def last(self) -> int:
        return self.base + self.delta

    @property
    def dense(self) -> bool:
        return len(self.records) == self.delta + 1

    @property
    def seen(self) -> list[Seen]:
        flags = bool(self.attributes & CONTROL), bool(self.attributes & TRANSACTIONAL), self.producer
        return [Seen(self.base + r.delta, self._time(r), r, *flags) for r in self.records]

    def encode(self) -> bytes:
        plain = b"".join(r.encode() for r in self.records)
        largest = max((self._time(r) for r in self.records), default=-1)
        return batch_of(
            self.base, self.records, gzipped(plain) if self.attributes & GZIP else plain,
            attributes=self.attributes, delta=self.delta, base_time_ms=self.base_time_ms,
            max_time_ms=self.append_ms if self.attributes & APPEND_TIME else largest, producer=self.producer,
        )  # fmt: skip

    def _time(self, record: Slow) -> int:
        return self.append_ms if self.attributes & APPEND_TIME else self.base_time_ms + record.time_delta


Shaped = Sequence[ShapedBatch]

_BYTES = st.one_of(st.none(), st.binary(max_size=6))
_HEADERS = st.lists(st.tuples(st.binary(max_size=2), _BYTES), max_size=2).map(tuple)


@st.composite
def shaped_logs(draw: st.DrawFn, most_batches: int = 8) -> Shaped:
    """Holes in and between batches, empty batches, markers, append times, delete horizons, unordered times."""
    found, base = list[ShapedBatch](), draw(st.integers(0, 20))
    for _ in range(draw(st.integers(0, most_batches))):
        base += draw(st.sampled_from((0, 0, 0, 1, 5)))
        batch = draw(_markers(base) if draw(st.integers(0, 5)) == 0 else _data(base))
        found.append(batch)
        base = batch.last + 1
    return found


@st.composite
def _markers(draw: st.DrawFn, base: int) -> ShapedBatch:
    kind = draw(st.integers(0, 1))
    record = Slow(0, 0, MARKER + bytes([kind]), bytes(6))
    return ShapedBatch(
        base, 0, CONTROL | TRANSACTIONAL, draw(st.integers(0, 60)), 0, draw(st.integers(1, 2)), (record,)
    )


@st.composite
def _data(draw: st.DrawFn, base: int) -> ShapedBatch:
    delta = draw(st.integers(0, 5))
    kept = [d for d in range(delta + 1) if draw(st.integers(0, 4))]
    records = [Slow(d, draw(st.integers(-10, 30)), draw(_BYTES), draw(_BYTES), draw(_HEADERS)) for d in kept]
    bits = draw(st.sets(st.sampled_from((GZIP, APPEND_TIME, TRANSACTIONAL, DELETE_HORIZON)), max_size=2))
    if APPEND_TIME in bits:
        bits -= {DELETE_HORIZON}
    producer = draw(st.integers(1, 2)) if TRANSACTIONAL in bits else -1
    times = draw(st.integers(10, 50)), draw(st.integers(0, 60))
    return ShapedBatch(base, delta, sum(bits), *times, producer, tuple(records))
