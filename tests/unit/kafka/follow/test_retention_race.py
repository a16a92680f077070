"""When retention will remove what is not archived."""

from dataclasses import replace

import pytest

from logkeep.kafka.client.topology import TopicPartition
from logkeep.kafka.follow.retention_race import (
    LogReading,
    Retention,
    near_s,
    retention_of,
    threats,
    time_left_s,
    total_lag,
)

BEHIND = LogReading(start=0, archived=1000, end=1500, bytes_per_offset=10.0, cut_at_s=90.0, read_at_s=100.0)
FOR_EVER = Retention(None, None)
EARLIER = replace(BEHIND, cut_at_s=0.0, read_at_s=0.0)


def test_nothing_threatens_what_is_archived() -> None:
    assert time_left_s(replace(BEHIND, end=1000), EARLIER, Retention(1.0, 1)) is None


def test_by_age() -> None:
    """What is not archived is younger than the cut, which is 10 s old."""
    assert time_left_s(BEHIND, None, Retention(60.0, None)) == 50.0
    assert time_left_s(BEHIND, None, Retention(3.0, None)) == 0.0


def test_by_size() -> None:
    """5,000 bytes wait; they grew by 3,000 in 100 s; 1,500 more are kept."""
    before = replace(EARLIER, end=1200)
    assert time_left_s(BEHIND, before, Retention(None, 6500)) == pytest.approx(50.0)
    assert time_left_s(BEHIND, before, Retention(None, 5000)) == 0.0
    assert time_left_s(BEHIND, EARLIER, Retention(None, 6500)) is None, "we keep up"
    assert time_left_s(BEHIND, None, Retention(None, 6500)) is None


def test_by_a_log_start_that_comes_closer() -> None:
    """The start moves 8 a second, we move 3: of 1,000 offsets nothing is left after 200 s."""
    before = replace(EARLIER, start=-800, archived=700)
    assert time_left_s(BEHIND, before, FOR_EVER) == pytest.approx(200.0)
    assert time_left_s(BEHIND, replace(before, archived=100), FOR_EVER) is None


def test_only_what_is_near_is_told_the_nearest_first() -> None:
    readings = {TopicPartition(topic, p): BEHIND for topic in ("a", "b", "c") for p in (0, 1)}
    kept = {"a": Retention(60.0, None), "b": Retention(30.0, None), "c": Retention(3600.0, None)}
    assert [(t.topic, t.left_s) for t in threats(readings, {}, kept, 55.0)] == [("b", 20.0), ("a", 50.0)]


def test_near_is_three_rounds_or_twice_the_time_to_catch_up() -> None:
    assert near_s(10.0, 0, 0.0) == 30.0
    assert near_s(10.0, 500, 100.0) == 30.0
    assert near_s(10.0, 5000, 100.0) == 100.0


def test_what_a_topic_keeps() -> None:
    keeps = {"retention.ms": "60000", "retention.bytes": "-1", "cleanup.policy": "delete"}
    assert retention_of(keeps) == Retention(60.0, None)
    assert retention_of(keeps | {"retention.ms": "-1", "retention.bytes": "5"}) == Retention(None, 5)
    assert retention_of(keeps | {"cleanup.policy": "compact,delete"}) == Retention(60.0, None)
    assert retention_of(keeps | {"cleanup.policy": "compact"}) == FOR_EVER


def test_lag_is_counted_in_offsets_and_bytes() -> None:
    assert total_lag([BEHIND, replace(BEHIND, end=1000), replace(BEHIND, end=900)]) == (500, 5000)
