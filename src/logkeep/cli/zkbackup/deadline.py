"""A time limit on work that nobody else can stop: an alarm of the process, for as long as the block lasts."""

import signal
from collections.abc import Iterator
from contextlib import contextmanager
from types import FrameType
from typing import NoReturn

from logkeep.errors import VerificationFailed


@contextmanager
def at_most(seconds: int | None) -> Iterator[None]:
    """Raises VerificationFailed in the main thread when the time is over: what was not finished proves nothing."""
    if seconds is None:
        yield
        return

    def over(_signal: int, _frame: FrameType | None) -> NoReturn:
        raise VerificationFailed(
            f"the verification was not finished within {seconds} s",
            remedy="raise advanced.validation_timeout, or leave it out: then there is no limit",
        )

    earlier = signal.signal(signal.SIGALRM, over)
    signal.setitimer(signal.ITIMER_REAL, seconds)
    try:
        yield
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
        signal.signal(signal.SIGALRM, earlier)
