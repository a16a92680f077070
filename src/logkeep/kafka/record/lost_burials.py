"""Burials that a backup knows of and the chain lost: without them, a restore would bring deleted keys back. Pure.

A repair that accepts loss brings a backup back from its manifest, but not a commit that is gone.
"""

from collections.abc import Mapping
from typing import TYPE_CHECKING

from logkeep.model.findings import Finding, Severity
from logkeep.model.segments import LogName

if TYPE_CHECKING:
    from logkeep.kafka.record.documents import ClusterRecord, PartitionRecord
    from logkeep.repository.chain.fold import Burial

LOST_BURIAL = "the chain lost the commit that buries offsets of it: a restore would bring deleted keys back"
LOST_BURIAL_REMEDY = "take a new backup, or restore another one"


def lost_burials(
    record: "ClusterRecord", burials: "Mapping[LogName, tuple[Burial, ...]]"
) -> "tuple[PartitionRecord, ...]":
    """Logs with fewer offsets buried in the chain than the backup recorded. `burials`: those that apply to it."""
    there = {(log.name, log.partition, log.history): sum(b.offsets for b in some) for log, some in burials.items()}
    return tuple(
        log
        for log in record.logs
        if log.deletions is not None and log.deletions.buried > there.get((log.topic, log.partition, log.history), 0)
    )


def lost_burial_findings(
    record: "ClusterRecord", burials: "Mapping[LogName, tuple[Burial, ...]]"
) -> tuple[Finding, ...]:
    return tuple(
        Finding(
            code="burial-lost",
            severity=Severity.DAMAGE,
            where=f"{log.topic}/{log.partition}",
            what=LOST_BURIAL,
            remedy=LOST_BURIAL_REMEDY,
        )
        for log in lost_burials(record, burials)
    )
