"""Compares the transactions of all restored logs before a restore to a point in time, and reports torn ones."""

from collections.abc import Mapping

from logkeep.kafka.record.backup_view import KafkaBackupView
from logkeep.kafka.restore.facts.transaction_task import (
    CutLog,
    ProducersResult,
    TransactionsResult,
    TransactionUnit,
    list_producers,
    producers_at_cuts,
    scan_transactions,
    transaction_units,
)
from logkeep.kafka.restore.plan.selection import SelectedLogs
from logkeep.kafka.restore.plan.torn_transactions import TearReport, find_torn
from logkeep.model.findings import Finding, Severity
from logkeep.model.ranges import Range
from logkeep.model.segments import LogName
from logkeep.model.work import Engine


def compare_transactions(
    view: KafkaBackupView,
    chosen: SelectedLogs,
    ends: Mapping[LogName, int],
    engine: Engine,
    *,
    before_ms: int | None = None,
    unsettled: bool = False,
) -> tuple[TearReport, list[Finding]]:
    """What the ends of these logs, and a time for each record, tear; and logs that cannot be compared."""
    logs = _cut_logs(view, chosen, ends, before_ms)
    if before_ms is None and all(log.end >= log.archived_end for log in logs):
        return TearReport(), []
    units = transaction_units(view.place, logs, unsettled=unsettled)
    listed = engine.map(list_producers, units, ProducersResult, label="compare transactions", weight=lambda _: 0)
    seen = [each for result in listed for each in result.logs]
    damage = {each.log: each.damage for each in seen if each.damage}
    producers = producers_at_cuts(seen, in_one_log=unsettled or before_ms is not None)
    if not producers:
        return TearReport(), _not_compared(damage)
    concerned = {each.log for each in seen if not {*each.restored, *each.missing}.isdisjoint(producers)}
    some = [log for log in logs if log.log in concerned]
    units = transaction_units(view.place, some, unsettled=unsettled, producers=producers)
    found = engine.map(scan_transactions, units, TransactionsResult, label="compare transactions", weight=_bytes)
    rows = {each.log: each.rows for result in found for each in result.logs}
    damage |= {each.log: each.damage for result in found for each in result.logs if each.damage}
    return find_torn(rows), _not_compared(damage)


def _cut_logs(
    view: KafkaBackupView, chosen: SelectedLogs, ends: Mapping[LogName, int], before_ms: int | None
) -> list[CutLog]:
    archived = {cut.log: cut.end for cut in view.manifest.cut}
    segments = view.segments({log.log: Range(log.start, archived[log.log]) for log in chosen.logs})
    return [
        CutLog(
            log=log.log,
            start=log.start,
            end=ends[log.log],
            archived_end=archived[log.log],
            segments=segments[log.log],
            before_ms=before_ms,
        )
        for log in chosen.logs
    ]


def _bytes(unit: TransactionUnit) -> int:
    return sum(segment.stored_bytes for log in unit.logs for segment in log.segments)


def _not_compared(damage: Mapping[LogName, str]) -> list[Finding]:
    return [
        Finding(
            code="transactions-not-compared",
            severity=Severity.WARNING,
            where=str(log),
            what=f"whether the cut tears transactions of this log is not known: {why}",
            remedy="`logkeep verify` shows what is damaged",
        )
        for log, why in sorted(damage.items())
    ]
