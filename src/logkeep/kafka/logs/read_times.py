"""When the offsets of a log were read: two moments of the cluster's clock around all fetches of a unit. Pure."""

from collections.abc import Iterable

import msgspec

from logkeep.model.clock_time import ClockName, ClockTime


class ReadTimes(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """`begin_ms` was asked before the first fetch, `end_ms` after the last one."""

    begin_ms: int
    end_ms: int
    clock: ClockName


def times_between(begin: ClockTime | None, end: ClockTime | None) -> ReadTimes | None:
    """None if a moment is missing, or the two are of different clocks."""
    if begin is None or end is None or begin.clock is not end.clock:
        return None
    return ReadTimes(begin.ms, end.ms, begin.clock)


def all_times(some: Iterable[ReadTimes | None]) -> ReadTimes | None:
    """From the earliest to the latest; None if one is not known, or the clocks differ."""
    each = list(some)
    known = [times for times in each if times is not None]
    if not known or len(known) < len(each) or len({times.clock for times in known}) > 1:
        return None
    return ReadTimes(min(t.begin_ms for t in known), max(t.end_ms for t in known), known[0].clock)
