"""Whether the cut of a backup is consistent: no partition has a command inside whose cause is outside. Pure.

Only positions and contents of records count, never a checkpoint id. A command is *proven* if its cause is inside, an
*orphan* if its earliest cause is after the checkpoint of its partition, or nowhere in a log that is complete from its
first entry. If that log was compacted, or could not be read, the command is *inconclusive*. Commands that no rule
describes are *unchecked*, and counted by value type and intent.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import msgspec
import numpy as np

from logkeep.checkpoint.zeebe.cut_rows import (
    ACKNOWLEDGED,
    CUT_COLUMNS,
    DISTRIBUTED,
    FIRST,
    IS_CAUSE,
    KNOWN_DISTRIBUTED,
    OTHER,
    PAIR,
    POSITION,
    RULE,
    SECOND,
    UNKNOWN,
)
from logkeep.formats.zeebe.frame_kernels import Longs

_NOWHERE = np.iinfo(np.int64).max
_MOST_NAMED = 100


@dataclass(frozen=True)
class LogInCut:
    """One partition's part in the cut."""

    checkpoint_position: int
    from_first_entry: bool
    """The stored log begins with the first entry that the partition ever had, and was read to its end."""
    rows: Longs


class OrphanCommand(msgspec.Struct, frozen=True, kw_only=True):
    """A command inside the cut whose cause is outside."""

    partition: int
    position: int
    value_type: int
    intent: int
    cause_partition: int
    cause_position: int | None
    """Null: the cause is after the end of the stored log."""


class UncheckedPair(msgspec.Struct, frozen=True, kw_only=True):
    """Commands that no rule describes."""

    value_type: int
    intent: int
    commands: int


class CutResult(msgspec.Struct, frozen=True, kw_only=True):
    """What the records say about the cut."""

    proven: int = 0
    orphans: int = 0
    inconclusive: int = 0
    named: tuple[OrphanCommand, ...] = ()
    """The first hundred orphans."""
    unchecked: tuple[UncheckedPair, ...] = ()


def rows_of(packed: Sequence[bytes]) -> Longs:
    """Rows that tasks returned."""
    return np.frombuffer(b"".join(packed), np.int64).reshape(-1, CUT_COLUMNS)


def check_cut(logs: Mapping[int, LogInCut]) -> CutResult:
    """Check all commands inside the cut of all partitions."""
    found = [_with_partition(log.rows, number) for number, log in logs.items()]
    rows = np.concatenate(found) if found else np.empty((0, CUT_COLUMNS + 1), np.int64)
    inside = _looked_up(rows[:, CUT_COLUMNS], _ends(logs)) >= rows[:, POSITION]
    is_command = (rows[:, IS_CAUSE] == 0) & inside & (rows[:, OTHER] != rows[:, CUT_COLUMNS])
    unknown = (rows[:, IS_CAUSE] == 0) & inside & (rows[:, RULE] == UNKNOWN)
    commands, causes = rows[is_command & ~unknown], rows[rows[:, IS_CAUSE] == 1]
    return _judged(commands, _earliest(commands, causes), rows[unknown], logs)


def _with_partition(rows: Longs, number: int) -> Longs:
    return np.concatenate([rows, np.full((len(rows), 1), number, np.int64)], axis=1)


def _earliest(commands: Longs, causes: Longs) -> Longs:
    """The position of each command's earliest cause, or NOWHERE."""
    columns = [RULE, OTHER, FIRST, SECOND]
    keys = np.concatenate([commands[:, columns], causes[:, columns]])
    if not len(keys):
        return np.empty(0, np.int64)
    _, group = np.unique(keys, axis=0, return_inverse=True)
    group = group.reshape(-1)
    earliest = np.full(int(group.max()) + 1, _NOWHERE, np.int64)
    np.minimum.at(earliest, group[len(commands) :], causes[:, POSITION])
    return np.asarray(earliest[group[: len(commands)]], np.int64)


def _judged(commands: Longs, earliest: Longs, unknown: Longs, logs: Mapping[int, LogInCut]) -> CutResult:
    limits = _looked_up(commands[:, OTHER], _ends(logs))
    complete = _looked_up(commands[:, OTHER], {number: int(log.from_first_entry) for number, log in logs.items()}) == 1
    nowhere = earliest == _NOWHERE
    guessed = nowhere & (commands[:, RULE] == DISTRIBUTED) & ~_known_distributed(commands)
    guessed |= nowhere & (commands[:, RULE] == ACKNOWLEDGED) & (commands[:, OTHER] < 1)
    proven = ~nowhere & (earliest <= limits)
    orphan = ~guessed & ~proven & (~nowhere | complete)
    inconclusive = ~guessed & ~proven & ~orphan
    first = np.flatnonzero(orphan)[:_MOST_NAMED]
    named = [_orphan(row, int(cause)) for row, cause in zip(commands[first], earliest[first], strict=True)]
    return CutResult(
        proven=int(proven.sum()),
        orphans=int(orphan.sum()),
        inconclusive=int(inconclusive.sum()),
        named=tuple(named),
        unchecked=_pairs(np.concatenate([unknown, commands[guessed]])),
    )


def _ends(logs: Mapping[int, LogInCut]) -> dict[int, int]:
    return {number: log.checkpoint_position for number, log in logs.items()}


def _looked_up(numbers: Longs, answers: Mapping[int, int]) -> Longs:
    """The answer for each number, -1 where there is none."""
    known = np.array(sorted(answers), np.int64)
    values = np.array([answers[int(number)] for number in known] + [-1], np.int64)
    place = np.minimum(np.searchsorted(known, numbers), max(len(known) - 1, 0))
    found = known[place] == numbers if len(known) else np.zeros(len(numbers), np.bool_)
    return np.asarray(values[np.where(found, place, len(known))], np.int64)


def _known_distributed(commands: Longs) -> np.ndarray[tuple[int], np.dtype[np.bool_]]:
    return np.isin(commands[:, PAIR], [value_type << 8 | intent for value_type, intent in KNOWN_DISTRIBUTED])


def _orphan(row: Longs, cause: int) -> OrphanCommand:
    return OrphanCommand(
        partition=int(row[CUT_COLUMNS]),
        position=int(row[POSITION]),
        value_type=int(row[PAIR]) >> 8,
        intent=int(row[PAIR]) & 255,
        cause_partition=int(row[OTHER]),
        cause_position=None if cause == _NOWHERE else cause,
    )


def _pairs(rows: Longs) -> tuple[UncheckedPair, ...]:
    pairs, counts = np.unique(rows[:, PAIR], return_counts=True)
    return tuple(
        UncheckedPair(value_type=int(pair) >> 8, intent=int(pair) & 255, commands=int(count))
        for pair, count in zip(pairs, counts, strict=True)
    )
