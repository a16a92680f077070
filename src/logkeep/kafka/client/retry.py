"""How long to retry against a cluster: `Backoff` for one question, `ProgressBackoff` for a task of many steps.

Sleep, clock and randomness are arguments.
"""

import math
import random
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import TypeVar

from logkeep.errors import ClusterError, ClusterNotReady, ClusterUnreachable

_LEAST_FAILURES = 2
T = TypeVar("T")
Pause = Callable[[float], None]


@dataclass(frozen=True)
class Backoff:
    """A number of attempts. The wait doubles from the first to the longest; jitter shortens it by up to a half."""

    attempts: int = 10
    first_wait_s: float = 0.1
    longest_wait_s: float = 5.0
    sleep: Pause = time.sleep
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


_STEPS = Backoff(chance=lambda: 1.0)


@dataclass(frozen=True)
class StallLimit:
    """How long a task continues without progress: so many failures, or so many seconds.

    Time counts as well, because a broker that hangs makes every single request last until its timeout.
    """

    failures: float = 10
    seconds: float = 120.0


USUAL = StallLimit()
RESTART = StallLimit(failures=math.inf, seconds=240.0)
"""A restore waits for a broker that is restarted: it recovers its logs for minutes, and its partitions may have no
other replica. An engine tries a task several times, so that a restore waits for some multiple of this."""


class ProgressBackoff:
    """Waits after each failure of a task, and aborts at a limit of failures or time without progress."""

    def __init__(self, pause: Pause, clock: Callable[[], float] = time.monotonic, limit: StallLimit = USUAL) -> None:
        self.pause, self.clock, self._limit = pause, clock, limit
        self.progress()

    def progress(self) -> None:
        self._failures, self._paused_s, self._since = 0, 0.0, self.clock()

    def failed(self, error: ClusterError, limit: StallLimit | None = None) -> None:
        """Wait after a failure; raise it when it is one too many."""
        most = limit or self._limit
        self._failures += 1
        lasted_s = max(self.clock() - self._since, self._paused_s)
        if self._failures > most.failures or (self._failures >= _LEAST_FAILURES and lasted_s > most.seconds):
            raise error
        wait_s = _STEPS.wait_s(self._failures)
        self._paused_s += wait_s
        self.pause(wait_s)

    def repeat(self, step: Callable[[], T]) -> T:
        """The result of a step, which is repeated while its failure is a temporary one."""
        while True:
            try:
                done = step()
            except (ClusterUnreachable, ClusterNotReady) as error:
                self.failed(error)
            else:
                self.progress()
                return done
