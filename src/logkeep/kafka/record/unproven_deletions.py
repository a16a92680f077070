"""Backups whose deletions are not proven, as `info`, `verify`, `status` and restores report them. Pure.

A backup of this release says itself which offsets are unproven. One of an earlier release, or a salvage, does not know
when it read its logs. Only the rows of its segments can prove it: if every offset of a log has its record, none was
compacted away before it was read.
"""

from collections.abc import Callable, Collection, Iterable
from typing import TYPE_CHECKING

from logkeep.kafka.client.topology import TopicPartition
from logkeep.kafka.record.deletion_times import UNPROVEN, compacted_topics_of
from logkeep.model.findings import DELETION_DOUBTS, Finding, Severity
from logkeep.model.ranges import Range

if TYPE_CHECKING:
    from logkeep.kafka.record.documents import ClusterRecord, PartitionRecord
    from logkeep.model.segments import LogName, Segment
    from logkeep.repository.backups.manifest import Manifest

DenseLogs = Callable[[], "Collection[LogName]"]
"""The logs whose rows cover every offset with a record. A function: reading the rows takes time."""
_UNKNOWN = "the backup does not know when it read them"


def unproven_finding(log: str, offsets: Range, why: str) -> Finding:
    return Finding(
        code=UNPROVEN,
        severity=Severity.WARNING,
        where=log,
        what=f"deletions in offsets {offsets} may be missing, and a restore may bring deleted keys back: {why}",
        remedy="run `logkeep kafka backup --compacted auto`, which compares it with the live log; a backup more often "
        "than delete.retention.ms needs no comparison",
    )


def is_dense(segment: "Segment") -> bool:
    """Whether every covered offset has its record, or its marker: then compaction removed nothing from the segment."""
    return segment.has_object and segment.first <= segment.start and segment.records == segment.end - segment.first


def untimed(record: "ClusterRecord") -> "list[PartitionRecord]":
    """Logs of compacted topics whose times the backup does not know. Kafka's own topics are archived for their history,
    and are no findings."""
    compacted = compacted_topics_of(record)
    return [log for log in record.logs if log.topic in compacted and log.deletions is None and log.start < log.end]


def unproven_by_rows(record: "ClusterRecord", manifest: "Manifest", dense: DenseLogs) -> dict[TopicPartition, Range]:
    """The offsets of logs without times whose deletions are unproven."""
    asked = untimed(record)
    whole = {(log.name, log.partition, log.history) for log in dense()} if asked else set()
    cuts = {(c.log.name, c.log.partition): c.start for c in manifest.cut}
    lost = {
        (g.log.name, g.log.partition) for g in manifest.gaps if g.end > cuts.get((g.log.name, g.log.partition), g.end)
    }
    return {
        TopicPartition(log.topic, log.partition): Range(log.start, log.end)
        for log in asked
        if (log.topic, log.partition, log.history) not in whole or (log.topic, log.partition) in lost
    }


def deletion_findings(
    record: "ClusterRecord | None", manifest: "Manifest", dense: DenseLogs, only: Iterable[str] | None = None
) -> list[Finding]:
    """The logs whose deletions a backup does not prove: as it recorded them, and by the rows where it recorded nothing.
    `only`: report these logs alone."""
    found = [f for f in manifest.findings if f.code in DELETION_DOUBTS]
    known = {f.where for f in found}
    spans = unproven_by_rows(record, manifest, dense) if record is not None else {}
    found += [
        unproven_finding(f"{log.topic}/{log.partition}", span, _UNKNOWN)
        for log, span in sorted(spans.items())
        if f"{log.topic}/{log.partition}" not in known
    ]
    chosen = None if only is None else set(only)
    return found if chosen is None else [f for f in found if f.where in chosen]
