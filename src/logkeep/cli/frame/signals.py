"""Signals as exceptions: SIGTERM raises a KeyboardInterrupt, like Ctrl-C, which no `except Exception` catches."""

import signal
from collections.abc import Iterator
from contextlib import contextmanager
from types import FrameType
from typing import NoReturn

from logkeep.errors import Interrupted, Terminated


class SigtermReceived(KeyboardInterrupt):
    """SIGTERM. A KeyboardInterrupt, so that both signals get the same clean-up."""


def listen() -> None:
    """Make SIGTERM raise SigtermReceived in the main thread."""
    signal.signal(signal.SIGTERM, _raise)


def as_error(stop: BaseException) -> Interrupted:
    return Terminated("ended by SIGTERM") if isinstance(stop, SigtermReceived) else Interrupted()


@contextmanager
def after_a_signal(remedy: str) -> Iterator[None]:
    """Say what to do after a signal in this block, where the usual advice does not fit."""
    try:
        yield
    except (KeyboardInterrupt, Interrupted) as stop:
        ended = stop if isinstance(stop, Interrupted) else as_error(stop)
        ended.remedy = remedy
        raise ended from None


def _raise(_signal: int, _frame: FrameType | None) -> NoReturn:
    raise SigtermReceived
