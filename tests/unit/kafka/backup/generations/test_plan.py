"""Which catch-ups end, which number a new one gets, and what one round copies of it."""

from dataclasses import replace

import msgspec
import pytest

from logkeep.kafka.backup.continuity.history_check import BrokenLog
from logkeep.kafka.backup.generations.plan import (
    CaughtUp,
    ended_catch_ups,
    gaps_in_cut,
    left_to_copy,
    next_number,
    one_share,
    ready_to_switch,
    without_unready,
)
from logkeep.kafka.backup.plan import Plan, PlannedUnit, history_of
from logkeep.kafka.backup.units import CopyOutcome, CopyRange, CopyResult, RangeResult
from logkeep.kafka.client.topology import TopicPartition
from logkeep.kafka.logs.lost_offset import Cause
from logkeep.kafka.record.documents import ArchivedReach
from logkeep.model.segments import Collection, LogName
from logkeep.repository.backups.manifest import KnownGap, LogCut
from logkeep.repository.chain.actions import GenerationStart, ObjectRef
from logkeep.repository.chain.fold import Burial, CatchUp, Folded
from tests.support.kafka.cluster_values import OTHER_ID, bounds, facts, topic

ACCOUNTS = topic("accounts", leaders=(1, 1))
ID = history_of(ACCOUNTS)
LOGS = [TopicPartition("accounts", p) for p in (0, 1)]
FACTS = replace(facts((ACCOUNTS,), {log: bounds(0, 100) for log in LOGS}, {}), sizes=dict.fromkeys(LOGS, 10_000))
REACHED = {log: ArchivedReach(ID, 90, 3) for log in LOGS}
CATCH_UP = CatchUp(
    token="a" * 16, topic="accounts", topic_id=ID, number=1, reason="", began="2026-11-15T00:00:00.000Z", generation=2
)


def _log(number: int, partition: int = 0) -> LogName:
    return LogName(Collection.TOPICS, "accounts", f"{ID}-{number}" if number else ID, partition)


def test_a_catch_up_of_the_same_topic_stays() -> None:
    assert ended_catch_ups([CATCH_UP], FACTS, REACHED, ()) == []


@pytest.mark.parametrize(
    ("now", "reached", "broken", "why"),
    [
        (facts((), {}, {}), REACHED, (), "deleted"),
        (facts((topic("accounts", topic_id=OTHER_ID),), {}, {}), REACHED, (), "created again"),
        (FACTS, {**REACHED, LOGS[1]: ArchivedReach(f"{ID}-1", 90, 3)}, (), "later history"),
        (FACTS, REACHED, (BrokenLog(LOGS[1], Cause.TRUNCATED, ID),), "lost its end"),
        (FACTS, {}, (), "does not have the topic"),
    ],
)
def test_a_catch_up_that_can_never_become_active_ends(now, reached, broken, why) -> None:  # type: ignore[no-untyped-def]
    (ended,) = ended_catch_ups([CATCH_UP], now, reached, broken)
    assert why in ended.reason


def test_a_topic_that_this_run_does_not_select_keeps_its_catch_up() -> None:
    unselected = replace(FACTS, topics=())
    assert ended_catch_ups([CATCH_UP], unselected, {}, ()) == []


def test_a_number_is_never_used_twice() -> None:
    """Neither that of a catch-up that ended, nor one of which offsets are buried."""
    assert next_number(Folded(), "accounts", ID, [_log(0)]) == 1
    assert next_number(Folded(), "accounts", ID, [_log(0), _log(4, 1)]) == 5
    started = Folded(generation_starts=(GenerationStart("accounts", ID, "t", 7),))
    assert next_number(started, "accounts", ID, [_log(0)]) == 8
    assert next_number(started, "accounts", OTHER_ID.hex, [_log(0)]) == 1, "another topic of that name"
    buried = Folded(buried=(Burial(log=_log(9), first=1, object=ObjectRef("b" * 16, 1, "0" * 64), offsets=1),))
    assert next_number(buried, "accounts", ID, [_log(0)]) == 10


def test_what_is_left_begins_at_the_log_start_and_leaves_out_what_was_copied() -> None:
    assert left_to_copy(CaughtUp(CATCH_UP), FACTS, 1 << 30).records == 200
    done = CopyResult(
        unit="u",
        ranges=(RangeResult(log=_log(1), lo=0, hi=60, outcome=CopyOutcome.COPIED, reached=60),),
        segments=(),
    )
    left = left_to_copy(CaughtUp(CATCH_UP, (done,)), FACTS, 1 << 30)
    assert {(r.history, r.partition, r.lo, r.hi) for u in left.units for r in u.ranges} == {
        (f"{ID}-1", 0, 60, 100),
        (f"{ID}-1", 1, 0, 100),
    }


def _unit(size_bytes: int) -> PlannedUnit:
    return PlannedUnit(1, (CopyRange("accounts", ACCOUNTS.id, 0, 0, 1, f"{ID}-1", size_bytes=size_bytes),))


def test_a_share_has_the_largest_units_and_at_least_one() -> None:
    """In the order of partitions, what is appended to the first one would keep the others waiting for ever."""
    plan = Plan((), (_unit(5), _unit(90), _unit(40)), (), ())
    assert [u.size_bytes for u in one_share(plan, 1).units] == [90]
    assert [u.size_bytes for u in one_share(plan, 130).units] == [90, 40]
    assert one_share(Plan((), (), (), ()), 1).units == ()


def test_those_that_fit_into_one_share_switch_in_order() -> None:
    some = [CaughtUp(_with_token(CATCH_UP, letter)) for letter in "abc"]
    assert ready_to_switch([(some[0], 5), (some[1], 5), (some[2], 1)], 10) == some[:2]
    assert ready_to_switch([(some[0], 11), (some[1], 0)], 10) == []


def _with_token(catch_up: CatchUp, letter: str) -> CatchUp:
    return msgspec.structs.replace(catch_up, token=letter * 16)


def test_a_gap_below_the_log_start_is_none_of_the_new_generation() -> None:
    """The log start moved on between two shares; the topic does not have these offsets either."""
    cut = [LogCut(_log(1), 50, 100)]
    below, above, other = KnownGap(_log(1), 20, 50, ""), KnownGap(_log(1), 40, 60, ""), KnownGap(_log(0), 1, 2, "")
    assert gaps_in_cut([below, above, other], cut, {"accounts"}) == (above, other)
    assert gaps_in_cut([below], cut, ()) == (below,)


def test_results_of_a_generation_that_does_not_switch_are_left_out() -> None:
    ranges = tuple(
        RangeResult(log=_log(n), lo=90, hi=100, outcome=CopyOutcome.COPIED, reached=100) for n in (0, 1)
    )  # fmt: skip
    own = CopyResult(unit="u", ranges=ranges, segments=())
    assert [r.log for r in without_unready([own], [CATCH_UP], [])[0].ranges] == [_log(0)]
    assert without_unready([own], [CATCH_UP], [CaughtUp(CATCH_UP)]) == [own]
