"""Judges which schema ids archived records use, and which of them the archived registry does not know. Pure.

A key or value that begins with 0 need not name a schema. A topic's keys or values count as written with schemas if
nearly all of them fit. If none of their ids is known and all have eight bytes, they are numbers more likely. Where
only some fit and some ids are known, an unknown id may be chance: it is reported as possible.
"""

from collections import defaultdict
from collections.abc import Iterable
from enum import StrEnum
from typing import Final

import msgspec

MOST_UNKNOWN: Final = 1_000
"""Unknown ids of one side that are listed: numbers that only look like ids may all differ."""
_NEARLY_ALL: Final = 0.95


class UseVerdict(StrEnum):
    SCHEMAS = "schemas"
    MIXED = "mixed"
    NUMBERS = "numbers"
    NONE = "none"


class UnknownId(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """An id that the archived registry does not know, and where it comes first."""

    id: int
    records: int
    partition: int
    offset: int


class SideUse(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """What the keys or the values of one topic begin with."""

    topic: str
    side: str
    records: int
    """How many keys or values there are that are not null."""
    fitting: int
    known: int
    """Records with an id that the registry knows."""
    eight_bytes: int
    unknown: tuple[UnknownId, ...] = ()
    unlisted: int = 0
    """Records with an unknown id that is not in `unknown`."""

    @property
    def verdict(self) -> UseVerdict:
        if not self.fitting:
            return UseVerdict.NONE
        if self.known:
            return UseVerdict.SCHEMAS if self.fitting >= self.records * _NEARLY_ALL else UseVerdict.MIXED
        if self.fitting < self.records * _NEARLY_ALL:
            return UseVerdict.NONE
        return UseVerdict.NUMBERS if self.eight_bytes == self.records else UseVerdict.SCHEMAS


def join_uses(some: Iterable[SideUse]) -> tuple[SideUse, ...]:
    """Counts of parts of the archive, joined by topic and side."""
    by_side: defaultdict[tuple[str, str], list[SideUse]] = defaultdict(list)
    for each in some:
        by_side[each.topic, each.side].append(each)
    return tuple(_joined(by_side[key]) for key in sorted(by_side))


def _joined(parts: list[SideUse]) -> SideUse:
    unknown: dict[int, UnknownId] = {}
    for found in (one for part in parts for one in part.unknown):
        before = unknown.get(found.id, found)
        records = found.records if before is found else before.records + found.records
        first = min((before, found), key=lambda each: (each.partition, each.offset))
        unknown[found.id] = msgspec.structs.replace(first, records=records)
    kept = sorted(unknown.values(), key=lambda each: (-each.records, each.id))
    sums = {name: sum(getattr(p, name) for p in parts) for name in ("records", "fitting", "known", "eight_bytes")}
    return SideUse(
        topic=parts[0].topic,
        side=parts[0].side,
        **sums,
        unknown=tuple(sorted(kept[:MOST_UNKNOWN], key=lambda each: each.id)),
        unlisted=sum(p.unlisted for p in parts) + sum(each.records for each in kept[MOST_UNKNOWN:]),
    )
