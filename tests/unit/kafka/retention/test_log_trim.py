"""From which offset on an archived log stays."""

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from logkeep.kafka.retention.log_trim import (
    BY_AGE,
    BY_FUTURE,
    BY_LOG_START,
    ArchivedRow,
    TrimFacts,
    TrimLimits,
    trim_log,
)
from logkeep.kafka.retention.rules import NO_LIMIT
from logkeep.model.ranges import Range

NOW = 1_000_000
HELD = "backup 7 is held"


def row(start: int, end: int, time_ms: int, size_bytes: int = 100, records: int = 1) -> ArchivedRow:
    return ArchivedRow(start, end, records, size_bytes, time_ms, time_ms)


OLD = (row(0, 10, 100), row(10, 20, 200), row(20, 30, 300))
"""Three segments that are older than any limit here."""


def floor(rows: tuple[ArchivedRow, ...], log_start: int = 30, time_ms: int = 1000, **more: object) -> tuple[int, str]:
    size = more.pop("size_bytes", NO_LIMIT)
    facts = TrimFacts(rows, log_start, int(str(more.pop("newer", 0))), ((100, 500),), **more)  # type: ignore[arg-type]
    found = trim_log(facts, TrimLimits(time_ms, int(str(size))), NOW)
    return found.floor, found.stopped_by


@pytest.mark.parametrize(
    ("why", "found", "expected"),
    [
        ("all of it is old", floor(OLD), (30, "")),
        ("nothing is archived", floor(()), (0, "")),
        ("the log start lies inside a segment", floor(OLD, log_start=25), (20, BY_LOG_START)),
        ("the topic was not cut", floor(OLD, log_start=0), (0, BY_LOG_START)),
        ("a segment is exactly as old as the limit", floor((row(0, 10, NOW - 1000),)), (0, BY_AGE)),
        ("a segment is one ms older", floor((row(0, 10, NOW - 1001),)), (10, "")),
        ("a young one before old ones keeps them", floor((OLD[0], row(10, 20, NOW - 5), OLD[2])), (10, BY_AGE)),
        ("a time in the future keeps what follows", floor((OLD[0], row(10, 20, NOW * 9), OLD[2])), (10, BY_FUTURE)),
        ("no times: the commit of the first backup that has it", floor((row(0, 10, -1),)), (10, "")),
        ("no times, committed a moment ago", floor((row(0, 10, -1),), time_ms=NOW - 400), (0, BY_AGE)),
        ("no times, and no backup reaches its end", floor((row(0, 200, -1),), log_start=300), (0, BY_AGE)),
        ("offsets without records", floor((row(0, 10, -1, 0, 0), OLD[1])), (20, "")),
        ("forever", floor(OLD, time_ms=NO_LIMIT), (0, BY_AGE)),
        ("a hold on the second one", floor(OLD, kept=((Range(15, 18), HELD),)), (10, HELD)),
        ("a hold on a gap", floor((OLD[0], OLD[2]), kept=((Range(12, 18), HELD),)), (10, HELD)),
        ("a hold on later offsets", floor(OLD, kept=((Range(30, 99), HELD),)), (30, "")),
        ("a young log beyond its size", floor(OLD, time_ms=NO_LIMIT, size_bytes=150, newer=60), (20, BY_AGE)),
        ("exactly its size stays", floor(OLD, time_ms=NO_LIMIT, size_bytes=100, newer=100), (30, "")),
        ("one byte less than its size", floor(OLD, time_ms=NO_LIMIT, size_bytes=100, newer=99), (20, BY_AGE)),
        ("size 0 is the log start", floor(OLD, time_ms=NO_LIMIT, size_bytes=0), (30, "")),
        ("copied twice: it counts once", floor((*OLD, row(12, 22, 9)), time_ms=NO_LIMIT, size_bytes=250), (0, BY_AGE)),
        ("an overlapping young one keeps both", floor((row(0, 20, 1), row(10, 30, NOW))), (10, BY_AGE)),
    ],
)  # fmt: skip
def test_what_goes_and_what_keeps_the_next_segment(why: str, found: object, expected: object) -> None:
    assert found == expected, why


@st.composite
def logs(draw: st.DrawFn) -> tuple[TrimFacts, TrimLimits]:
    """Adjoining segments with any times, any log start, holds, limits."""
    rows, at = [], draw(st.integers(0, 5))
    for _ in range(draw(st.integers(0, 8))):
        end = at + draw(st.integers(1, 6))
        times = st.one_of(st.just(-1), st.integers(0, NOW), st.integers(NOW, 2 * NOW))
        rows.append(row(at, end, draw(times), draw(st.integers(0, 50)), draw(st.integers(0, 3))))
        at = end
    kept = [
        (Range(start, start + draw(st.integers(1, 9))), HELD)
        for start in draw(st.lists(st.integers(0, at + 5), max_size=2))
    ]
    reached = tuple((end, draw(st.integers(0, NOW))) for end in sorted(draw(st.lists(st.integers(0, at), max_size=3))))
    facts = TrimFacts(tuple(rows), draw(st.integers(0, at + 3)), draw(st.integers(0, 60)), reached, tuple(kept))
    limits = st.one_of(st.integers(0, NOW), st.just(NO_LIMIT))
    return facts, TrimLimits(draw(limits), draw(st.one_of(st.integers(0, 200), st.just(NO_LIMIT))))


@settings(max_examples=150, deadline=None)
@given(logs())
def test_nothing_that_is_guaranteed_ever_goes(made: tuple[TrimFacts, TrimLimits]) -> None:
    """Every offset that goes was judged alone: by all times up to it, all bytes after it, the log start, the holds."""
    facts, limits = made
    found = trim_log(facts, limits, NOW)
    for each in (r for r in facts.rows if r.start < found.floor):
        assert each.end <= found.floor <= facts.log_start
        assert not any(span.start < found.floor for span, _ in facts.kept)
        before = [r for r in facts.rows if r.start <= each.start and r.records]
        archived = {r: next((ms for end, ms in facts.reached if end >= r.end), NOW) for r in before}
        newest = max((r.max_time_ms if r.max_time_ms >= 0 else archived[r] for r in before), default=-1)
        after = facts.newer_bytes + sum(
            r.plain_bytes for r in facts.rows if each.end <= r.start < r.end <= facts.log_start
        )
        old = limits.time_ms < NO_LIMIT and newest + limits.time_ms < NOW
        assert old or (limits.size_bytes < NO_LIMIT and after >= limits.size_bytes)
    stays = [r for r in facts.rows if r.start >= found.floor]
    assert bool(stays) == bool(found.stopped_by)
