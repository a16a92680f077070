"""How long to go on asking a cluster that is changing its mind. Sleep and chance come in as arguments."""

import random
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass


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
