"""A clock whose pauses take no time: it runs ahead of the real one by what was paused."""

import time


class ClockAhead:
    def __init__(self) -> None:
        self.ahead_s = 0.0

    def __call__(self) -> float:
        return time.monotonic() + self.ahead_s

    def pause(self, seconds: float) -> None:
        self.ahead_s += seconds
