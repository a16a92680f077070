"""The arguments of a conformance check: a store, a prefix, a clock, and how much to do."""

import copy
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from threading import Barrier
from typing import TypeVar

from logkeep.errors import LogkeepError
from logkeep.model.time import Clock
from logkeep.store.base import Store
from logkeep.store.retrying import RetryingStore

T = TypeVar("T")


@dataclass(frozen=True)
class Scale:
    """How much a run of the checks writes."""

    keys: int
    """Objects in the listing; more than 1,000 make servers send several pages."""
    racers: int
    races: int
    stream_bytes: int


QUICK = Scale(keys=30, racers=4, races=6, stream_bytes=12 << 20)
"""For a user's store: some 200 requests and 40 MiB. Some servers let each loser of a race wait for a second."""


@dataclass(frozen=True)
class Trial:
    """A store and the prefix of one check."""

    store: Store
    prefix: str
    clock: Clock
    scale: Scale

    def name(self, leaf: str) -> str:
        return self.prefix + leaf

    def listed(self, below: str = "", after: str = "") -> list[str]:
        """Names below the prefix, without it."""
        found = self.store.list(self.prefix + below, self.name(after) if after else "")
        return [info.name.removeprefix(self.prefix) for info in found]


def raises(kind: type[LogkeepError], call: Callable[[], object]) -> str | None:
    """None if the call raises this kind of error, else what happened instead."""
    try:
        call()
    except LogkeepError as error:
        return None if isinstance(error, kind) else f"was answered with {error.slug()} instead of {kind.slug()}"
    return f"was accepted instead of refused with {kind.slug()}"


def race(racers: Sequence[Store], attempt: Callable[[Store, int], None], lost: type[LogkeepError]) -> list[int]:
    """Start an attempt of every racer at once, each with its own connections; returns the numbers of those that won.

    An attempt that raises `lost` has lost. If a store answers "busy" (S3 does: 409), the retrying wrapper finds out who
    won, as for a real writer. Any other error ends the race and is raised.
    """
    gate = Barrier(len(racers))

    def run(number: int) -> bool:
        own = RetryingStore(racers[number])
        gate.wait(timeout=60)
        try:
            attempt(own, number)
        except lost:
            return False
        return True

    with ThreadPoolExecutor(len(racers)) as pool:
        results = list(pool.map(run, range(len(racers))))
    return [number for number, won in enumerate(results) if won]


def another(store: T) -> T:
    """A second store at the same address with its own connections; the same one if it cannot be copied (memory)."""
    try:
        return copy.deepcopy(store)
    except TypeError:
        return store


def pattern(size_bytes: int, seed: int = 7) -> bytes:
    """Bytes in which a swapped, missing or repeated part is noticed."""
    block = b"".join(((seed + i) * 2_654_435_761 % 2**64).to_bytes(8, "big") for i in range(8_191))
    return (block * (size_bytes // len(block) + 1))[:size_bytes]
