"""How long to retry against a cluster: `Backoff` for one question, `ProgressBackoff` for a task of many steps.

Sleep, clock and randomness are arguments.
"""

import random
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass

from logkeep.errors import ClusterError

_LEAST_FAILURES, _WITHOUT_PROGRESS_S = 2, 120.0

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


class ProgressBackoff:
    """Waits after each failure of a task, and aborts after 10 failures, or 2 minutes, without progress.

    Time counts as well, because a broker that hangs makes every single request last until its timeout.
    """

    def __init__(self, pause: Pause, clock: Callable[[], float] = time.monotonic) -> None:
        self.pause, self.clock = pause, clock
        self.progress()

    def progress(self) -> None:
        self._failures, self._since = 0, self.clock()

    def failed(self, error: ClusterError) -> None:
        """Wait after a failure; raise it when it is one too many."""
        self._failures += 1
        too_long = self._failures >= _LEAST_FAILURES and self.clock() - self._since > _WITHOUT_PROGRESS_S
        if self._failures > _STEPS.attempts or too_long:
            raise error
        self.pause(_STEPS.wait_s(self._failures))
