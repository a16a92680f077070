"""Which offsets a table reads of each log, by the options of Spark's Kafka source. Pure.

A time means what it means to a Kafka client: the first record, in the order of offsets, with this time or a later one.
Records with an earlier time may follow it, and are read.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass

from logkeep.errors import UsageError
from logkeep.kafka.tables.options import EARLIEST, LATEST, RangeEnd, TableOptions
from logkeep.model.ranges import Range
from logkeep.model.segments import LogName

FirstAt = Callable[[LogName, int], int | None]
"""The first offset of a log whose record has this time (ms) or a later one."""


@dataclass(frozen=True)
class _Log:
    name: LogName
    held: Range


def wanted_ranges(logs: Mapping[LogName, Range], options: TableOptions, first_at: FirstAt) -> dict[LogName, Range]:
    """What to read of each log, which holds `[start, end)`. Raises UsageError."""
    _require_all(logs, options.start, "starting")
    _require_all(logs, options.end, "ending")
    wanted = {}
    for name, held in logs.items():
        log = _Log(name, held)
        start, end = _start(log, options, first_at), _end(log, options, first_at)
        wanted[name] = Range(start, max(start, end))
    return wanted


def _require_all(logs: Mapping[LogName, Range], end: RangeEnd, which: str) -> None:
    """If numbers are given by partition, raise UsageError unless they are given for exactly the partitions that are
    read. Spark's Kafka source requires the same."""
    if not end.each:
        return
    given = {(topic, partition) for topic, some in end.each.items() for partition in some}
    read = {(log.name, log.partition) for log in logs}
    for topic, partition in sorted(read - given):
        raise UsageError(
            f"{which}Offsets has no number for {topic}/{partition}",
            remedy=f"name every partition; {EARLIEST} is the earliest offset and {LATEST} the latest",
        )
    for topic, partition in sorted(given - read):
        raise UsageError(
            f"{which}Offsets has a number for {topic}/{partition}, which is not read", remedy="leave it out"
        )


def _start(log: _Log, options: TableOptions, first_at: FirstAt) -> int:
    number = _number(log, options.start)
    if not options.start.is_time or number == EARLIEST:
        return _inside(log, number, options, "starting")
    found = first_at(log.name, number)
    if found is None and not options.late_start_is_end:
        raise UsageError(
            f"no record of {log.name} has the time {number} or a later one",
            remedy="set startingOffsetsByTimestampStrategy to latest to read nothing of such a partition",
        )
    return log.held.end if found is None else found


def _end(log: _Log, options: TableOptions, first_at: FirstAt) -> int:
    number = _number(log, options.end)
    if not options.end.is_time or number == LATEST:
        return _inside(log, number, options, "ending")
    found = first_at(log.name, number)
    return log.held.end if found is None else found


def _number(log: _Log, end: RangeEnd) -> int:
    return end.each[log.name.name][log.name.partition] if end.each else end.everywhere


def _inside(log: _Log, offset: int, options: TableOptions, which: str) -> int:
    """The offset itself, unless the backup does not hold it."""
    if offset in {EARLIEST, LATEST}:
        return log.held.start if offset == EARLIEST else log.held.end
    inside = min(max(offset, log.held.start), log.held.end)
    if inside != offset and options.fail_on_data_loss:
        raise UsageError(
            f"{which}Offsets has {offset} for {log.name}, of which the backup holds [{log.held.start}, {log.held.end})",
            remedy="use offsets inside, or set failOnDataLoss to false to read what is there",
        )
    return inside
