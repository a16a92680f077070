"""Trims: from which position on the backups before a certain one still have a log. Pure.

A floor of a log is dropped when a later trim exceeds it, and a trim is dropped when no backup before it is left.
"""

from collections.abc import Iterable, Mapping

import msgspec

from logkeep.model.ids import StoredId
from logkeep.model.segments import LogName
from logkeep.repository.chain.actions import TrimAction, TrimmedTopic


class Trim(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """Backups with an id below `before` begin at these positions, or later."""

    before: StoredId
    topics: tuple[TrimmedTopic, ...]


class TrimmedAway(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """What all trims together took from a backup."""

    segments: int
    records: int
    stored_bytes: int


def floors_of(trims: Iterable[Trim]) -> dict[LogName, int]:
    """The first position that stays, by log."""
    found: dict[LogName, int] = {}
    for trim in trims:
        for topic in trim.topics:
            for log, below in topic.floors().items():
                found[log] = max(below, found.get(log, 0))
    return found


def by_topic(floors: Mapping[LogName, int]) -> tuple[TrimmedTopic, ...]:
    """The same, grouped for storing: partitions of one topic are many."""
    grouped: dict[LogName, list[tuple[int, int]]] = {}
    for log, below in sorted(floors.items()):
        grouped.setdefault(msgspec.structs.replace(log, partition=0), []).append((log.partition, below))
    return tuple(TrimmedTopic(log.collection, log.name, log.history, tuple(pairs)) for log, pairs in grouped.items())


def joined(trims: Iterable[Trim], action: TrimAction) -> list[Trim]:
    """The trims with one more, without floors that it exceeds for the same backups."""
    new = Trim(action.before, action.topics)
    reached = floors_of([new])
    left = (_beyond(trim, reached) if trim.before <= new.before else trim for trim in trims)
    return [*(trim for trim in left if trim.topics), new]


def _beyond(trim: Trim, reached: Mapping[LogName, int]) -> Trim:
    """A trim without floors that others reach."""
    floors = floors_of([trim])
    left = {log: below for log, below in floors.items() if below > reached.get(log, -1)}
    return trim if len(left) == len(floors) else Trim(trim.before, by_topic(left))


def added(known: TrimmedAway | msgspec.UnsetType, lost: TrimmedAway) -> TrimmedAway:
    """What a backup lost by all trims so far and one more."""
    if known is msgspec.UNSET:
        return lost
    return TrimmedAway(
        known.segments + lost.segments, known.records + lost.records, known.stored_bytes + lost.stored_bytes
    )
