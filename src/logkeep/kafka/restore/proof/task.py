"""The task that compares restored partitions with the archive; it writes nothing."""

from itertools import zip_longest

import msgspec

from logkeep.errors import Damaged, ObjectMissing
from logkeep.formats.kafka.record_view import visible_records
from logkeep.formats.kafka.transactions import SettledTransactions
from logkeep.kafka.client.cluster import long_retry_cluster
from logkeep.kafka.client.settings import ClientSettings
from logkeep.kafka.logs.brokers import Brokers, UnitBrokers
from logkeep.kafka.restore.facts.log_views import archived_batches, settled_of, share_of, view_of
from logkeep.kafka.restore.facts.units import LogResult, Offsets, ReplayLog, ReplayOutcome, ReplayResult, SourceResult
from logkeep.kafka.restore.proof.compare import prove
from logkeep.kafka.restore.proof.target_log import log_starts
from logkeep.model.work import Progress
from logkeep.repository.chain.commits import SourceRef


class ProveUnit(msgspec.Struct, frozen=True, kw_only=True):
    place: SourceRef
    settings: ClientSettings
    logs: tuple[ReplayLog, ...]
    ends: tuple[int, ...]
    """The target offset up to which each was restored."""
    beginnings: bool = False
    """The logs are not finished: only the records that the target has so far are compared."""

    @property
    def size_bytes(self) -> int:
        return sum(log.size_bytes for log in self.logs)


def prove_logs(unit: ProveUnit, progress: Progress) -> ReplayResult:
    """One result for each log, with its proof."""
    with long_retry_cluster(unit.settings) as cluster:
        brokers, starts = UnitBrokers(cluster), log_starts(cluster, unit.logs)
        return ReplayResult(
            logs=tuple(
                _proven(unit, log, end, brokers, starts.get(log.key), progress)
                for log, end in zip(unit.logs, unit.ends, strict=True)
            )
        )


def beginning_of(place: SourceRef, log: ReplayLog, settled: SettledTransactions | None, end: int) -> ReplayLog:
    """The log up to the source offset of the record that has, or will have, the target offset `end`."""
    if log.offsets is Offsets.PRESERVE:
        return log.up_to(0, min(max(end, log.first.start), log.first.end))
    left = end - log.base
    if log.spread_over:
        return _beginning_of_shares(place, log, left)
    for records in visible_records(archived_batches(place, log.first), view_of(place, log, log.first, settled)):
        if left < len(records):
            return log.up_to(0, int(records.offsets[left]))
        left -= len(records)
    return log


def _beginning_of_shares(place: SourceRef, log: ReplayLog, left: int) -> ReplayLog:
    for index, source in enumerate(log.sources):
        for records in share_of(place, log, source):
            if left < len(records):
                return log.up_to(index, int(records.offsets[left]))
            left -= len(records)
    return log


def _proven(
    unit: ProveUnit, log: ReplayLog, end: int, brokers: Brokers, log_start: int | None, progress: Progress
) -> LogResult:
    found = LogResult(
        log=log.first.log,
        topic=log.topic,
        partition=log.partition,
        outcome=ReplayOutcome.DONE,
        end=end,
        others=_others(log),
    )
    try:
        settled = None if log.spread_over else settled_of(unit.place, log.first, log.isolation)
        wanted = beginning_of(unit.place, log, settled, end) if unit.beginnings else log
        finished = not unit.beginnings
        proof = prove(wanted, unit.place, brokers, settled, end, progress, finished=finished, log_start=log_start)
    except (Damaged, ObjectMissing) as error:
        return msgspec.structs.replace(found, outcome=ReplayOutcome.DAMAGED, detail=str(error))
    return msgspec.structs.replace(found, records=proof.records, proof=proof, others=_others(log, proof.shares))


def _others(log: ReplayLog, shares: tuple[int, ...] = ()) -> tuple[SourceResult, ...]:
    """Results of all sources except the first."""
    known = zip_longest(log.sources[1:], shares[1:], fillvalue=None)
    return tuple(SourceResult(log=other.log, records=records or 0, runs=b"") for other, records in known if other)
