"""Verification level `data` as units of work: each unit is a list of objects that one task reads.

A large object is a unit of its own; small ones share one, because a task costs more than reading them.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import msgspec

from logkeep.model.work import Engine, Progress
from logkeep.zookeeper.model.archived import ArchivedFile, BackupView
from logkeep.zookeeper.timeline.object_check import CheckedObject, ObjectChecks, checked_object, with_object

UNIT_BYTES = 64 << 20


@dataclass(frozen=True)
class ObjectsUnit:
    view: BackupView
    """It need not contain other objects."""
    objects: tuple[ArchivedFile, ...]

    @property
    def size_bytes(self) -> int:
        return sum(kept.size_bytes for kept in self.objects)


class CheckedUnit(msgspec.Struct, frozen=True):
    found: tuple[CheckedObject, ...]


def check_unit(unit: ObjectsUnit, progress: Progress) -> CheckedUnit:
    """Read the objects of one unit."""
    found = []
    for kept in unit.objects:
        found.append(checked_object(unit.view, kept))
        progress(kept.size_bytes)
    return CheckedUnit(tuple(found))


def shares(objects: Sequence[ArchivedFile], most_bytes: int = UNIT_BYTES) -> Iterator[tuple[ArchivedFile, ...]]:
    """Divide objects into units of about `most_bytes`, in their order. Pure."""
    share: list[ArchivedFile] = []
    held_bytes = 0
    for kept in objects:
        if share and held_bytes + kept.size_bytes > most_bytes:
            yield tuple(share)
            share, held_bytes = [], 0
        share.append(kept)
        held_bytes += kept.size_bytes
    if share:
        yield tuple(share)


def checked_by(engine: Engine, units: Sequence[ObjectsUnit], checks: ObjectChecks) -> ObjectChecks:
    """The results of all units, in the order in which one process would have read them."""
    results = engine.map(check_unit, units, CheckedUnit, label="verify", weight=lambda unit: unit.size_bytes)
    for unit, result in zip(units, results, strict=True):
        for kept, found in zip(unit.objects, result.found, strict=True):
            checks = with_object(checks, kept, found)
    return checks
