"""Checks of every promise of a partition's log.

`run_log_checks(make, directory)` runs all of them; `make(directory)` opens or creates the log in a directory of its
own, as leader, with small segments if it has any. A check returns None if the promise was kept, or how it was broken.
"""

from collections.abc import Callable
from pathlib import Path

from logkeep.checkpoint.conformance.state_checks import PromiseCheck, PromiseOutcome, run_each
from logkeep.checkpoint.log import PartitionLog
from logkeep.checkpoint.records import Record, command
from logkeep.errors import Locked, LogkeepError
from logkeep.formats.plain_batches import walk
from logkeep.model.plurals import plural

MakeLog = Callable[[Path], PartitionLog]
_LARGE = 1 << 30


def run_log_checks(make: MakeLog, directory: Path) -> list[PromiseOutcome]:
    return run_each(_CHECKS, make, directory)


def _begins_empty(make: MakeLog, directory: Path) -> str | None:
    log = make(directory)
    found = log.start, log.end, log.read(0, _LARGE), list(log.batches(0, 0)), log.batch_start(0)
    log.close()
    log.close()
    return None if found == (0, 0, [], [], 0) else f"a new log has {found}"


def _reads_back(make: MakeLog, directory: Path) -> str | None:
    log = make(directory)
    appended = _fill(log, 40)
    problem = _compare(log.read(0, _LARGE), appended)
    some = [(one, log.read(one.position, 1)) for one in appended[::4]]
    log.close()
    if problem or any(not part or part[0] != one for one, part in some):
        return problem or "a read from the middle does not begin there"
    again = make(directory)
    problem = _compare(again.read(0, _LARGE), appended)
    again.close()
    return problem and f"after a restart: {problem}"


def _batches_tile(make: MakeLog, directory: Path) -> str | None:
    log = make(directory)
    appended = _fill(log, 40)
    ends = {log.batch_start(one.position) for one in appended[::8]} | {log.end}
    for start in sorted(ends):
        covered = [header for piece in log.batches(start, log.end) for _, header in walk(piece)]
        positions = [position for one in covered for position in range(one.base_offset, one.end_offset)]
        if positions != list(range(start, log.end)):
            return f"the batches from {start} cover {positions[:3]} …"
    log.close()
    return None


def _terms_grow(make: MakeLog, directory: Path) -> str | None:
    terms = []
    for number in range(3):
        log = make(directory)
        terms.append(log.term)
        if number:
            _fill(log, 1)
        log.close()
    return None if terms == sorted(set(terms)) else f"leaders have the terms {terms}"


def _one_leader(make: MakeLog, directory: Path) -> str | None:
    first = make(directory)
    _fill(first, 3)
    try:
        second = make(directory)
    except Locked:
        first.close()
        return None
    try:  # a log may admit a new leader at any time, but then the old one is fenced
        first.append([_record(0)])
    except Locked:
        return None
    finally:
        second.close()
        first.close()
    return "two leaders appended to the same log"


def _closed_is_fenced(make: MakeLog, directory: Path) -> str | None:
    log = make(directory)
    _fill(log, 2)
    expected = log.end
    log.close()
    try:
        log.append([_record(0)])
    except (LogkeepError, OSError, IndexError):
        again = make(directory)
        end = again.end
        again.close()
        return None if end == expected else f"the log ends at {end} instead of {expected}"
    return "a closed log appended a record"


def _compacts(make: MakeLog, directory: Path) -> str | None:
    log = make(directory)
    appended = _fill(log, 60)
    for before in range(0, log.end, 13):
        start = log.compact(before)
        if start > before or start != log.start:
            return f"compaction before {before} left positions from {start} on"
        if problem := _compare(log.read(start, _LARGE), [one for one in appended if one.position >= start]):
            return f"after compaction before {before}: {problem}"
    start, end = log.start, log.end
    log.close()
    again = make(directory)
    found = again.start, again.end, again.append([_record(0)])
    again.close()
    return None if found == (start, end, end) else f"after compaction and restart the log has {found}"


def _fill(log: PartitionLog, count: int) -> list[Record]:
    """Batches of one to three records."""
    appended: list[Record] = []
    for number in range(count):
        batch = [_record(number * 10 + n) for n in range(number % 3 + 1)]
        first = log.append(batch)
        appended += [one.at(first + n, one.timestamp_ms) for n, one in enumerate(batch)]
    return appended


def _record(number: int) -> Record:
    value = bytes([number % 256]) * (number % 300)
    return command("name", f"key {number}", value, request=f"r{number}").at(-1, 1_700_000_000_000 + number % 7)


def _compare(found: list[Record], expected: list[Record]) -> str | None:
    if found == expected:
        return None
    differing = [n for n, pair in enumerate(zip(found, expected, strict=False)) if pair[0] != pair[1]]
    return f"{len(found)} of {plural(len(expected), 'record')}, the first different one is {differing[:1]}"


_CHECKS: dict[str, PromiseCheck[MakeLog]] = {
    "a new log is empty": _begins_empty,
    "records are read back as they were appended, also after a restart": _reads_back,
    "raw batches cover every range once": _batches_tile,
    "each leader has a larger term": _terms_grow,
    "there is one leader": _one_leader,
    "a closed log appends nothing": _closed_is_fenced,
    "compaction removes only what is before the position": _compacts,
}
