"""When the kept backups read the logs of Kafka's own topics, from their cluster records."""

from collections.abc import Iterable, Mapping

from logkeep.errors import Damaged, ObjectMissing
from logkeep.kafka.group_history.completeness import ReadRun
from logkeep.kafka.record.deletion_times import DeletionTimes
from logkeep.kafka.record.documents import ROLE, ClusterRecord
from logkeep.model.clock_time import ClockName
from logkeep.model.segments import LogName
from logkeep.repository.backups.attachments import read_attachment
from logkeep.repository.backups.source import read_manifest
from logkeep.repository.chain.commits import SourceRef
from logkeep.repository.chain.fold import BackupEntry

_CLOCK_MARGIN_MS = 60_000
"""Added where times are not from the brokers that wrote the records: clocks differ."""


def run_in(record: ClusterRecord, log: LogName) -> ReadRun | None:
    """What a backup read of this history of a log; None if it has none of it."""
    for each in record.logs:
        if (each.topic, each.partition, each.history) == (log.name, log.partition, log.history):
            return _run(each.start, each.end, each.deletions)
    return None


def _run(start: int, end: int, times: DeletionTimes | None) -> ReadRun:
    if times is None:
        return ReadRun(start, end, None, None)
    margin = 0 if times.clock is ClockName.BROKER else _CLOCK_MARGIN_MS
    return ReadRun(start, end, times.read_end_ms + margin if times.read_end_ms >= 0 else None, times.cut_ms - margin)


def kept_runs(
    place: SourceRef, entries: Iterable[BackupEntry], last: ClusterRecord, logs: Iterable[LogName]
) -> Mapping[LogName, list[ReadRun]]:
    """What these backups, which are earlier than the last one, and the last one read of each log, in order.

    A backup that cannot be read is left out: what it read then counts as read by the one after it, which was later.
    """
    found: dict[LogName, list[ReadRun]] = {log: [] for log in logs}
    for entry in sorted(entries, key=lambda each: each.id):
        record = _record(place, entry)
        if record is not None:
            _add(found, record)
    _add(found, last)
    return found


def _add(found: Mapping[LogName, list[ReadRun]], record: ClusterRecord) -> None:
    for log, runs in found.items():
        run = run_in(record, log)
        if run is not None and (not runs or run.end >= runs[-1].end):
            runs.append(run)


def _record(place: SourceRef, entry: BackupEntry) -> ClusterRecord | None:
    try:
        return read_attachment(place, read_manifest(place, entry), ROLE, ClusterRecord)
    except (Damaged, ObjectMissing):
        return None
