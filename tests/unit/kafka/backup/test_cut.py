"""The cut of a log, with scripted answers of a cluster."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field

import pytest

from logkeep.kafka.admin.offsets import LogBounds, ProducerState
from logkeep.kafka.backup.cut import (
    Clamped,
    OpenStates,
    SettledCut,
    clamp_commits,
    classify,
    logs_to_settle,
    open_at_cut,
    settle,
)
from logkeep.kafka.client.topology import TopicPartition
from logkeep.kafka.record.documents import OpenTransaction
from tests.support.kafka.cluster_values import bounds

A, B = TopicPartition("a", 0), TopicPartition("b", 0)
IDLE = -1


def producer(number: int, open_since: int, sequence: int = 1) -> ProducerState:
    """A transactional producer that its log remembers."""
    return ProducerState(number, 0, sequence, 0, open_since)


def plain(number: int, sequence: int) -> ProducerState:
    """A producer that never had a transaction."""
    return ProducerState(number, 0, sequence, -1, IDLE)


@dataclass
class ClockTime:
    """What the cluster says at one time."""

    bounds: Mapping[TopicPartition, LogBounds]
    producers: Mapping[TopicPartition, tuple[ProducerState, ...]]
    ongoing: set[int] = field(default_factory=set)
    unknown: set[int] = field(default_factory=set)


class Cluster:
    """Answers with one moment after the other; reading ends again leads to the next, the last one stays."""

    def __init__(self, *moments: ClockTime) -> None:
        self.moments, self.at = moments, 0
        self.pauses: list[float] = []
        self.reread_logs: list[list[TopicPartition]] = []

    @property
    def now(self) -> ClockTime:
        return self.moments[min(self.at, len(self.moments) - 1)]

    def producers(self, some: list[TopicPartition]) -> Mapping[TopicPartition, Iterable[ProducerState]]:
        return {log: self.now.producers.get(log, ()) for log in some}

    def reread(self, some: list[TopicPartition]) -> Mapping[TopicPartition, LogBounds]:
        self.reread_logs.append(some)
        self.at += 1
        return {log: self.now.bounds[log] for log in some}

    def states(self) -> Mapping[int, str]:
        known = {p.producer_id for states in self.now.producers.values() for p in states} - self.now.unknown
        return {number: "Ongoing" if number in self.now.ongoing else "CompleteCommit" for number in known}

    def pause(self, seconds: float) -> None:
        self.pauses.append(seconds)

    def settle(self) -> tuple[dict[TopicPartition, LogBounds], tuple[OpenTransaction, ...]]:
        settled = self.settled()
        return settled.bounds, settled.open_transactions

    def settled(self) -> SettledCut:
        return settle(
            self.moments[0].bounds,
            producers=self.producers,
            states=self.states,
            reread=self.reread,
            pause=self.pause,
        )


def test_a_transaction_is_open_at_the_cut_when_it_began_below_it() -> None:
    states = {A: (producer(1, 5), producer(2, 9), producer(3, 10), producer(4, 11), producer(5, IDLE)), B: ()}
    assert open_at_cut({A: bounds(0, 10), B: bounds(0, 10)}, states) == [
        OpenTransaction("a", 0, 1, 5),
        OpenTransaction("a", 0, 2, 9),
    ]


def test_a_transaction_at_offset_zero_is_one() -> None:
    assert open_at_cut({A: bounds(0, 1)}, {A: (producer(1, 0),)}) == [OpenTransaction("a", 0, 1, 0)]


def test_what_the_coordinator_calls_ongoing_stays_open() -> None:
    found = [OpenTransaction("a", 0, 1, 5), OpenTransaction("a", 0, 2, 6), OpenTransaction("b", 0, 1, 7)]
    decided = {1: "Ongoing", 2: "PrepareCommit"}
    assert classify(found, decided) == OpenStates(frozenset({A}), (found[0], found[2]))
    assert classify(found, {1: "Ongoing", 2: "Ongoing"}) == OpenStates(frozenset(), tuple(found))
    assert classify(found, {1: "Ongoing"}) == OpenStates(frozenset(), (found[0], found[2]), (found[1],))
    assert classify([], {1: "Ongoing"}) == OpenStates(frozenset(), ())


def test_only_logs_with_something_undecided_can_be_torn() -> None:
    assert logs_to_settle({A: bounds(0, 10, stable=10), B: bounds(0, 10, stable=9)}) == [B]


def test_quiet_logs_cost_no_question() -> None:
    cluster = Cluster(ClockTime({A: bounds(0, 10)}, {A: (producer(1, 3),)}))
    assert cluster.settle() == ({A: bounds(0, 10)}, ())
    assert (cluster.pauses, cluster.reread_logs) == ([], [])


def test_an_ongoing_transaction_is_recorded_and_the_cut_stays() -> None:
    cluster = Cluster(ClockTime({A: bounds(0, 10, stable=5)}, {A: (producer(1, 5),)}, {1}))
    assert cluster.settle() == ({A: bounds(0, 10, stable=5)}, (OpenTransaction("a", 0, 1, 5),))
    assert cluster.reread_logs == []


def test_a_decided_transaction_moves_the_cut_behind_its_marker() -> None:
    cluster = Cluster(
        ClockTime({A: bounds(0, 10, stable=5), B: bounds(0, 4)}, {A: (producer(1, 5),)}),
        ClockTime({A: bounds(0, 11), B: bounds(0, 8)}, {A: (producer(1, IDLE),)}),
    )
    settled, still_open = cluster.settle()
    assert settled == {A: bounds(0, 11), B: bounds(0, 4)}
    assert still_open == ()
    assert cluster.reread_logs == [[A]]


def test_one_that_was_decided_before_anybody_asked_moves_the_cut_too() -> None:
    """Its records lie below the end that was read, its marker behind it, and no producer has it open any more."""
    cluster = Cluster(
        ClockTime({A: bounds(0, 10, stable=5)}, {A: (producer(1, IDLE),)}),
        ClockTime({A: bounds(0, 11)}, {A: (producer(1, IDLE),)}),
    )
    assert cluster.settle() == ({A: bounds(0, 11)}, ())
    assert cluster.pauses == [], "nobody waits for a marker that is there"


def test_one_that_hides_behind_a_longer_one_moves_the_cut_too() -> None:
    """Producer 1 goes on all the time; 2 was decided between the reading of the end and the question."""
    cluster = Cluster(
        ClockTime({A: bounds(0, 10, stable=5)}, {A: (producer(1, 5), producer(2, IDLE, sequence=4))}, {1}),
        ClockTime({A: bounds(0, 11, stable=5)}, {A: (producer(1, 5), producer(2, IDLE, sequence=4))}, {1}),
    )
    assert cluster.settle() == ({A: bounds(0, 11, stable=5)}, (OpenTransaction("a", 0, 1, 5),))
    assert cluster.reread_logs == [[A]]


def test_a_busy_log_without_transactions_is_not_asked_again() -> None:
    """Its end moved between two questions: nothing is undecided."""
    cluster = Cluster(ClockTime({A: bounds(0, 10, stable=8)}, {A: (plain(1, 7),)}))
    assert cluster.settle() == ({A: bounds(0, 10, stable=8)}, ())
    assert cluster.reread_logs == []


def test_a_marker_that_comes_late_is_waited_for_with_growing_patience() -> None:
    late = ClockTime({A: bounds(0, 10, stable=5)}, {A: (producer(1, 5),)})
    cluster = Cluster(late, late, late, ClockTime({A: bounds(0, 11)}, {A: (producer(1, IDLE),)}))
    assert cluster.settle() == ({A: bounds(0, 11)}, ())
    assert cluster.pauses == sorted(cluster.pauses)
    assert len(cluster.pauses) == 3


def test_decided_and_then_a_new_one_that_goes_on() -> None:
    """Behind the marker, and before the next transaction: nothing reaches over the last stable offset."""
    cluster = Cluster(
        ClockTime({A: bounds(0, 10, stable=5)}, {A: (producer(1, 5),)}),
        ClockTime({A: bounds(0, 14, stable=11)}, {A: (producer(1, 11),)}, {1}),
    )
    assert cluster.settle() == ({A: bounds(0, 11)}, ())


def test_a_new_transaction_in_every_round_does_not_keep_the_cut_from_settling() -> None:
    moments = [
        ClockTime({A: bounds(0, 10 + 10 * n, stable=5 + 10 * n)}, {A: (producer(1, 5 + 10 * n, sequence=n),)})
        for n in range(100)
    ]
    assert Cluster(*moments).settle() == ({A: bounds(0, 15)}, ())


def test_decisions_without_end_behind_an_ongoing_transaction_come_to_an_end() -> None:
    """And what is said to be open belongs to the cut that is returned, not to an earlier one."""
    moments = [
        ClockTime(
            {A: bounds(0, 10 + 10 * n, stable=5)},
            {A: (producer(1, 5), producer(2, 6 + 10 * n, sequence=n))},
            {1},
        )
        for n in range(100)
    ]
    cluster = Cluster(*moments)
    settled, still_open = cluster.settle()
    last = cluster.at
    assert 5 <= last < 50
    assert settled == moments[last].bounds
    assert still_open == (OpenTransaction("a", 0, 1, 5), OpenTransaction("a", 0, 2, 6 + 10 * last))


def test_the_log_start_is_kept_as_it_was_read_first() -> None:
    cluster = Cluster(
        ClockTime({A: bounds(2, 10, stable=5)}, {A: (producer(1, 5),)}),
        ClockTime({A: bounds(7, 11)}, {A: (producer(1, IDLE),)}),
    )
    assert cluster.settle()[0] == {A: bounds(2, 11)}


def test_every_log_settles_by_itself() -> None:
    cluster = Cluster(
        ClockTime(
            {A: bounds(0, 10, stable=5), B: bounds(0, 20, stable=15)},
            {A: (producer(1, 5),), B: (producer(2, 15),)},
            {2},
        ),
        ClockTime({A: bounds(0, 11), B: bounds(0, 99)}, {A: (producer(1, IDLE),), B: ()}, {2}),
    )
    settled, still_open = cluster.settle()
    assert settled == {A: bounds(0, 11), B: bounds(0, 20, stable=15)}
    assert still_open == (OpenTransaction("b", 0, 2, 15),)


@pytest.mark.parametrize(("committed", "recorded"), [(0, 0), (9, 9), (10, 10), (11, 10), (2**62, 10)])
def test_no_position_stands_behind_the_cut(committed: int, recorded: int) -> None:
    kept, clamped = clamp_commits("g", {A: committed}, {A: bounds(3, 10)})
    assert kept == {A: recorded}
    assert clamped == ([Clamped("g", A, committed, recorded)] if committed != recorded else [])


def test_positions_in_logs_that_are_not_archived_stay_as_they_are() -> None:
    assert clamp_commits("g", {B: 77}, {A: bounds(0, 10)}) == ({B: 77}, [])


def test_one_that_nobody_calls_ongoing_and_that_gets_no_marker_is_named() -> None:
    hangs = ClockTime({A: bounds(0, 10, 4)}, {A: (producer(1, 4), producer(2, 6))}, {2}, {1})
    cluster = Cluster(hangs)
    settled = cluster.settled()
    assert sum(cluster.pauses) < 1, "it may hang for years"
    assert settled.open_transactions == (OpenTransaction("a", 0, 1, 4), OpenTransaction("a", 0, 2, 6))
    assert settled.undecided == (OpenTransaction("a", 0, 1, 4),)


def test_it_is_named_also_when_another_log_takes_longer_to_settle() -> None:
    states = {A: (producer(1, 4),), B: (producer(2, 3),)}
    waiting = [ClockTime({A: bounds(0, 10, 4), B: bounds(0, 9, 3)}, states, set(), {1})] * 10
    marked = ClockTime({A: bounds(0, 10, 4), B: bounds(0, 12)}, {A: states[A], B: (producer(2, IDLE),)}, set(), {1})
    settled = Cluster(*waiting, marked).settled()
    assert settled.undecided == (OpenTransaction("a", 0, 1, 4),)
    assert settled.bounds[B].high_watermark == 12
