"""When the offsets of a log were read: two moments of the cluster's clock around all fetches of a unit. Pure."""

from collections.abc import Iterable

import msgspec

from logkeep.model.clock_time import ClockName, ClockTime, same_clock


class ReadTimes(msgspec.Struct, frozen=True, forbid_unknown_fields=True, omit_defaults=True):
    """`begin_ms` was read before the first fetch, `end_ms` after the last one."""

    begin_ms: int
    end_ms: int
    clock: ClockName
    host: str = ""
    """The machine whose own clock was read; empty for the cluster's clock."""


def times_between(begin: ClockTime | None, end: ClockTime | None) -> ReadTimes | None:
    """The times around a read; None if one is missing, or if they are of different clocks."""
    if begin is None or end is None or not same_clock(begin, end):
        return None
    return ReadTimes(begin.ms, end.ms, begin.clock, begin.host)


def all_times(some: Iterable[ReadTimes | None]) -> ReadTimes | None:
    """The time from the earliest to the latest; None if one is not known, or if the clocks differ."""
    each = list(some)
    known = [times for times in each if times is not None]
    if not known or len(known) < len(each) or not all(same_clock(known[0], times) for times in known):
        return None
    first = known[0]
    return ReadTimes(min(t.begin_ms for t in known), max(t.end_ms for t in known), first.clock, first.host)
