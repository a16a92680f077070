"""Find transactions on which members disagree: tasks compare every two logs with the same zxids, record by record.

Each log is read once for each log that it overlaps, which is too much work for the driver.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import msgspec

from logkeep.model.work import EngineFor, Progress
from logkeep.zookeeper.model.archived import ArchivedLog, BackupView, narrowed
from logkeep.zookeeper.timeline.holdings import Dispute
from logkeep.zookeeper.timeline.survey import differing, to_compare


@dataclass(frozen=True)
class LogPairUnit:
    """One task: two logs of one history."""

    view: BackupView
    left: ArchivedLog
    right: ArchivedLog


class DifferingRuns(msgspec.Struct, frozen=True, kw_only=True):
    runs: tuple[tuple[int, int], ...]
    """First and last zxid of each."""


def compare_logs(unit: LogPairUnit, progress: Progress) -> DifferingRuns:
    """The task. After damage nothing is compared; the damage is found when the logs are read."""
    found = tuple(differing(unit.view, unit.left, unit.right))
    progress(_weight(unit))
    return DifferingRuns(runs=found)


def disputed_by_members(view: BackupView, logs: Sequence[ArchivedLog], engine_for: EngineFor) -> Iterator[Dispute]:
    """In the order of the logs."""
    units = [LogPairUnit(narrowed(view, (left, right)), left, right) for left, right in to_compare(logs)]
    if not units:
        return
    found = engine_for(sum(map(_weight, units))).map(
        compare_logs, units, DifferingRuns, label="members", weight=_weight
    )
    for unit, one in zip(units, found, strict=True):
        members = frozenset({unit.left.member, unit.right.member})
        yield from (Dispute(unit.left.history, first, last, members) for first, last in one.runs)


def _weight(unit: LogPairUnit) -> int:
    return unit.left.size_bytes + unit.right.size_bytes
