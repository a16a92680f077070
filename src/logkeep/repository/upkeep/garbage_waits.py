"""When garbage can be deleted, and why not now. Pure.

An object is deleted by a run that finds a mark of it that is old enough. It is marked when it is old enough itself. So
an object that is marked needs one more run, every other one needs two.
"""

from collections import defaultdict
from collections.abc import Iterable
from dataclasses import dataclass
from datetime import datetime, timedelta
from enum import StrEnum

from logkeep.repository.upkeep.marks import StoredMark, marked_since
from logkeep.store.base import ObjectInfo


class WaitReason(StrEnum):
    MARKED = "marked"
    """It was marked before or is marked by this run; the mark is too young."""
    YOUNG = "young"
    """It is too young to be marked."""


@dataclass(frozen=True)
class GarbageWait:
    """Objects that wait for the same reason."""

    why: WaitReason
    objects: int
    stored_bytes: int
    first: datetime
    """A run from then on deletes some of them."""
    last: datetime
    """A run from then on deletes all of them."""


def waiting_garbage(
    garbage: Iterable[ObjectInfo], marks: list[StoredMark], age: timedelta, interval: timedelta, now: datetime
) -> tuple[GarbageWait, ...]:
    """What a run at `now` does not delete. It marks what is old enough; without an interval it deletes that too."""
    marked, waiting = marked_since(marks), defaultdict[WaitReason, list[tuple[datetime, ObjectInfo]]](list)
    for info in garbage:
        markable = info.modified + age
        if info.name not in marked and markable > now:
            waiting[WaitReason.YOUNG].append((markable + interval, info))
        elif (ripe := marked.get(info.name, now) + interval) > now:
            waiting[WaitReason.MARKED].append((ripe, info))
    return tuple(_group(why, waiting[why]) for why in WaitReason if why in waiting)


def _group(why: WaitReason, waiting: list[tuple[datetime, ObjectInfo]]) -> GarbageWait:
    moments = [moment for moment, _ in waiting]
    return GarbageWait(why, len(waiting), sum(info.size for _, info in waiting), min(moments), max(moments))
