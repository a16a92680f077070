"""When a task aborts: after many failures, or after a long time without progress."""

import pytest

from logkeep.errors import ClusterNotReady, ClusterUnreachable
from logkeep.kafka.client.retry import RESTART, USUAL, ProgressBackoff

GONE = ClusterUnreachable("no broker answers")


class Clock:
    def __init__(self) -> None:
        self.now_s = 0.0

    def __call__(self) -> float:
        return self.now_s

    def pause(self, seconds: float) -> None:
        self.now_s += seconds


def _failures(clock: Clock, backoff: ProgressBackoff, each_takes_s: float) -> int:
    """How many failures in a row are borne."""
    for number in range(1000):
        clock.now_s += each_takes_s
        try:
            backoff.failed(GONE)
        except ClusterUnreachable:
            return number
    raise AssertionError("it never aborts")


@pytest.mark.parametrize(("each_takes_s", "borne"), [(0.0, 10), (0.5, 10), (30.0, 3), (1000.0, 1)])
def test_failures_without_progress(each_takes_s: float, borne: int) -> None:
    clock = Clock()
    assert _failures(clock, ProgressBackoff(clock.pause, clock), each_takes_s) == borne


@pytest.mark.parametrize("each_takes_s", [0.0, 0.5, 30.0])
def test_a_restart_is_waited_for_by_time_alone(each_takes_s: float) -> None:
    clock = Clock()
    _failures(clock, ProgressBackoff(clock.pause, clock, RESTART), each_takes_s)
    assert 240.0 < clock.now_s <= 240.0 + 5.0 + each_takes_s


def test_pauses_count_where_the_clock_does_not_move() -> None:
    backoff = ProgressBackoff(lambda _: None, lambda: 0.0, RESTART)
    assert 40 < _failures(Clock(), backoff, 0.0) < 60


def test_a_known_reason_ends_the_wait_for_a_restart() -> None:
    clock = Clock()
    backoff = ProgressBackoff(clock.pause, clock, RESTART)
    for _ in range(10):
        backoff.failed(GONE)
    with pytest.raises(ClusterUnreachable):
        backoff.failed(GONE, USUAL)


def test_a_step_is_repeated_while_its_failure_is_temporary() -> None:
    clock, left = Clock(), [GONE, ClusterNotReady("no leader")]
    backoff = ProgressBackoff(clock.pause, clock, RESTART)

    def step() -> str:
        if left:
            raise left.pop()
        return "done"

    assert backoff.repeat(step) == "done"
    assert clock.now_s > 0
    with pytest.raises(ZeroDivisionError):
        backoff.repeat(lambda: 1 // 0)


def test_progress_starts_the_count_again() -> None:
    clock = Clock()
    backoff = ProgressBackoff(clock.pause, clock)
    for _ in range(50):
        clock.now_s += 100
        backoff.failed(GONE)
        backoff.progress()
    assert _failures(clock, backoff, 0.0) == 10
