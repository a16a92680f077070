"""When the next request may be sent: a pure rule over a clock that the test moves."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from logkeep.errors import ClusterNotReady
from logkeep.kafka.client.fetch import FetchLimits
from logkeep.kafka.client.rate_limit import (
    BURST_S,
    LEAST_REPLY_BYTES,
    FetchRate,
    RateLimiter,
    share,
    with_short_replies,
)


class Clock:
    """Time that only pauses and the test move."""

    def __init__(self) -> None:
        self.now_s = 1000.0
        self.pauses: list[float] = []

    def __call__(self) -> float:
        return self.now_s

    def pause(self, wait_s: float) -> None:
        self.pauses.append(wait_s)
        self.now_s += wait_s


@given(st.lists(st.tuples(st.integers(0, 10_000_000), st.floats(0, 5)), min_size=1, max_size=50))
def test_what_was_received_never_outruns_the_rate(replies: list[tuple[int, float]]) -> None:
    clock, rate, received = Clock(), 1_000_000, 0
    rate_limit = RateLimiter(rate, clock.pause, clock)
    for size, took_s in replies:
        rate_limit.wait_to_send(1)
        assert received <= rate * (clock.now_s - 1000 + BURST_S) + 1
        clock.now_s += took_s
        rate_limit.received(1, size, 0)
        received += size


def test_a_steady_stream_is_paced_exactly() -> None:
    clock = Clock()
    rate_limit = RateLimiter(1_000_000, clock.pause, clock)
    for _ in range(10):
        rate_limit.wait_to_send(1)
        rate_limit.received(1, 500_000, 0)
    rate_limit.wait_to_send(1)
    assert sum(clock.pauses) == pytest.approx(10 * 0.5 - BURST_S)


def test_the_rate_is_one_for_all_brokers_and_a_throttle_is_one_brokers() -> None:
    clock = Clock()
    rate_limit = RateLimiter(1_000_000, clock.pause, clock)
    rate_limit.received(1, 1_250_000, 7000)
    rate_limit.wait_to_send(2)
    assert clock.pauses == [1.0]
    rate_limit.wait_to_send(1)
    assert clock.pauses == [1.0, 6.0]


def test_time_that_passed_anyway_is_not_waited_again() -> None:
    clock = Clock()
    rate_limit = RateLimiter(0, clock.pause, clock)
    rate_limit.received(1, 10**9, 2000)
    clock.now_s += 3
    rate_limit.wait_to_send(1)
    assert clock.pauses == []


def test_a_throttle_without_end_is_told() -> None:
    clock = Clock()
    with pytest.raises(ClusterNotReady, match="throttles this client for 2147483 s"):
        RateLimiter(0, clock.pause, clock).received(1, 0, 2**31 - 1)


def test_without_a_limit_nothing_is_owed() -> None:
    assert FetchRate(0).received(5.0, 10**12) == FetchRate(0)


@pytest.mark.parametrize(("limit", "tasks", "each"), [(None, 4, 0), (1000, 4, 250), (1000, 0, 1000), (3, 8, 1)])
def test_tasks_share_a_limit(limit: int | None, tasks: int, each: int) -> None:
    assert share(limit, tasks) == each


@pytest.mark.parametrize(
    ("rate", "reply"), [(0, 8 << 20), (1, LEAST_REPLY_BYTES), (1_000_000, 1_000_000), (10**9, 8 << 20)]
)
def test_replies_fit_the_rate(rate: int, reply: int) -> None:
    assert with_short_replies(FetchLimits(bytes_per_s=rate)).max_bytes == reply
