"""How long to go on asking a cluster that is changing its mind. Sleep and chance come in as arguments."""

import random
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass

from logkeep.errors import ClusterError

_FIRST_PAUSE_S, _LONGEST_PAUSE_S, _TRIES = 0.1, 5.0, 10


_LEAST_TRIES, _WITHOUT_GAIN_S = 2, 120.0


Pause = Callable[[float], None]


class ProgressBackoff:
    """Waits longer each time nothing was gained, and in the end gives up: after so many failures, or so long a time.

    Time counts as well, because a broker that stands still makes every single question last until its timeout.
    """

    def __init__(self, pause: Pause, clock: Callable[[], float] = time.monotonic) -> None:
        self.pause, self._clock = pause, clock
        self.progress()

    def progress(self) -> None:
        self._failures, self._since = 0, self._clock()

    def failed(self, error: ClusterError) -> None:
        """Wait after a failure; raises it when it is one too many."""
        self._failures += 1
        too_long = self._failures >= _LEAST_TRIES and self._clock() - self._since > _WITHOUT_GAIN_S
        if self._failures > _TRIES or too_long:
            raise error
        self.pause(min(_FIRST_PAUSE_S * 2 ** (self._failures - 1), _LONGEST_PAUSE_S))


@dataclass(frozen=True)
class Backoff:
    """Waits double from the first to the longest, each shortened by chance to as little as half of it."""

    attempts: int = 10
    first_wait_s: float = 0.1
    longest_wait_s: float = 5.0
    sleep: Callable[[float], None] = time.sleep
    chance: Callable[[], float] = random.random

    def tries(self) -> Iterator[int]:
        """0, 1, 2 … with a wait before each but the first."""
        for number in range(self.attempts):
            if number:
                self.sleep(self.wait_s(number))
            yield number

    def wait_s(self, number: int) -> float:
        longest = min(self.longest_wait_s, self.first_wait_s * 2.0 ** (number - 1))
        return longest * (0.5 + self.chance() / 2)
