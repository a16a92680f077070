"""For which times an archive is complete: the cases that the property does not reach."""

from logkeep.formats.kafka.batch_index import index_of
from logkeep.formats.kafka.batches import walk
from logkeep.kafka.group_history.completeness import (
    BEGINNING,
    NEVER,
    ArchivedLogFacts,
    ReadRun,
    TimeSpan,
    complete_around,
    completeness,
    every_record_since,
    nearest_complete,
)
from logkeep.kafka.group_history.log_shape import shape_by_rows, shape_of
from logkeep.kafka.group_history.values import HoleSpan, LogShape
from logkeep.model.ranges import Range
from logkeep.repository.chain import layout
from tests.support.kafka.offsets_log import Event, place, stored

_NONE = Range(0, 0)


def _shape(*holes: HoleSpan) -> LogShape:
    return LogShape(end=100, first_ms=10, last_ms=900, holes=holes)


def _facts(*runs: ReadRun, unproven: Range | None = None, lost: tuple[Range, ...] = ()) -> ArchivedLogFacts:
    return ArchivedLogFacts(runs, unproven, lost, _NONE, 0)


def test_a_hole_matters_until_its_range_was_read() -> None:
    facts = _facts(ReadRun(0, 50, 500, 480), ReadRun(0, 100, 1000, 990))
    log = completeness(_shape(HoleSpan(20, 30, 200)), facts)
    assert [t for t in (199, 200, 499, 500, 990, 991) if log.complete(t)] == [199, 500, 990]
    assert complete_around([log], 150) == TimeSpan(BEGINNING, 199)
    assert complete_around([log], 700) == TimeSpan(500, 990)
    assert complete_around([log], 300) is None
    assert nearest_complete([log], 300) == [199, 500]
    assert (log.sure(300, 29), log.sure(300, 10), log.sure(700, 10)) == (True, False, True)
    assert every_record_since(_shape(HoleSpan(20, 30, 200)), facts) == 500


def test_what_may_lack_a_deletion_is_never_complete_again() -> None:
    runs = (ReadRun(0, 100, 1000, 990),)
    for facts in (_facts(*runs, unproven=Range(20, 40)), _facts(*runs, lost=(Range(25, 26),))):
        log = completeness(_shape(HoleSpan(20, 30, 200)), facts)
        assert (log.complete(199), log.complete(990)) == (True, False)
    dense = completeness(_shape(), _facts(*runs, unproven=Range(0, 100)))
    assert dense.complete(500), "without a hole nothing is missing, whatever the times say"


def test_times_that_are_not_known() -> None:
    """The next backup was later than the read; without any, only what lies before the hole is complete."""
    hole = HoleSpan(20, 30, 200)
    known = completeness(_shape(hole), _facts(ReadRun(0, 50, None, None), ReadRun(0, 100, 1000, 990)))
    assert (known.complete(989), known.complete(990)) == (False, True)
    unknown = completeness(_shape(hole), _facts(ReadRun(0, 100, None, None)))
    assert (unknown.complete(199), unknown.complete(900), unknown.until_ms) == (True, False, 900)


def test_offsets_below_the_log_start() -> None:
    runs = (ReadRun(40, 100, 1000, 990),)
    lost = completeness(_shape(), ArchivedLogFacts(runs, None, (), Range(0, 40), NEVER))
    assert not lost.complete(500)
    assert (lost.sure(500, 40), lost.sure(500, 39)) == (True, True)
    replaced = completeness(_shape(), ArchivedLogFacts(runs, None, (), Range(0, 40), 300))
    assert (replaced.complete(299), replaced.complete(300)) == (False, True)
    assert every_record_since(_shape(), ArchivedLogFacts(runs, None, (), Range(0, 40), NEVER)) == 10


def test_a_lost_index_is_replaced_by_reading() -> None:
    where = place()
    events = {0: Event(100, "a", 1), 3: Event(105, "b", 2), 4: Event(110, "c", 3)}
    segments = stored(where, [(at, e.encode(at)) for at, e in events.items()], 6, 1 << 20)
    data = b"".join(e.encode(at) for at, e in events.items())
    whole = Range(0, 6)
    expected = shape_by_rows(segments, whole, 105, lambda _: index_of(walk(data).batches).rows)
    assert expected.end == 4
    assert expected.holes == (HoleSpan(1, 3, 100), HoleSpan(5, 6, 110))
    where.store.delete(layout.index_of(where.source, segments[0].log, segments[0].first, segments[0].token))
    assert shape_of(where, segments, whole, 105) == expected
