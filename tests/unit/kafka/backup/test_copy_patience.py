"""When a copy gives up asking: after many failures, or after a long time without anything gained."""

import pytest

from logkeep.errors import ClusterUnreachable
from logkeep.kafka.client.retry import ProgressBackoff

GONE = ClusterUnreachable("nobody answers")


class Clock:
    def __init__(self) -> None:
        self.now_s = 0.0

    def __call__(self) -> float:
        return self.now_s

    def pause(self, seconds: float) -> None:
        self.now_s += seconds


def _failures(clock: Clock, patience: ProgressBackoff, each_takes_s: float) -> int:
    """How many failures in a row are borne."""
    for number in range(1000):
        clock.now_s += each_takes_s
        try:
            patience.failed(GONE)
        except ClusterUnreachable:
            return number
    raise AssertionError("it never gives up")


@pytest.mark.parametrize(("each_takes_s", "borne"), [(0.0, 10), (0.5, 10), (30.0, 3), (1000.0, 1)])
def test_giving_up(each_takes_s: float, borne: int) -> None:
    clock = Clock()
    assert _failures(clock, ProgressBackoff(clock.pause, clock), each_takes_s) == borne


def test_anything_gained_counts_anew() -> None:
    clock = Clock()
    patience = ProgressBackoff(clock.pause, clock)
    for _ in range(50):
        clock.now_s += 100
        patience.failed(GONE)
        patience.progress()
    assert _failures(clock, patience, 0.0) == 10
