"""What goes wrong, and when.

A plan is asked before every store call: `plan(call_number, operation, name) -> Fault | None`. Calls are numbered from
1 in the order in which they are made; stream writes, closes and aborts are calls like any other. Operations:
`put_new replace open_new write close abort copy_new get get_with_info get_range head list delete`.
"""

import random
from collections.abc import Callable, Mapping
from dataclasses import dataclass

from logkeep.errors import LogkeepError, StoreBusy, StoreDenied, StoreUnreachable


@dataclass(frozen=True)
class Fault:
    """What happens to one call. Several may be set."""

    before: LogkeepError | None = None
    """Raised instead of calling the store."""
    after: LogkeepError | None = None
    """Raised although the call succeeded: the answer was lost. A listing breaks after `items` names."""
    items: int | None = None
    """How many names a listing gives before `after` is raised; None = all."""
    delay_s: float = 0.0
    truncate_to: int | None = None
    """A read gives only its first bytes."""
    flip_at: int | None = None
    """One bit of the byte at this place of a read is wrong (counted round, so any number will do)."""
    hide_newest: int = 0
    """A listing does not show the names written last, so many of them."""
    kill: bool = False
    """The process is killed (SIGKILL) when the call has returned, before its caller learns of it."""


Plan = Callable[[int, str, str], Fault | None]


def no_faults(call_number: int, operation: str, name: str) -> Fault | None:
    return None


def unreachable() -> LogkeepError:
    return StoreUnreachable("the store answered 500 InternalError")


def error_before(error: LogkeepError | None = None) -> Fault:
    return Fault(before=error or unreachable())


def lost_ack(error: LogkeepError | None = None) -> Fault:
    return Fault(after=error or unreachable())


def denied_403() -> Fault:
    return Fault(before=StoreDenied("the store answered 403 AccessDenied"))


def busy_429() -> Fault:
    return Fault(before=StoreBusy("the store answered 429"))


def busy_503() -> Fault:
    return Fault(before=StoreBusy("the store answered 503 SlowDown"))


@dataclass(frozen=True)
class Scripted:
    """Faults by call number."""

    faults: Mapping[int, Fault]

    def __call__(self, call_number: int, operation: str, name: str) -> Fault | None:
        return self.faults.get(call_number)


@dataclass(frozen=True)
class KillAfter:
    """The process is killed after call number `n`. A process that is killed sooner never gets there."""

    n: int

    def __call__(self, call_number: int, operation: str, name: str) -> Fault | None:
        return Fault(kill=True) if call_number == self.n else None


@dataclass(frozen=True)
class Seeded:
    """Passing faults at random, the same for the same seed: busy, unreachable before, and lost answers."""

    seed: int
    rate: float

    def __call__(self, call_number: int, operation: str, name: str) -> Fault | None:
        chance = random.Random(f"{self.seed}:{call_number}")
        if chance.random() >= self.rate:
            return None
        return chance.choice((busy_429, busy_503, error_before, lost_ack))()
