"""What is sent for an archived log, against the slow reader: the records of the view, and no others, in any pieces."""

from dataclasses import replace

from hypothesis import given
from hypothesis import strategies as st

from logkeep.formats.kafka.record_view import View, visible_records
from logkeep.formats.kafka.restore.send_batches import OffsetHole, Outgoing, outgoing, stamp
from tests.property.outgoing_logs import EPOCH, PRODUCER, logs, offsets, sent_batches, stretches, views
from tests.property.untimed import many, untimed
from tests.support.kafka.slow_batches import APPEND_TIME, CONTROL, Seen, Sent, Source, read_sent


def _expected(log: list[Source], view: View) -> list[tuple[int, Seen]]:
    counting = [s for s in log if s.counts or (view.settled is None and not s.attributes & CONTROL)]
    return [(o, seen) for source in counting for o, seen in source.seen() if view.start <= o < view.end]


@many
@given(logs(), views(), st.integers(1, 8))
def test_the_records_of_the_view_are_sent_and_no_others(log: list[Source], view: View, together: int) -> None:
    expected = _expected(log, view)
    parts = list(outgoing(stretches(log, together), view))
    sent = sent_batches(parts)
    assert [seen for batch in sent for seen in batch.records] == [seen for _, seen in expected]
    assert offsets(parts) == [offset for offset, _ in expected]
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
@given(logs(), views(), st.integers(1, 8), st.integers(1, 8), st.integers(1, 500))
def test_pieces_of_the_archive_decide_nothing(
    log: list[Source], view: View, together: int, otherwise: int, chunk_bytes: int
) -> None:
    one = list(outgoing(stretches(log, together), view))
    two = list(outgoing(stretches(log, otherwise), view, chunk_bytes))
    assert sent_batches(one) == sent_batches(two)
    assert offsets(one) == offsets(two)
    assert [part for part in one if isinstance(part, OffsetHole)] == [
        part for part in two if isinstance(part, OffsetHole)
    ]
    holes_after = [len(offsets(one[:i])) for i, part in enumerate(one) if isinstance(part, OffsetHole)]
    assert holes_after == [len(offsets(two[:i])) for i, part in enumerate(two) if isinstance(part, OffsetHole)]


@untimed
@given(logs(), views(), st.integers(1, 8))
def test_with_offsets_kept_records_and_holes_tile_the_range(log: list[Source], view: View, together: int) -> None:
    view = replace(view, keep_offsets=True)
    at = view.start
    before_was_hole = False
    for part in outgoing(stretches(log, together), view):
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
@given(logs(), views())
def test_what_can_be_sent_as_it_is_keeps_its_bytes(log: list[Source], view: View) -> None:
    view = replace(view, settled=None)
    sent: dict[int, Sent] = {}
    for part in outgoing(stretches(log, 8), view):
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
@given(logs(), views(), st.integers(1, 8))
def test_the_records_that_a_proof_reads_are_the_same(log: list[Source], view: View, together: int) -> None:
    found = []
    for part in visible_records(stretches(log, together), view):
        rows = range(len(part))
        seen = [(int(part.times_ms[i]), part.key(i), part.value(i), tuple(part.headers(i))) for i in rows]
        found += list(zip(part.offsets.tolist(), seen, strict=True))
    assert found == _expected(log, view)
