"""When two reads of log ends agree, with scripted answers."""

from logkeep.kafka.admin.offsets import LogBounds, ProducerState
from logkeep.kafka.backup.log_ends import LogEnds, with_new_transactions, with_reread
from logkeep.kafka.backup.transaction_activity import changed_producers, moved_producers, transactional_logs
from logkeep.kafka.client.topology import TopicPartition
from logkeep.kafka.record.documents import OpenTransaction
from tests.support.kafka.cluster_values import bounds

A, B, C = TopicPartition("a", 0), TopicPartition("b", 0), TopicPartition("c", 0)


def state(producer: int, sequence: int = 0, open_since: int = -1, coordinator_epoch: int = 0) -> ProducerState:
    return ProducerState(producer, 0, sequence, coordinator_epoch, open_since)


def open_in(log: TopicPartition) -> OpenTransaction:
    return OpenTransaction(log.topic, log.partition, 1, 0)


def test_a_producer_that_wrote_in_one_log_only_cannot_tear() -> None:
    assert moved_producers({A: (state(1),)}, {A: (state(1, 5),)}) == []
    assert changed_producers({A: (state(1),)}, {A: (state(1, 5),)}) == [1]


def test_one_with_transactions_in_two_logs_can_when_it_moved_in_one() -> None:
    before = {A: (state(1),), B: (state(1),)}
    assert moved_producers(before, {A: (state(1, 5),), B: (state(1),)}) == [1]
    assert moved_producers(before, {A: (state(1, 0, 7),), B: (state(1),)}) == [1]
    assert moved_producers(before, before) == []


def test_one_that_is_new_has_moved() -> None:
    assert moved_producers({A: (), B: ()}, {A: (state(1),), B: (state(1),)}) == [1]


def test_a_producer_without_transactions_may_do_what_it_wants() -> None:
    plain = state(1, coordinator_epoch=-1)
    assert moved_producers({A: (), B: ()}, {A: (plain,), B: (plain,)}) == []
    assert transactional_logs({A: (plain,), B: (state(2),), C: (state(3, 0, 4, -1),)}) == {B, C}


def test_what_was_asked_again_replaces_what_was_known_of_those_logs() -> None:
    first = LogEnds((), {A: bounds(0, 10), B: bounds(0, 20)}, (open_in(A), open_in(B)), (open_in(A),), ("g",), (1,))
    again = LogEnds((), {A: bounds(0, 15)}, (), transactional=frozenset({A}), producers={A: (state(1),)})
    ends: dict[TopicPartition, LogBounds] = {A: bounds(0, 15), B: bounds(0, 20)}
    both = with_reread(first, again)
    assert (both.bounds, both.open_transactions, both.undecided) == (ends, (open_in(B),), ())
    assert both.stable
    assert both.producers == {A: (state(1),)}


def test_a_transaction_that_came_to_a_log_that_was_not_asked_again_is_seen() -> None:
    ends = LogEnds((), {A: bounds(0, 1)}, transactional=frozenset({A}), producers={A: (state(1),), B: (state(1),)})
    assert with_new_transactions(ends, {A: (state(1, 9),), B: (state(1),)}).stable, (
        "A was asked: what happened since is behind it"
    )
    wider = with_new_transactions(ends, {A: (state(1),), B: (state(1, 3),), C: ()})
    assert (wider.unstable_producers, wider.transactional) == ((1,), frozenset({A, B}))
