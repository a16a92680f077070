"""Signals as exceptions. SIGTERM arrives like Ctrl-C does, so that nothing that catches errors can swallow it."""

import signal
from types import FrameType
from typing import NoReturn

from logkeep.errors import Interrupted, Terminated


class SigtermReceived(KeyboardInterrupt):
    """SIGTERM; a KeyboardInterrupt, because whoever cleans up after the one must clean up after the other."""


def listen() -> None:
    """From now on SIGTERM raises SigtermReceived in the main thread."""
    signal.signal(signal.SIGTERM, _arrived)


def as_error(stop: BaseException) -> Interrupted:
    return Terminated("ended by SIGTERM") if isinstance(stop, SigtermReceived) else Interrupted()


def _arrived(_signal: int, _frame: FrameType | None) -> NoReturn:
    raise SigtermReceived
