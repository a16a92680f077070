"""The task that writes archived logs to partitions: read, check, send, confirm, and compare.

A plain function: it imports no engine, opens what it needs, and closes it. Expected outcomes are returned as values (a
foreign writer, a forgotten producer, a refused batch, a damaged archive). It raises for what another attempt may cure,
after its own retries. Any number of attempts may run at once or be killed: all of them send the same bytes under the
same sequence numbers, so that a broker appends each batch once. There is one exception: a broker forgets a producer
whose newest record is older than `producer.id.expiration.ms` at its next check, every ten minutes. If it checks while
two attempts are sending old records, a batch may be appended twice; this is found, and reported as a foreign writer.
"""

import time
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass

from logkeep.errors import Damaged, ObjectMissing
from logkeep.formats.run_map.file_format import encode
from logkeep.kafka.admin.topic_changes import delete_records
from logkeep.kafka.client.cluster import Cluster
from logkeep.kafka.client.rate_limit import RateLimiter
from logkeep.kafka.client.retry import RESTART, Backoff, ProgressBackoff
from logkeep.kafka.client.topology import TopicPartition
from logkeep.kafka.logs.brokers import UnitBrokers
from logkeep.kafka.restore.facts.units import (
    LogProof,
    LogResult,
    Offsets,
    ReplayLog,
    ReplayOutcome,
    ReplayResult,
    ReplayUnit,
    SourceResult,
)
from logkeep.kafka.restore.proof.compare import prove
from logkeep.kafka.restore.proof.target_log import log_starts
from logkeep.kafka.restore.replay.holes import TIMEOUT_MS
from logkeep.kafka.restore.replay.log_sender import LogReplay, ProgressShare
from logkeep.kafka.restore.replay.reader import StreamReader
from logkeep.kafka.restore.replay.resume_point import Trouble
from logkeep.kafka.restore.replay.rounds import ReplayRounds, ReplayTools
from logkeep.model.work import Progress

_READERS = 2


@dataclass(frozen=True)
class ReplayTiming:
    """Clock, pauses and timeouts of an attempt; tests replace them."""

    pause: Callable[[float], None] = time.sleep
    clock: Callable[[], float] = time.monotonic
    transaction_timeout_ms: int = TIMEOUT_MS


_REAL_TIME = ReplayTiming()


def replay(unit: ReplayUnit, progress: Progress, timing: ReplayTiming = _REAL_TIME) -> ReplayResult:
    """Restore the unit's logs. Raises ClusterNotReady, ClusterUnreachable or a StoreError."""
    # Coordinators answer "concurrent transactions" after every transaction: a short first wait fills holes quickly.
    asking = Backoff(attempts=25, first_wait_s=0.005, longest_wait_s=2.0, sleep=timing.pause)
    with (
        ThreadPoolExecutor(_READERS, "read") as readers,
        Cluster(unit.settings, backoff=asking, clock=timing.clock) as cluster,
    ):
        logs = [LogReplay(log, StreamReader(log, unit.place, readers), progress) for log in unit.logs]
        tools = ReplayTools(
            cluster,
            ProgressBackoff(timing.pause, timing.clock, RESTART),
            RateLimiter(unit.bytes_per_s, timing.pause, timing.clock),
            timing.transaction_timeout_ms,
        )
        ReplayRounds(logs, tools).run()
        done = [log.log for log in logs if log.done]
        tools.backoff.repeat(lambda: _delete_leading_fillers(cluster, done))
        starts = tools.backoff.repeat(lambda: log_starts(cluster, done)) if unit.prove and done else {}
        proving = _Proving(unit, UnitBrokers(cluster), starts, progress, timing)
        return ReplayResult(logs=tuple(_result(log, proving) for log in logs))


@dataclass(frozen=True)
class _Proving:
    """What the comparisons of all logs of a unit share."""

    unit: ReplayUnit
    brokers: UnitBrokers
    starts: Mapping[TopicPartition, int]
    progress: Progress
    timing: ReplayTiming


def _delete_leading_fillers(cluster: Cluster, logs: Sequence[ReplayLog]) -> None:
    """Delete the fillers before the first offsets, so that each log starts where it started at the source."""
    preserved = [log for log in logs if log.offsets is Offsets.PRESERVE and log.first.start > log.base]
    there = {t.name: t.id.hex for t in cluster.metadata().topics} if preserved else {}
    preserved = [log for log in preserved if there.get(log.topic) == log.topic_id]  # DeleteRecords goes by name alone
    if preserved:
        delete_records(cluster, {log.key: log.first.start for log in preserved})


def _result(log: LogReplay, proving: _Proving) -> LogResult:
    proof = _proven(log, proving) if log.done and proving.unit.prove else None
    trouble, runs = log.trouble, log.runs()
    return LogResult(
        log=log.log.first.log,
        topic=log.log.topic,
        partition=log.log.partition,
        outcome=ReplayOutcome.DONE if trouble is None else trouble.outcome,
        detail="" if trouble is None else trouble.detail,
        records=log.records if trouble is None else 0,
        fillers=log.fillers,
        holes=log.holes,
        sent_bytes=log.sent_bytes,
        end=log.end if trouble is None else log.target_end.log_end,
        runs=encode(runs[0]),
        others=tuple(
            SourceResult(log=other.log, records=its.records if trouble is None else 0, runs=encode(its))
            for other, its in zip(log.log.sources[1:], runs[1:], strict=True)
        ),
        proof=proof,
    )


def _proven(log: LogReplay, with_: _Proving) -> LogProof | None:
    """The comparison; None when the archive can no longer be read, which is recorded as the log's trouble."""
    place, settled, start = with_.unit.place, log.reader.settled, with_.starts.get(log.key)
    pause, share = with_.timing.pause, ProgressShare(with_.progress, log.log.size_bytes)
    try:
        proof = prove(log.log, place, with_.brokers, settled, log.end, share, pause, log_start=start)
    except (Damaged, ObjectMissing) as error:
        log.trouble = Trouble(ReplayOutcome.DAMAGED, str(error))
        return None
    share.complete()
    return proof
