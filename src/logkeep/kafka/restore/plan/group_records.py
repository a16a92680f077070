"""Whether archived offsets are valid in a topic with another id: decided by the records around each of them. Pure.

A topic that was deleted and created again has the old name and offsets from 0 on: an offset alone says nothing.
"""

from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass, replace

from logkeep.kafka.client.topology import TopicPartition
from logkeep.kafka.restore.facts.neighbour_records import RecordsAround
from logkeep.kafka.restore.plan.group_offsets import Reason, TranslatedOffset
from logkeep.kafka.restore.plan.groups import GroupsPlan, PlannedGroup

Doubt = Callable[[TopicPartition, int], Reason | None]
"""Why an offset of a target partition is not exact; None: the records are the same."""


def find_doubt(archived: RecordsAround, live: RecordsAround, log_start: int, log_end: int) -> Reason | None:
    """Why an offset is not certain; None if it is. Compares the last archived record below the offset and, where both
    sides have one, the first record at or above it."""
    below = archived.below if archived.below and log_start <= archived.below.offset < log_end else None
    above = archived.above if live.above else None
    if below is None and above is None:
        return Reason.UNPROVEN
    same = (below is None or below == live.below) and (above is None or above == live.above)
    return None if same else Reason.DIFFERENT


def with_doubts(plan: GroupsPlan, recreated: Collection[TopicPartition], why: Doubt) -> GroupsPlan:
    """The plan with the offsets in these partitions checked; offsets that are not exact anyway keep their reason."""

    def checked(placed: TranslatedOffset) -> TranslatedOffset:
        reason = why(placed.target, placed.offset) if placed.exact and placed.target in recreated else None
        return placed if reason is None else replace(placed, reason=reason)

    def group(each: PlannedGroup) -> PlannedGroup:
        positions = replace(each.positions, placed=tuple(map(checked, each.positions.placed)))
        return replace(each, positions=positions)

    return replace(plan, groups=tuple(map(group, plan.groups)))


@dataclass(frozen=True)
class KeptOffsets:
    """A partition that a restore filled with records at their own offsets: they are valid up to its end."""

    topic_id: str
    end: int


def recreated_logs(wanted: Mapping[TopicPartition, str], present: Mapping[str, str]) -> frozenset[TopicPartition]:
    """Target partitions whose topic has another id than the archived one. `wanted`: the archived id, `present`: ids by
    topic; both in hex."""
    return frozenset(log for log, archived in wanted.items() if present.get(log.topic, archived) != archived)
