"""The survey task: scans all copies of one log, chooses one, and compares the others with it."""

from dataclasses import dataclass
from pathlib import Path

import msgspec

from logkeep.kafka.client.topology import TopicPartition
from logkeep.kafka.disks.scan import scan
from logkeep.kafka.disks.scan_results import DiskCopy, ReplicaScan
from logkeep.kafka.salvage.compare import first_difference
from logkeep.kafka.salvage.replicas import best_copy
from logkeep.model.work import Progress


@dataclass(frozen=True)
class SalvageSurveyUnit:
    log: TopicPartition
    copies: tuple[DiskCopy, ...]
    from_offset: int
    """Earlier offsets are archived and need not be read."""
    compacted: bool
    compare_at: int = -1
    """The last offset of the last archived batch."""

    @property
    def size_bytes(self) -> int:
        return sum(c.size_bytes for c in self.copies)


class SalvageSurvey(msgspec.Struct, frozen=True, kw_only=True):
    """The scans of all copies of one log."""

    topic: str
    partition: int
    scans: tuple[ReplicaScan, ...]
    differences: tuple[tuple[int, int], ...] = ()
    """(copy, first offset at which it differs from the chosen copy)"""


def survey(unit: SalvageSurveyUnit, progress: Progress) -> SalvageSurvey:
    """Scan and compare the copies. Raises LogDirUnusable or OldMessageFormat."""
    scans = tuple(
        scan(Path(c.directory), c.node, c.start, c.epochs, progress, unit.from_offset, unit.compare_at)
        for c in unit.copies
    )
    chosen = best_copy(scans)
    differences = [
        (index, offset)
        for index, other in enumerate(scans)
        if index != chosen and (offset := first_difference(scans[chosen], other, compacted=unit.compacted)) is not None
    ]
    return SalvageSurvey(
        topic=unit.log.topic, partition=unit.log.partition, scans=scans, differences=tuple(differences)
    )
