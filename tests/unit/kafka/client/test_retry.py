"""When a task aborts: after many failures, or after a long time without progress."""

import pytest

from logkeep.errors import ClusterUnreachable
from logkeep.kafka.client.retry import ProgressBackoff

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


def test_progress_starts_the_count_again() -> None:
    clock = Clock()
    backoff = ProgressBackoff(clock.pause, clock)
    for _ in range(50):
        clock.now_s += 100
        backoff.failed(GONE)
        backoff.progress()
    assert _failures(clock, backoff, 0.0) == 10
