"""What is sent for an archived log, against the slow reader: the records of the view, and no others, in any pieces."""

from dataclasses import replace

from hypothesis import given
from hypothesis import strategies as st

from logkeep.formats.kafka.batches import BatchStretch, walk
from logkeep.formats.kafka.outgoing import OffsetHole, Outgoing, outgoing, stamp
from logkeep.formats.kafka.record_view import View, visible_records
from logkeep.formats.kafka.transactions import AbortedRange, SettledTransactions, UnendedTransaction
from tests.property.untimed import many, untimed
from tests.support.kafka.slow_batches import (
    APPEND_TIME,
    CONTROL,
    DELETE_HORIZON,
    TRANSACTIONAL,
    Seen,
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
def _logs(draw: st.DrawFn) -> list[Source]:
    found, base = list[Source](), draw(st.integers(0, 20))
    for _ in range(draw(st.integers(0, 8))):
        found.append(draw(_source(base)))
        base += found[-1].last + 1 + draw(st.sampled_from((0, 0, 0, 1, 9)))
    return found


@st.composite
def _views(draw: st.DrawFn) -> View:
    start, size = draw(st.integers(0, 60)), draw(st.one_of(st.integers(0, 90), st.just(1000)))
    return View(start, start + size, draw(st.sampled_from((SETTLED, None))), draw(st.booleans()))


def _stretches(log: list[Source], together: int) -> list[BatchStretch]:
    """Each in a buffer of its own."""
    found = []
    for at in range(0, len(log), together):
        data = b"".join(source.encode() for source in log[at : at + together])
        found.append(BatchStretch(data, walk(data).batches))
        assert len(found[-1].batches) == len(log[at : at + together])
    return found


def _expected(log: list[Source], view: View) -> list[tuple[int, Seen]]:
    counting = [s for s in log if s.counts or (view.settled is None and not s.attributes & CONTROL)]
    return [(o, seen) for source in counting for o, seen in source.seen() if view.start <= o < view.end]


def _sent(parts: list[Outgoing | OffsetHole]) -> list[Sent]:
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


def _offsets(parts: list[Outgoing | OffsetHole]) -> list[int]:
    runs = [run for part in parts if isinstance(part, Outgoing) for run in part.runs.tolist()]
    return [first + i for first, count in runs for i in range(count)]


@many
@given(_logs(), _views(), st.integers(1, 8))
def test_the_records_of_the_view_are_sent_and_no_others(log: list[Source], view: View, together: int) -> None:
    expected = _expected(log, view)
    parts = list(outgoing(_stretches(log, together), view))
    sent = _sent(parts)
    assert [seen for batch in sent for seen in batch.records] == [seen for _, seen in expected]
    assert _offsets(parts) == [offset for offset, _ in expected]
    before = 0
    for batch in sent:
        assert (batch.base_offset, batch.leader_epoch, batch.producer) == (0, -1, (PRODUCER, EPOCH))
        assert batch.attributes & ~7 == 0
        assert batch.sequence == before
        before += len(batch.records)
    firsts = [first for part in parts if isinstance(part, Outgoing) for first in part.first_offsets.tolist()]
    counts = [count for part in parts if isinstance(part, Outgoing) for count in part.records.tolist()]
    assert counts == [len(batch.records) for batch in sent]
    assert firsts == [expected[sum(counts[:i])][0] for i in range(len(counts))]


@untimed
@given(_logs(), _views(), st.integers(1, 8), st.integers(1, 8), st.integers(1, 500))
def test_pieces_of_the_archive_decide_nothing(
    log: list[Source], view: View, together: int, otherwise: int, chunk_bytes: int
) -> None:
    one = list(outgoing(_stretches(log, together), view))
    two = list(outgoing(_stretches(log, otherwise), view, chunk_bytes))
    assert _sent(one) == _sent(two)
    assert _offsets(one) == _offsets(two)
    assert [part for part in one if isinstance(part, OffsetHole)] == [
        part for part in two if isinstance(part, OffsetHole)
    ]
    holes_after = [len(_offsets(one[:i])) for i, part in enumerate(one) if isinstance(part, OffsetHole)]
    assert holes_after == [len(_offsets(two[:i])) for i, part in enumerate(two) if isinstance(part, OffsetHole)]


@untimed
@given(_logs(), _views(), st.integers(1, 8))
def test_with_offsets_kept_records_and_holes_tile_the_range(log: list[Source], view: View, together: int) -> None:
    view = replace(view, keep_offsets=True)
    at = view.start
    before_was_hole = False
    for part in outgoing(_stretches(log, together), view):
        if isinstance(part, OffsetHole):
            assert not before_was_hole, "two holes side by side are one"
            assert part.length > 0
            assert part.start == at
            at += part.length
        else:
            ((start, count),) = part.runs.tolist()
            assert (start, count) == (at, part.total_records)
            assert part.first_offsets.tolist() == [at + sum(part.records.tolist()[:i]) for i in range(len(part))]
            at += count
        before_was_hole = isinstance(part, OffsetHole)
    assert at == max(view.end, view.start)


@untimed
@given(_logs(), _views())
def test_what_can_be_sent_as_it_is_keeps_its_bytes(log: list[Source], view: View) -> None:
    view = replace(view, settled=None)
    sent: dict[int, Sent] = {}
    for part in outgoing(_stretches(log, 8), view):
        if isinstance(part, Outgoing):
            stamp(part, PRODUCER, EPOCH, 0)
            sent |= {first: read_sent(bytes(part.batch(i))) for i, first in enumerate(part.first_offsets.tolist())}
    for source in log:
        dense = len(source.records) == source.last + 1 and not source.attributes & (APPEND_TIME | CONTROL)
        if dense and view.start <= source.base and source.base + source.last < view.end:
            batch = sent[source.base]
            assert batch.section == source.section
            assert (batch.base_time_ms, batch.max_time_ms) == (source.base_time_ms, source.max_time_ms)
            assert batch.attributes == source.attributes & 7


@untimed
@given(_logs(), _views(), st.integers(1, 8))
def test_the_records_that_a_proof_reads_are_the_same(log: list[Source], view: View, together: int) -> None:
    found = []
    for part in visible_records(_stretches(log, together), view):
        rows = range(len(part))
        seen = [(int(part.times_ms[i]), part.key(i), part.value(i), tuple(part.headers(i))) for i in rows]
        found += list(zip(part.offsets.tolist(), seen, strict=True))
    assert found == _expected(log, view)
