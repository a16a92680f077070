"""A survey from indexes says what a slow look at every record says, with and without its indexes."""

from itertools import pairwise

from hypothesis import given
from hypothesis import strategies as st

from logkeep.formats.kafka.batches import APPEND_TIME, CONTROL, DELETE_HORIZON, TRANSACTIONAL
from logkeep.kafka.restore.facts.survey_task import Cut, LogSurvey, RestoreSurveyUnit, SurveyLog, survey, survey_units
from logkeep.model.segments import Codec, Segment
from logkeep.repository.chain import layout
from logkeep.repository.chain.commits import SourceRef
from tests.property.untimed import untimed
from tests.support.kafka.handmade_batches import dense
from tests.support.kafka.log_strategies import Seen, Shaped, shaped_logs
from tests.support.kafka.stored_segments import LOG, place, written


def _stored(where: SourceRef, log: Shaped, codec: Codec, segment_bytes: int) -> list[Segment]:
    data = b"".join(batch.encode() for batch in log)
    return written(where, data, codec, chunk=300, segment_bytes=segment_bytes)


def _surveyed(where: SourceRef, segments: list[Segment], **wanted: int | None) -> LogSurvey:
    log = SurveyLog(log=LOG, segments=tuple(segments), **wanted)  # type: ignore[arg-type]  # the rest are numbers
    (one,) = survey(RestoreSurveyUnit(place=where, logs=(log,)), lambda _: None).logs
    return one


def _end(log: Shaped, start: int, end: int, until_ms: int | None) -> int:
    """What a broker would answer, else the end."""
    records = [s for batch in log for s in batch.seen if start <= s.offset < end]
    late = [s.offset for s in records if until_ms is not None and s.time_ms >= until_ms]
    found = late[0] if late else end
    return found if not late or any(s.offset < found and not s.control for s in records) else start


def _runs(visible: list[Seen], start: int, end: int) -> int:
    offsets = [start - 1, *(s.offset for s in visible), end]
    return sum(b > a + 1 for a, b in pairwise(offsets))


@untimed
@given(shaped_logs(), st.data())
def test_a_survey_is_what_a_look_at_every_record_says(log: Shaped, data: st.DataObject) -> None:
    where, last = place(), (log[-1].last + 1 if log else 10)
    codec = data.draw(st.sampled_from((Codec.NONE, Codec.ZSTD)))
    segments = _stored(where, log, codec, data.draw(st.sampled_from((100, 400, 1 << 20))))
    start = data.draw(st.integers(0, last))
    whole_end = data.draw(st.integers(start, last))
    until_ms = data.draw(st.one_of(st.none(), st.integers(0, 80)))
    for segment in (s for s in segments if data.draw(st.integers(0, 3)) == 0):
        name = layout.index_of("prod", LOG, segment.first, segment.token)
        spoilt = where.store.get(name, 1 << 20)[:-1]
        where.store.delete(name)
        if data.draw(st.booleans()):
            where.store.put_new(name, spoilt)
    found = _surveyed(where, segments, start=start, end=whole_end, until_ms=until_ms)
    end = _end(log, start, whole_end, until_ms)
    assert (found.damage, found.start, found.end) == ("", start, end)
    inside = [s for batch in log for s in batch.seen if start <= s.offset < end]
    visible = [s for s in inside if not s.control]
    assert found.records == len(visible)
    assert found.missing == end - start - len(visible)
    assert _runs(visible, start, end) <= found.holes <= found.missing
    sent = [b for b in log if not b.attributes & CONTROL and any(start <= s.offset < end for s in b.seen)]
    again = [b for b in sent if not b.dense or b.attributes & APPEND_TIME or b.base < start or b.last >= end]
    assert found.batches == len(sent)
    assert found.bytes == sum(len(b.encode()) for b in sent)
    assert found.largest_batch_bytes == max((len(b.encode()) for b in sent), default=0)
    assert found.reencoded_bytes == sum(len(b.encode()) for b in again)
    assert found.transactional_batches == sum(bool(b.attributes & TRANSACTIONAL) for b in sent)


@untimed
@given(shaped_logs(), st.integers(0, 80), st.data())
def test_what_is_left_out_record_by_record_is_bounded_from_above(
    log: Shaped, until_ms: int, data: st.DataObject
) -> None:
    """No more comes back than is said, and no more holes have to be filled; and a time before everything is known."""
    where, last = place(), (log[-1].last + 1 if log else 10)
    segments = _stored(where, log, Codec.NONE, data.draw(st.sampled_from((100, 400, 1 << 20))))
    start = data.draw(st.integers(0, last))
    end = data.draw(st.integers(start, last))
    found = _surveyed(where, segments, start=start, end=end, until_ms=until_ms, by_record=True)
    assert (found.damage, found.start, found.end) == ("", start, end)
    inside = [s for batch in log for s in batch.seen if start <= s.offset < end and not s.control]
    back = [s for s in inside if s.time_ms < until_ms]
    assert len(back) <= found.records <= len(inside)
    assert len(inside) - len(back) <= found.left_out
    assert end - start - len(back) <= found.missing <= end - start
    assert _runs(back, start, end) <= found.holes <= found.missing
    if found.cut is Cut.BEFORE:
        assert not back
    elif inside and not back:
        begin = [b for b in log if not b.attributes & (CONTROL | APPEND_TIME | DELETE_HORIZON)]
        assert found.cut is Cut.BEHIND or any(b.base_time_ms < until_ms for b in begin), "no header says so"
    if found.cut is Cut.BEHIND:
        assert found.left_out == 0
        assert back == inside


@untimed
@given(shaped_logs(), st.integers(0, 60))
def test_an_end_by_offset_is_clamped_and_told(log: Shaped, until: int) -> None:
    where = place()
    segments = _stored(where, log, Codec.NONE, 400)
    end = log[-1].last + 1 if log else 10
    found = _surveyed(where, segments, start=0, end=end, until_offset=until)
    records = sum(s.offset < until and not s.control for b in log for s in b.seen)
    expected = Cut.BEHIND if until >= end else Cut.MADE if records else Cut.BEFORE
    assert (found.cut, found.records) == (expected, records)
    assert found.end == {Cut.BEHIND: end, Cut.MADE: until, Cut.BEFORE: 0}[expected]


@given(st.lists(st.integers(0, 300), max_size=10))
def test_units_hold_every_log_once_and_in_order(sizes: list[int]) -> None:
    where = place()
    segments = tuple(written(where, dense(0, 3).encode(), Codec.NONE))
    logs = [SurveyLog(log=LOG, start=i, end=i, segments=segments * size) for i, size in enumerate(sizes)]
    units = survey_units(where, logs)
    assert [log.start for unit in units for log in unit.logs] == list(range(len(sizes)))
    assert all(sum(len(log.segments) for log in unit.logs) <= 256 or len(unit.logs) == 1 for unit in units)
