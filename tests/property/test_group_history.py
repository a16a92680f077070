"""Groups at any time, against a slow judge: states, endings of commits, and when a cleaned archive is complete."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from functools import partial

import msgspec
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from logkeep.formats.kafka.batch_index import index_of
from logkeep.formats.kafka.batches import walk
from logkeep.kafka.group_history.completeness import ArchivedLogFacts, ReadRun, complete_around, completeness
from logkeep.kafka.group_history.history_task import read_history
from logkeep.kafka.group_history.log_shape import shape_by_rows
from logkeep.kafka.group_history.positions_task import read_positions_at
from logkeep.kafka.group_history.values import GroupLogUnit
from logkeep.model.ranges import Range
from logkeep.model.segments import Segment
from tests.soak_counts import soak_count
from tests.support.kafka.offsets_log import LOG, Event, archived, place, state_at, stored

_GROUPS = ("a", "b", "c")
_PRODUCERS = (5, 6)


@st.composite
def histories(draw: st.DrawFn) -> list[Event]:
    """Commits of both key types, tombstones, transactions that overlap, are aborted or stay open; times may fall."""
    events, now = list[Event](), 100
    for number in range(draw(st.integers(1, 25))):
        now += draw(st.sampled_from((0, 1, 3, 3, -2)))
        what, group = draw(st.integers(0, 9)), draw(st.sampled_from(_GROUPS))
        if what < 4:
            events.append(Event(now, group, number, kind=draw(st.sampled_from((1, 1, 0)))))
        elif what < 5:
            events.append(Event(now, group))
        elif what < 8:
            events.append(Event(now, group, number, producer=draw(st.sampled_from(_PRODUCERS))))
        else:
            events.append(Event(now, producer=draw(st.sampled_from(_PRODUCERS)), committed=draw(st.integers(0, 3)) > 0))
    return events


def unit_of(events: Sequence[Event], at_ms: int | None = None, groups: tuple[str, ...] = ()) -> GroupLogUnit:
    where = place()
    segments = tuple(archived(where, events))
    return GroupLogUnit(where, LOG, 0, len(events), segments, transactional=True, groups=groups, at_ms=at_ms)


@settings(max_examples=35, deadline=None)
@given(histories(), st.integers(90, 180))
def test_a_state_is_the_judges(events: list[Event], at_ms: int) -> None:
    for time_ms in (at_ms, None):
        found = read_positions_at(unit_of(events, time_ms), lambda _: None)
        current = {p.group: (p.offset, p.record_offset) for p in found.positions if p.erased_ms is None}
        assert current == state_at(events, time_ms)
        assert not found.unknown


@settings(max_examples=35, deadline=None)
@given(histories())
def test_every_commit_has_the_judges_ending(events: list[Event]) -> None:
    """A commit is its group's offset from when it takes effect until it ends, and at no other time."""
    rising = [Event(100 + 2 * n, e.group, e.offset, e.producer, e.committed, e.kind) for n, e in enumerate(events)]
    commits = read_history(unit_of(rising), lambda _: None).commits
    assert [c.record_offset for c in commits] == [n for n, e in enumerate(rising) if e.offset is not None]
    for time_ms in [e.time_ms for e in rising]:
        live = {
            c.group: (c.offset, c.record_offset)
            for c in commits
            if c.effective_ms is not None and c.effective_ms <= time_ms and (c.ended_ms is None or time_ms < c.ended_ms)
        }
        assert live == state_at(rising, time_ms)
    assert {c.ending for c in commits if c.effective_ms is None} <= {"aborted", "pending", "overtaken"}


@given(histories())
@settings(max_examples=20, deadline=None)
def test_a_pattern_leaves_out_other_groups_and_changes_nothing_else(events: list[Event]) -> None:
    whole = read_positions_at(unit_of(events), lambda _: None)
    some = read_positions_at(unit_of(events, groups=("a|c",)), lambda _: None)
    assert some.positions == tuple(p for p in whole.positions if p.group in "ac")
    assert some.seen or not some.positions
    assert not some.seen or any(e.group in ("a", "c") for e in events)


@dataclass
class Cluster:
    """A log that is written, cleaned and read, by Kafka's rules: the slow judge of what an archive may miss."""

    retention_ms: int
    events: list[Event] = field(default_factory=list)
    alive: list[bool] = field(default_factory=list)
    horizons: dict[int, int] = field(default_factory=dict)
    archive: dict[int, Event] = field(default_factory=dict)
    runs: list[ReadRun] = field(default_factory=list)
    unproven: Range | None = None

    def write(self, event: Event) -> None:
        self.events.append(event)
        self.alive.append(True)

    def clean(self, now_ms: int, end: int) -> None:
        """One pass over `[0, end)`: what has a successor there goes; a tombstone when its horizon has passed."""
        last = {e.group: at for at, e in enumerate(self.events[:end]) if self.alive[at]}
        for at, event in enumerate(self.events[:end]):
            replaced, tombstone = last.get(event.group) != at, event.offset is None
            if replaced or (tombstone and now_ms >= self.horizons.setdefault(at, now_ms + self.retention_ms)):
                self.alive[at] = False

    def back_up(self, cut_ms: int, end: int, pause: Callable[[], int]) -> None:
        """Read what is new up to a cut; `pause` is what the cluster does before the last byte is read."""
        start = self.runs[-1].end if self.runs else 0
        since = (self.runs[-1].cut_ms or 0) if self.runs else cut_ms
        read_ms = pause()
        read = {at: self.events[at] for at in range(start, end) if self.alive[at]}
        self.archive |= read
        if len(read) < end - start and read_ms - since >= self.retention_ms:
            self.unproven = Range(self.unproven.start if self.unproven else start, end)
        self.runs.append(ReadRun(0, end, read_ms, cut_ms))


@st.composite
def clusters(draw: st.DrawFn) -> Cluster:
    cluster, now = Cluster(draw(st.sampled_from((5, 20, 1000)))), 100

    def write(most: int) -> None:
        nonlocal now
        for _ in range(draw(st.integers(0, most))):
            now += draw(st.integers(1, 4))
            offset = None if draw(st.integers(0, 4)) == 0 else len(cluster.events)
            cluster.write(Event(now, draw(st.sampled_from(_GROUPS)), offset))

    def clean() -> None:
        nonlocal now
        now += draw(st.integers(0, 10))
        cluster.clean(now, draw(st.integers(0, len(cluster.events))))

    def pause() -> int:
        nonlocal now
        write(2)
        if draw(st.booleans()):
            clean()
        now += draw(st.integers(0, 5))
        return now

    for _ in range(draw(st.integers(1, 5))):
        write(6)
        for _ in range(draw(st.integers(0, 2))):
            clean()
        now += 1
        cluster.back_up(now, len(cluster.events), pause)
    return cluster


def _segments(cluster: Cluster) -> tuple[list[Segment], dict[str, bytes]]:
    """One object per run, as the product writes them, and their bytes by token."""
    found, data, start = list[Segment](), dict[str, bytes](), 0
    for number, run in enumerate(cluster.runs):
        own = [(at, cluster.archive[at].encode(at)) for at in range(start, run.end) if at in cluster.archive]
        if not own and run.end > start:
            found.append(Segment.without_object(LOG, start, run.end, f"{number:016x}"))
        for segment in stored(place(), own, run.end, 1 << 20) if own else ():
            renamed = msgspec.structs.replace(segment, start=start, token=f"{number:016x}")
            found.append(renamed)
            data[renamed.token] = b"".join(each for _, each in own)
        start = run.end
    return found, data


def _judged(cluster: Cluster, at_ms: int) -> None:
    """What is called complete is the true state; what is called sure is true at least of its group."""
    segments, data = _segments(cluster)
    end = cluster.runs[-1].end
    shape = shape_by_rows(segments, Range(0, end), at_ms, lambda s: index_of(walk(data[s.token]).batches).rows)
    log = completeness(shape, ArchivedLogFacts(cluster.runs, cluster.unproven, (), Range(0, 0), 0))
    kept = sorted((at, e) for at, e in cluster.archive.items() if at < shape.end)
    seen = {e.group: (e.offset, at) for at, e in kept}
    answer = {group: (offset, at) for group, (offset, at) in seen.items() if offset is not None}
    truth = state_at(cluster.events, at_ms)
    if log.complete(at_ms):
        assert answer == truth
        around = complete_around([log], at_ms)
        assert around is not None
        assert around.start_ms <= at_ms <= around.end_ms
    for group, (offset, at) in answer.items():
        if log.sure(at_ms, at):
            assert truth.get(group) == (offset, at)


@settings(max_examples=50, deadline=None)
@given(clusters())
def test_what_is_called_complete_is_the_truth(cluster: Cluster) -> None:
    last = cluster.runs[-1].cut_ms or 0
    for at_ms in {e.time_ms for e in cluster.events if e.time_ms <= last} | {last}:
        _judged(cluster, at_ms)


def test_an_archive_that_is_read_often_is_complete_always() -> None:
    cluster = Cluster(1000)
    for number in range(8):
        cluster.write(Event(100 + 10 * number, "a", number))
        read_ms = 106 + 10 * number
        cluster.back_up(105 + 10 * number, number + 1, partial(int, read_ms))
        cluster.clean(107 + 10 * number, number + 1)
    segments, data = _segments(cluster)
    shape = shape_by_rows(segments, Range(0, 8), 150, lambda s: index_of(walk(data[s.token]).batches).rows)
    log = completeness(shape, ArchivedLogFacts(cluster.runs, None, (), Range(0, 0), 0))
    assert (shape.holes, log.complete(150), log.complete(99_999)) == ((), True, False)


@pytest.mark.soak
@settings(max_examples=soak_count(20_000), deadline=None)
@given(clusters())
def test_what_is_called_complete_is_the_truth_many_times(cluster: Cluster) -> None:
    test_what_is_called_complete_is_the_truth.hypothesis.inner_test(cluster)  # type: ignore[attr-defined]
