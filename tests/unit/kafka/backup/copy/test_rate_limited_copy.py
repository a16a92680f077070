"""Copies from a scripted cluster: throttling, rate limits, and followers that lag."""

from dataclasses import replace
from uuid import UUID

import pytest

from logkeep.errors import ClusterNotReady
from logkeep.kafka.backup.copy.copy_task import copy_with
from logkeep.kafka.backup.units import CopyOutcome, CopyRange, CopyResult, CopyUnit
from logkeep.kafka.client.fetch import Code, FetchLimits
from logkeep.kafka.logs.lost_offset import Cause, LogFacts
from logkeep.model.time import random_token
from tests.support.kafka.copied_logs import archived
from tests.support.kafka.handmade_batches import dense
from tests.support.kafka.scripted_cluster import Answers, Asked, Reply, Script
from tests.support.kafka.stored_segments import place
from tests.unit.kafka.client.test_rate_limit import Clock

TOPIC = UUID(int=77 << 64)
BATCHES = [dense(base, 10).encode() for base in range(0, 100, 10)]
WANTED = CopyRange("orders", TOPIC, 0, 0, 100, TOPIC.hex, leader_epoch=0, first=True)


def from_log(asked: Asked, end: int = 100) -> Reply:
    """The next batch of a log that ends there."""
    number = asked.offset // 10
    return Reply(BATCHES[number] if asked.offset < end else b"", high_watermark=end)


class Copying:
    """One copy from a script, on a clock that only pauses move."""

    def __init__(self, answers: Answers, **limits: object) -> None:
        self.clock, self.place = Clock(), place()
        facts = LogFacts(TOPIC, 0, 100)
        self.script = Script(answers, self.clock, facts)
        asked = FetchLimits(**limits)  # type: ignore[arg-type]  # a test's own limits
        self.unit = CopyUnit("unit", self.place, 1, "run-1", 1, (WANTED,), self.script, limits=asked)

    def run(self) -> CopyResult:
        return copy_with(self.unit, lambda _: None, random_token, self.clock.pause, self.clock)

    def whole(self) -> None:
        """All of it is archived, and nothing was taken for an end or a gap."""
        result = self.run()
        assert [(r.outcome, r.gaps, r.reached) for r in result.ranges] == [(CopyOutcome.COPIED, (), 100)]
        assert archived(self.place, result.segments) == BATCHES

    @property
    def asked_by_broker(self) -> dict[int, list[int]]:
        brokers = sorted({asked.broker for asked in self.script.asked})
        return {b: [a.offset for a in self.script.asked if a.broker == b] for b in brokers}


@pytest.mark.parametrize("throttle_ms", [297, 45_000, 600_000])
def test_no_request_goes_before_a_throttle_is_over_on_any_connection(throttle_ms: int) -> None:
    """Thirty throttled replies in a row, each without topics, are no stall and no end."""
    until = 0.0

    def answers(asked: Asked) -> Reply:
        nonlocal until
        assert asked.at_s >= until - 1e-6, "asked while the channel was muted"
        if len(copying.script.asked) % 3:
            until = asked.at_s + throttle_ms / 1000
            return Reply(throttle_ms=throttle_ms, served=False)
        return from_log(asked)

    copying = Copying(answers)
    copying.whole()
    assert {asked.connection for asked in copying.script.asked} == {1, 2}
    assert sum(copying.clock.pauses) == pytest.approx(20 * throttle_ms / 1000)


def test_a_long_throttle_is_not_a_stall() -> None:
    def answers(asked: Asked) -> Reply:
        busy = len(copying.script.asked) <= 50
        return Reply(throttle_ms=2000, served=False) if busy else from_log(asked)

    copying = Copying(answers)
    copying.whole()
    assert copying.clock.pauses == pytest.approx([2.0] * 50)


def test_a_reply_with_records_may_be_throttled_too() -> None:
    copying = Copying(lambda asked: replace(from_log(asked), throttle_ms=1000))
    copying.whole()
    assert copying.clock.pauses == pytest.approx([1.0] * 9)


def test_a_broker_that_never_gives_anything_is_still_noticed() -> None:
    copying = Copying(lambda _: Reply(high_watermark=100))
    with pytest.raises(ClusterNotReady, match="no records come from offset 0"):
        copying.run()


def test_a_limit_is_kept_by_waiting_between_requests() -> None:
    copying = Copying(from_log, bytes_per_s=100)
    copying.whole()
    received = sum(map(len, BATCHES))
    assert sum(copying.clock.pauses) * 100 >= received - len(BATCHES[-1]) - 25


def test_a_follower_in_our_rack_is_read() -> None:
    def answers(asked: Asked) -> Reply:
        return Reply(preferred=2) if asked.broker == 1 else from_log(asked)

    copying = Copying(answers, rack="here")
    copying.whole()
    assert copying.asked_by_broker == {1: [0], 2: list(range(0, 100, 10))}
    assert {asked.rack for asked in copying.script.asked} == {"here"}
    assert copying.clock.pauses == []


BEHIND = {
    "has less than was planned": Reply(high_watermark=40),
    "refuses an offset that it does not have yet": Reply(error=Code.OFFSET_OUT_OF_RANGE, high_watermark=-1),
    "has it, and may not give it yet": Reply(error=Code.OFFSET_NOT_AVAILABLE, high_watermark=-1),
    "has an older past": Reply(diverging=(0, 35), high_watermark=40),
    "does not know the leader yet": Reply(error=Code.UNKNOWN_LEADER_EPOCH, high_watermark=-1),
    "is no replica any more": Reply(error=Code.NOT_LEADER_OR_FOLLOWER, high_watermark=-1),
    "does not know the topic yet": Reply(error=Code.UNKNOWN_TOPIC_ID, high_watermark=-1),
    "finds its own file damaged": Reply(error=Code.CORRUPT_MESSAGE, high_watermark=-1),
}


@pytest.mark.parametrize("reply", BEHIND.values(), ids=BEHIND.keys())
def test_a_follower_that_is_behind_is_no_end_and_no_truncation(reply: Reply) -> None:
    """The leader is asked for the rest, without a rack: he would name the same follower again."""

    def answers(asked: Asked) -> Reply:
        if asked.broker == 1:
            return Reply(preferred=2) if asked.rack else from_log(asked)
        return from_log(asked) if asked.offset < 40 else reply

    copying = Copying(answers, rack="here")
    copying.whole()
    followed = copying.asked_by_broker[2]
    assert followed[:4] == [0, 10, 20, 30]
    assert set(followed[4:]) == {40}
    assert len(followed[4:]) <= 6, "waited for the follower for too long"
    assert copying.asked_by_broker[1] == [0, *range(40, 100, 10)]


def test_a_follower_that_catches_up_in_time_is_kept() -> None:
    def answers(asked: Asked) -> Reply:
        if asked.broker == 1:
            return Reply(preferred=2)
        late = copying.asked_by_broker[2].count(asked.offset) <= 3
        return Reply(high_watermark=asked.offset) if late and asked.offset in (20, 50) else from_log(asked)

    copying = Copying(answers, rack="here")
    copying.whole()
    assert copying.asked_by_broker[1] == [0]


def test_a_follower_that_is_down_costs_one_try() -> None:
    def answers(asked: Asked) -> Reply:
        return Reply(preferred=2) if asked.rack else from_log(asked)

    copying = Copying(answers, rack="here")
    copying.script.down.add(2)
    copying.whole()
    assert copying.asked_by_broker == {1: [0, *range(0, 100, 10)]}


def test_what_a_follower_calls_lost_is_asked_of_the_leader_who_may_confirm_it() -> None:
    """Only the leader's own refusal is looked into: here retention really took the first half."""

    def answers(asked: Asked) -> Reply:
        if asked.rack:
            return Reply(preferred=2) if asked.broker == 1 else Reply(error=Code.OFFSET_OUT_OF_RANGE, high_watermark=-1)
        lost = asked.offset < 50
        return Reply(error=Code.OFFSET_OUT_OF_RANGE, high_watermark=-1) if lost else from_log(asked)

    copying = Copying(answers, rack="here")
    copying.script.facts_now = LogFacts(TOPIC, 50, 100)
    (result,) = copying.run().ranges
    assert (result.outcome, [(g.start, g.end) for g in result.gaps]) == (CopyOutcome.COPIED, [(0, 50)])


def test_an_election_that_moves_many_partitions_is_one_failure() -> None:
    def answers(asked: Asked) -> Reply:
        moved = Reply(error=Code.NOT_LEADER_OR_FOLLOWER, high_watermark=-1)
        return moved if asked.broker == 1 else from_log(asked)

    copying = Copying(answers)
    copying.script.leads = 2
    many = tuple(replace(WANTED, topic_id=UUID(int=number), history=UUID(int=number).hex) for number in range(1, 41))
    copying.unit = replace(copying.unit, ranges=many)
    result = copying.run()
    assert {(r.outcome, r.reached) for r in result.ranges} == {(CopyOutcome.COPIED, 100)}
    assert len(copying.clock.pauses) == 1


def test_a_log_that_ends_before_what_was_planned_lost_its_end() -> None:
    copying = Copying(lambda asked: from_log(asked, end=70))
    copying.script.facts_now = LogFacts(TOPIC, 0, 70)
    (result,) = copying.run().ranges
    assert (result.outcome, result.cause, result.reached) == (CopyOutcome.NEW_HISTORY, Cause.TRUNCATED, 70)
