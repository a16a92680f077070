"""Reads what a trim is decided by: cuts, recorded configs, and archived rows below the newest log starts."""

from collections.abc import Collection, Iterator, Mapping
from datetime import datetime

from logkeep.errors import Damaged
from logkeep.kafka.record.stored_record import read_record
from logkeep.kafka.retention.guarantee import guarantees_of
from logkeep.kafka.retention.log_trim import ArchivedRow
from logkeep.kafka.retention.plan import ArchiveFacts, BackupFacts, TrimPlan, partition_id, plan_trim
from logkeep.kafka.retention.rules import SourceRetention
from logkeep.model.ranges import Range
from logkeep.model.segments import LogName
from logkeep.repository.backups.content import PartReader, served_parts
from logkeep.repository.backups.manifest import Manifest
from logkeep.repository.backups.source import read_manifest
from logkeep.repository.chain.actions import PartRef
from logkeep.repository.chain.commits import SourceRef
from logkeep.repository.chain.fold import BackupEntry, Folded
from logkeep.repository.parts import SegmentTable

_COLUMNS = ("start", "end", "records", "plain_bytes", "base_time_ms", "max_time_ms")


def trims_of_source(
    place: SourceRef,
    folded: Folded,
    wanted: SourceRetention,
    newest_good: BackupEntry | None,
    kept_by: Mapping[int, str],
    now: datetime,
) -> TrimPlan:
    """What the rules trim of these backups. `kept_by`: what keeps some of them as they are. Writes nothing."""
    if newest_good is None:
        return TrimPlan(0, {}, ())
    manifests = {entry.id: read_manifest(place, entry) for entry in folded.completed}
    backups = tuple(_facts(place, entry, manifests[entry.id], kept_by.get(entry.id, "")) for entry in folded.completed)
    newest = next(each for each in backups if each.id == newest_good.id)
    older = [manifest for backup_id, manifest in manifests.items() if backup_id < newest.id]
    reader = PartReader(place)
    spans = _spans(newest.cuts, older)
    parts = {ref.token: ref for manifest in older for ref in served_parts(manifest, folded)}
    rows = _rows(reader, parts.values(), spans)
    newer = _newer_bytes(reader, served_parts(manifests[newest.id], folded), newest.cuts, spans)
    return plan_trim(ArchiveFacts(backups, newest, rows, newer), wanted, now)


def _facts(place: SourceRef, entry: BackupEntry, manifest: Manifest, kept_by: str) -> BackupFacts:
    try:
        record = read_record(place, manifest)
    except Damaged:
        record = None
    return BackupFacts(
        id=entry.id,
        committed=datetime.fromisoformat(entry.committed),
        cuts={c.log: Range(c.start, c.end) for c in manifest.cut},
        guarantees=guarantees_of(record) if record is not None else None,
        kept_by=kept_by,
    )


def _spans(newest: Mapping[LogName, Range], older: Collection[Manifest]) -> dict[LogName, Range]:
    """What older backups have of each log, and of its earlier histories, below its newest log start."""
    first: dict[LogName, int] = {}
    for manifest in older:
        for cut in manifest.cut:
            if cut.start < cut.end:
                first[cut.log] = min(cut.start, first.get(cut.log, cut.start))
    starts = {partition_id(log): cut.start for log, cut in newest.items()}
    below = ((log, start, starts.get(partition_id(log), start)) for log, start in first.items())
    return {log: Range(start, newest_start) for log, start, newest_start in below if start < newest_start}


def _rows(
    reader: PartReader, parts: Collection[PartRef], spans: Mapping[LogName, Range]
) -> dict[LogName, list[ArchivedRow]]:
    found: dict[LogName, set[ArchivedRow]] = {}
    for ref in parts:
        for log, row in _rows_in(reader.read(ref).covering(spans)):
            found.setdefault(log, set()).add(row)
    return {log: sorted(rows) for log, rows in found.items()}


def _rows_in(table: SegmentTable) -> Iterator[tuple[LogName, ArchivedRow]]:
    columns = [table.arrow.column(name).to_pylist() for name in _COLUMNS]
    rows = [ArchivedRow(*values) for values in zip(*columns, strict=True)]
    for log, first, last in table.log_runs():
        yield from ((log, row) for row in rows[first:last])


def _newer_bytes(
    reader: PartReader, parts: Collection[PartRef], cuts: Mapping[LogName, Range], spans: Mapping[LogName, Range]
) -> dict[LogName, int]:
    """For logs that could be trimmed: the bytes of rows that are completely in the newest good backup."""
    partitions, found = {partition_id(log) for log in spans}, dict[LogName, int]()
    wanted = {log: cut for log, cut in cuts.items() if partition_id(log) in partitions}
    for ref in parts:
        for log, row in _rows_in(reader.read(ref).covering(wanted)):
            if cuts[log].start <= row.start and row.end <= cuts[log].end:
                found[log] = found.get(log, 0) + row.plain_bytes
    return found
