"""What a survey reads of an archive, and what it says of one that is damaged."""

import pytest

from logkeep.kafka.restore.facts.survey_task import Cut, LogSurvey, RestoreSurveyUnit, SurveyLog, survey
from logkeep.model.segments import Codec, Segment
from logkeep.repository.chain import layout
from logkeep.repository.chain.commits import SourceRef
from tests.support.kafka.slow_records import Slow, batch_of
from tests.support.kafka.stored_segments import LOG, place, written
from tests.support.metered_store import MeteredStore


def _log(batches: int, size: int = 1000) -> bytes:
    """Ten records in each batch, one millisecond apart."""
    records = [Slow(d, d, b"k", bytes(size)) for d in range(10)]
    return b"".join(batch_of(10 * b, records, base_time_ms=10 * b, max_time_ms=10 * b + 9) for b in range(batches))


def _survey(
    where: SourceRef, segments: list[Segment], until_ms: int | None = None, *, by_record: bool = False
) -> LogSurvey:
    end, objects = segments[-1].end, tuple(segments)
    log = SurveyLog(log=LOG, start=0, end=end, segments=objects, until_ms=until_ms, by_record=by_record)
    (found,) = survey(RestoreSurveyUnit(place=where, logs=(log,)), lambda _: None).logs
    return found


def test_a_point_in_time_costs_indexes_and_one_batch() -> None:
    where = place()
    segments = written(where, _log(300), Codec.NONE, segment_bytes=500_000)
    assert len(segments) > 3
    meter = MeteredStore(where.store)
    found = _survey(SourceRef(meter, where.repository, where.source), segments, until_ms=1234)
    used = meter.meter.usage()
    assert (found.end, found.cut, found.records) == (1234, Cut.MADE, 1234)
    assert used.calls["get_range"] == 2, "the batch is looked into for the time, and for what is before it"
    assert used.bytes_down < 50_000
    assert used.calls["get"] < len(segments), "later indexes are not needed"


def test_without_borders_inside_of_batches_nothing_of_a_log_is_read() -> None:
    where = place()
    segments = written(where, _log(30), Codec.ZSTD, segment_bytes=100_000)
    meter = MeteredStore(where.store)
    found = _survey(SourceRef(meter, where.repository, where.source), segments)
    assert (found.records, found.holes, found.reencoded_bytes) == (300, 0, 0)
    assert "get_range" not in meter.meter.usage().calls


def test_a_time_before_everything_ends_at_the_start() -> None:
    where = place()
    segments = written(where, _log(3), Codec.NONE)
    assert (_survey(where, segments, until_ms=0).cut, _survey(where, segments, until_ms=0).end) == (Cut.BEFORE, 0)
    assert (_survey(where, segments, until_ms=30).cut, _survey(where, segments, until_ms=30).end) == (Cut.BEHIND, 30)


def test_what_is_left_out_makes_holes_and_costs_indexes_alone() -> None:
    """Every second record is late: the plan must know how many holes that may make, before it promises a time."""
    where = place()
    mixed = [Slow(d, 500 * (d % 2), b"k", b"v") for d in range(1000)]
    log = batch_of(0, mixed, base_time_ms=0, max_time_ms=500) + batch_of(
        1000, [Slow(0, 0, b"k", b"v")], base_time_ms=9, max_time_ms=9
    )
    segments = written(where, log, Codec.NONE)
    meter = MeteredStore(where.store)
    found = _survey(SourceRef(meter, where.repository, where.source), segments, 500, by_record=True)
    assert (found.cut, found.end, found.holes, found.left_out) == (Cut.MADE, 1001, 500, 1000)
    assert found.records == 1000
    assert 0 < found.reencoded_bytes < found.bytes, "of the first batch"
    assert "get_range" not in meter.meter.usage().calls
    whole = _survey(where, segments, 501, by_record=True)
    assert (whole.cut, whole.holes, whole.left_out, whole.records) == (Cut.BEHIND, 0, 0, 1001)


def test_batches_that_are_late_as_a_whole_are_one_hole() -> None:
    where = place()
    lone = b"".join(batch_of(o, [Slow(0, 0, b"k", b"v")], base_time_ms=o, max_time_ms=o) for o in range(50))
    found = _survey(where, written(where, lone, Codec.NONE), 10, by_record=True)
    assert (found.records, found.left_out, found.holes, found.missing) == (10, 40, 1, 40)


def test_a_time_before_everything_is_known_record_by_record_too() -> None:
    where = place()
    segments = written(where, _log(300, size=10), Codec.NONE)
    meter = MeteredStore(where.store)
    found = _survey(SourceRef(meter, where.repository, where.source), segments, 0, by_record=True)
    assert (found.cut, found.end) == (Cut.BEFORE, 3000)
    assert meter.meter.usage().calls["get_range"] <= 16, "no archive is read for that"
    assert _survey(where, segments, 1, by_record=True).cut is Cut.MADE


def test_an_early_record_behind_a_late_one_comes_back() -> None:
    where = place()
    inner = batch_of(0, [Slow(0, 0, b"k", b"v"), Slow(1, -9, b"k", b"v")], base_time_ms=20, max_time_ms=20)
    assert _survey(where, written(where, inner, Codec.NONE), 15, by_record=True).cut is Cut.MADE


def test_an_index_of_another_log_is_not_believed() -> None:
    where, other = place(), place()
    (segment,) = written(where, _log(3), Codec.NONE)
    (stranger,) = written(other, _log(2, 2000), Codec.NONE)
    name = layout.index_of("prod", LOG, segment.first, segment.token)
    where.store.delete(name)
    where.store.put_new(name, other.store.get(layout.index_of("prod", LOG, stranger.first, stranger.token), 1 << 20))
    found = _survey(where, [segment])
    assert found.records == 30, "not the 20 of that index"


def test_a_damaged_batch_is_told_only_where_it_has_to_be_read() -> None:
    where = place()
    (segment,) = written(where, _log(3), Codec.NONE)
    name = layout.segment("prod", segment)
    data = bytearray(where.store.get(name, 1 << 20))
    data[len(data) // 2] ^= 1
    where.store.delete(name)
    where.store.put_new(name, bytes(data))
    assert _survey(where, [segment], until_ms=5).records == 5
    assert "the batch at offset 10 is not what was written" in _survey(where, [segment], until_ms=15).damage


@pytest.mark.parametrize("codec", [Codec.NONE, Codec.ZSTD])
@pytest.mark.parametrize("lost", [0, 2, 4])
def test_a_lost_object_is_told_before_it_is_read(codec: Codec, lost: int) -> None:
    where = place()
    segments = written(where, _log(50), codec, segment_bytes=100_000)
    assert len(segments) == 5
    name = layout.segment("prod", segments[lost])
    where.store.delete(name)
    meter = MeteredStore(where.store)
    found = _survey(SourceRef(meter, where.repository, where.source), segments)
    assert name in found.damage
    assert "does not exist" in found.damage
    assert meter.meter.usage().calls["list"] == 1, "one question for all of them"
    unseen = SurveyLog(log=LOG, start=0, end=500, segments=tuple(segments), presence=False)
    assert survey(RestoreSurveyUnit(place=where, logs=(unseen,)), lambda _: None).logs[0].damage == ""
    earlier = _survey(where, segments, until_ms=segments[lost].start - 5) if lost else None
    assert earlier is None or earlier.damage == "", "what is not needed may be gone"


def test_an_object_of_another_size_is_told() -> None:
    where = place()
    (segment,) = written(where, _log(1), Codec.NONE)
    name = layout.segment("prod", segment)
    data = where.store.get(name, 1 << 20)
    where.store.delete(name)
    where.store.put_new(name, data[:-1])
    assert f"has {len(data) - 1} bytes instead of {len(data)}" in _survey(where, [segment]).damage


def test_a_record_in_the_middle_leaves_a_hole_on_either_side() -> None:
    where = place()
    lone = batch_of(0, [Slow(1, 0, b"k", b"v")], delta=2) + batch_of(3, [Slow(0, 0, b"k", b"v")])
    found = _survey(where, written(where, lone, Codec.NONE))
    assert (found.missing, found.holes) == (2, 2)
    assert 0 < found.reencoded_bytes < found.bytes, "of the first batch"
