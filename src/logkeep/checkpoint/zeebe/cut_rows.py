"""The records that say how partitions depend on each other, as rows. Pure.

A command that another partition sent has no source position and no request. Nothing in it names the record that caused
it, but fields of both agree: `RULES` has what is known of Zeebe 8.6. A row has the command or the cause, the partition
that has the other one, and what they agree on. Commands that no rule describes get the rule UNKNOWN.
"""

from dataclasses import dataclass

import numpy as np

from logkeep.formats.zeebe import frame_kernels as kernels
from logkeep.formats.zeebe.frame_kernels import Longs
from logkeep.formats.zeebe.records import MISSING, ValueType, ZeebeRecordType, fields
from logkeep.formats.zeebe.segment_scan import SegmentBlock

POSITION, IS_CAUSE, RULE, OTHER, FIRST, SECOND, PAIR = range(7)
"""OTHER: the partition that has the cause of a command, for a cause its own. PAIR: value type and intent."""
CUT_COLUMNS = 7
UNKNOWN, DISTRIBUTED, ACKNOWLEDGED = -1, 100, 101
_FIELDS = ("processInstanceKey", "elementInstanceKey", "messageName", "subscriptionPartitionId", "partitionId")
_PROCESS, _ELEMENT, _MESSAGE, _SUBSCRIPTION, _PARTITION = range(5)
_KEY_BITS = 51
_DISTRIBUTING, _ACKNOWLEDGE = 1, 2


@dataclass(frozen=True)
class MessageRule:
    """A command about a subscription, and the event on the other partition that caused it."""

    command: tuple[int, int]
    cause: tuple[int, int]
    by_key: bool
    """The other partition is that of the process instance's key; otherwise the value names it."""


_SUB, _PROCESS_SUB = ValueType.MESSAGE_SUBSCRIPTION, ValueType.PROCESS_MESSAGE_SUBSCRIPTION
RULES = (
    MessageRule((_SUB, 0), (_PROCESS_SUB, 0), by_key=True),  # CREATE, because of CREATING
    MessageRule((_PROCESS_SUB, 1), (_SUB, 1), by_key=False),  # CREATE, because of CREATED
    MessageRule((_PROCESS_SUB, 3), (_SUB, 8), by_key=False),  # CORRELATE, because of CORRELATING
    MessageRule((_SUB, 2), (_PROCESS_SUB, 4), by_key=True),  # CORRELATE, because of CORRELATED
)
"""With the intents of Zeebe 8.6 as numbers."""
KNOWN_DISTRIBUTED = frozenset({(int(ValueType.DEPLOYMENT), 0)})
"""Pairs that are always distributed: one whose cause is nowhere is an orphan, not an unknown command."""


@dataclass(frozen=True)
class CutRows:
    rows: Longs
    unreadable: int = 0
    first_unreadable: int = -1


def cut_rows(block: SegmentBlock, partition: int) -> CutRows:
    """Commands that another partition may have sent, and causes of such commands, among the rows of a block."""
    rows = block.rows[block.rows[:, kernels.VALUE_TYPE] != ValueType.CHECKPOINT]
    values, wrong = fields(block.buffer, rows, _FIELDS)
    made = [*_messages(rows, values, partition), _distribution(rows, values, partition), _others(rows, partition)]
    first = -1 if wrong is None else int(rows[wrong, kernels.POSITION])
    return CutRows(np.concatenate(made), int(wrong is not None), first)


def _messages(rows: Longs, values: Longs, partition: int) -> list[Longs]:
    found = list[Longs]()
    for number, rule in enumerate(RULES):
        agreed = (values[:, _ELEMENT], values[:, _MESSAGE])
        other = values[:, _PROCESS] >> _KEY_BITS if rule.by_key else values[:, _SUBSCRIPTION]
        commands = _is(rows, ZeebeRecordType.COMMAND, *rule.command)
        causes = _is(rows, ZeebeRecordType.EVENT, *rule.cause)
        found.append(_new_rows(rows, commands, number, other, agreed))
        found.append(_new_rows(rows, causes, number, np.full(len(rows), partition), agreed, is_cause=True))
    return found


def _distribution(rows: Longs, values: Longs, partition: int) -> Longs:
    """DISTRIBUTING names the partition it sends to; ACKNOWLEDGE the one that acknowledges."""
    key, target, here = rows[:, kernels.KEY], values[:, _PARTITION], np.full(len(rows), partition)
    sends = _is(rows, ZeebeRecordType.EVENT, ValueType.COMMAND_DISTRIBUTION, _DISTRIBUTING)
    answers = _is(rows, ZeebeRecordType.COMMAND, ValueType.COMMAND_DISTRIBUTION, _ACKNOWLEDGE)
    return np.concatenate(
        [
            _new_rows(rows, sends, DISTRIBUTED, here, (key, target), is_cause=True),
            _new_rows(rows, answers, ACKNOWLEDGED, target, (key, here * 0)),
        ]
    )


def _others(rows: Longs, partition: int) -> Longs:
    """Commands of no rule above: distributed ones, by their keys, and those that nothing is known about."""
    known = [rule.command for rule in RULES] + [(int(ValueType.COMMAND_DISTRIBUTION), _ACKNOWLEDGE)]
    commands = rows[:, kernels.RECORD_TYPE] == ZeebeRecordType.COMMAND
    for value_type, intent in known:
        commands &= ~_is(rows, ZeebeRecordType.COMMAND, value_type, intent)
    key, here = rows[:, kernels.KEY], np.full(len(rows), partition)
    origin = key >> _KEY_BITS
    sent = commands & (key >= 0) & (origin != partition)
    return np.concatenate(
        [
            _new_rows(rows, sent, DISTRIBUTED, origin, (key, here)),
            _new_rows(rows, sent, ACKNOWLEDGED, here, (key, here * 0), is_cause=True),
            _new_rows(rows, commands & ~sent, UNKNOWN, here, (key, here * 0)),
        ]
    )


def _is(rows: Longs, record_type: int, value_type: int, intent: int) -> np.ndarray[tuple[int], np.dtype[np.bool_]]:
    columns = ((kernels.RECORD_TYPE, record_type), (kernels.VALUE_TYPE, value_type), (kernels.INTENT, intent))
    chosen = np.ones(len(rows), np.bool_)
    for column, expected in columns:
        chosen &= rows[:, column] == expected
    return chosen


def _new_rows(
    rows: Longs, chosen: np.ndarray[tuple[int], np.dtype[np.bool_]], rule: int, other: Longs,
    agreed: tuple[Longs, Longs], *, is_cause: bool = False,
) -> Longs:  # fmt: skip
    made = np.empty((int(chosen.sum()), CUT_COLUMNS), np.int64)
    made[:, POSITION], made[:, IS_CAUSE] = rows[chosen, kernels.POSITION], is_cause
    made[:, OTHER], made[:, FIRST], made[:, SECOND] = other[chosen], agreed[0][chosen], agreed[1][chosen]
    made[:, PAIR] = rows[chosen, kernels.VALUE_TYPE] << 8 | rows[chosen, kernels.INTENT]
    incomplete = (made[:, FIRST] == MISSING) | (made[:, SECOND] == MISSING) | (made[:, OTHER] < 1)
    made[:, RULE] = np.where(incomplete, UNKNOWN, rule)
    return made if not is_cause else made[~incomplete]
