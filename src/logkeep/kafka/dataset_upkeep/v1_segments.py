"""The segments of a kafka-backup-v1 partition with everything that is wrong about their files.

Records are the authority. An index that cannot be read at all counts as missing, so that its records are still found.
"""

from dataclasses import dataclass, replace

from logkeep.errors import Damaged, FormatTooNew, UsageError
from logkeep.formats.datasets.kafka_backup_v1 import reader as v1
from logkeep.kafka.importing.kafka_backup_v1 import V1Files, V1PartitionReader, v1_partition
from logkeep.kafka.importing.v1_segment import V1SegmentReader
from logkeep.model.findings import Finding, Severity
from logkeep.store.base import Store

REINDEX = "`logkeep kafka dataset reindex` writes it again from the records"
WRONG_FILE = (Damaged, UsageError, FormatTooNew)


@dataclass(frozen=True)
class OpenedPartition:
    """One partition as its files are, and what is wrong with its partition index."""

    reader: V1PartitionReader
    files: V1Files
    findings: tuple[Finding, ...]
    index_readable: bool
    """Whether the partition index is there and can be read."""


def open_partition(store: Store, topic: str, number: int, files: V1Files) -> OpenedPartition:
    """One partition, opened by its partition index alone: no segment is read."""
    where = f"{topic}, partition {number}"
    try:
        reader = v1_partition(store, topic, number, files)
    except WRONG_FILE as error:
        found = Finding(
            code="partition-index-unreadable",
            severity=Severity.WARNING,
            where=error.subject or where,
            what=error.what,
            remedy=REINDEX,
        )
        return OpenedPartition(v1_partition(store, topic, number, replace(files, listing=None)), files, (found,), False)
    if files.listing is None:
        missing = Finding(
            code="partition-index-missing",
            severity=Severity.WARNING,
            where=where,
            what="it has no partition index",
            remedy=REINDEX,
        )
        return OpenedPartition(reader, files, (missing,), False)
    return OpenedPartition(reader, files, (), True)


def readable_index(segment: V1SegmentReader) -> tuple[V1SegmentReader, Finding | None]:
    """The segment without its index if that is missing or is another file, and what to report then."""
    what = "the segment has no index"
    if segment.index_size:
        try:
            v1.check_magic(segment.store.get_range(segment.index, 0, 1), segment.index)
        except WRONG_FILE as error:
            what = error.what
        else:
            return segment, None
    elif segment.index:
        what = "the index of the segment is empty"
    found = Finding(
        code="segment-index-missing" if not segment.index else "segment-index-unreadable",
        severity=Severity.WARNING,
        where=segment.index or segment.records,
        what=what,
        remedy=REINDEX,
    )
    return replace(segment, index="", index_size=0), found
