"""Logs of every shape, views of them, and what is sent for them, read by the slow reader."""

from hypothesis import strategies as st

from logkeep.formats.kafka.batches import BatchStretch, walk
from logkeep.formats.kafka.record_view import View
from logkeep.formats.kafka.restore.send_batches import OffsetHole, Outgoing, stamp
from logkeep.formats.kafka.transactions import AbortedRange, SettledTransactions, UnendedTransaction
from tests.support.kafka.slow_batches import (
    APPEND_TIME,
    CONTROL,
    DELETE_HORIZON,
    TRANSACTIONAL,
    Sent,
    Source,
    read_sent,
)
from tests.support.kafka.slow_records import Slow

ABORTED_BY, LEFT_OPEN_BY = 8, 9
"""Producers whose every transaction came to nothing: the view is given, so the log needs no markers that fit."""
SETTLED = SettledTransactions((AbortedRange(0, 2**62, ABORTED_BY),), (UnendedTransaction(0, LEFT_OPEN_BY),))
PRODUCER, EPOCH = 4711, 3

_bytes = st.one_of(st.none(), st.binary(max_size=30))
_headers = st.lists(st.tuples(st.sampled_from((b"", b"a", b"name")), _bytes), max_size=3).map(tuple)
_times = st.one_of(st.just(-1), st.integers(0, 2**41), st.integers(-(2**63), 2**63 - 1))
_kinds = st.sampled_from((0, 0, 0, APPEND_TIME, TRANSACTIONAL, DELETE_HORIZON, TRANSACTIONAL | CONTROL))


@st.composite
def _source(draw: st.DrawFn, base: int) -> Source:
    deltas = draw(st.one_of(st.integers(1, 6).map(range), st.sets(st.integers(0, 40), max_size=6).map(sorted)))
    deltas = list(deltas)
    longer = draw(st.sampled_from((0, 0, 0, 2)))
    records = [
        Slow(d, draw(st.integers(-5, 2**20)), draw(_bytes), draw(_bytes), draw(_headers), longer) for d in deltas
    ]
    last = max(deltas, default=0) + draw(st.sampled_from((0, 0, 0, 3)))
    kind, producer = draw(_kinds), draw(st.sampled_from((-1, 1, ABORTED_BY, LEFT_OPEN_BY)))
    counts = not kind & CONTROL and not (kind & TRANSACTIONAL and producer in (ABORTED_BY, LEFT_OPEN_BY))
    attributes = kind | draw(st.integers(0, 4))
    return Source(base, tuple(records), last, attributes, producer, draw(_times), draw(_times), counts)


@st.composite
def logs(draw: st.DrawFn) -> list[Source]:
    found, base = list[Source](), draw(st.integers(0, 20))
    for _ in range(draw(st.integers(0, 8))):
        found.append(draw(_source(base)))
        base += found[-1].last + 1 + draw(st.sampled_from((0, 0, 0, 1, 9)))
    return found


@st.composite
def views(draw: st.DrawFn) -> View:
    start, size = draw(st.integers(0, 60)), draw(st.one_of(st.integers(0, 90), st.just(1000)))
    return View(start, start + size, draw(st.sampled_from((SETTLED, None))), draw(st.booleans()))


def stretches(log: list[Source], together: int) -> list[BatchStretch]:
    """Each in a buffer of its own."""
    found = []
    for at in range(0, len(log), together):
        data = b"".join(source.encode() for source in log[at : at + together])
        found.append(BatchStretch(data, walk(data).batches))
        assert len(found[-1].batches) == len(log[at : at + together])
    return found


def sent_batches(parts: list[Outgoing | OffsetHole]) -> list[Sent]:
    sequence, found = 0, list[Sent]()
    for part in parts:
        if isinstance(part, Outgoing):
            stamp(part, PRODUCER, EPOCH, sequence)
            ends = (part.positions + part.sizes).tolist()
            assert all(end <= start for end, start in zip(ends, part.positions.tolist()[1:], strict=False))
            assert ends[-1] <= len(part.buffer)
            batches = [part.batch(i) for i in range(len(part))]
            assert [each.head + bytes(each.rest) for each in part.ready()] == batches
            found += [read_sent(batch) for batch in batches]
            sequence += part.total_records
    return found


def offsets(parts: list[Outgoing | OffsetHole]) -> list[int]:
    runs = [run for part in parts if isinstance(part, Outgoing) for run in part.runs.tolist()]
    return [first + i for first, count in runs for i in range(count)]
