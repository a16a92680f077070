"""Moments by a clock that is named: times of two clocks are never subtracted from each other."""

from enum import StrEnum
from typing import Protocol

import msgspec


class ClockName(StrEnum):
    BROKER = "broker"
    OWN = "own"
    """Of a machine that ran the backup, or one of its tasks."""


class ClockTime(msgspec.Struct, frozen=True, forbid_unknown_fields=True, omit_defaults=True):
    """Milliseconds since 1970 by one clock."""

    ms: int
    clock: ClockName
    host: str = ""
    """Whose own clock: the boot id of the machine, or its name. Empty for the cluster's clock."""


class TimeReading(Protocol):
    """Times with the clock that they were read from."""

    @property
    def clock(self) -> ClockName: ...
    @property
    def host(self) -> str: ...


def same_clock(one: TimeReading, other: TimeReading) -> bool:
    """Whether times of both may be subtracted. An own clock without a host is like no other."""
    if one.clock is not other.clock or one.host != other.host:
        return False
    return one.clock is ClockName.BROKER or bool(one.host)
