"""A time and the clock that it was read from: times of two clocks are never subtracted from each other."""

from enum import StrEnum

import msgspec


class ClockName(StrEnum):
    BROKER = "broker"
    OWN = "own"
    """Of the machine that ran the backup, or one of its tasks."""


class ClockTime(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """Milliseconds since 1970 by one clock."""

    ms: int
    clock: ClockName
