"""The task that puts archived logs back into partitions: read, check, send, see that it is there, and prove it.

A plain function: it imports no engine, opens what it needs, and closes it. Foreseen outcomes come back as values (a
foreign writer, a forgotten producer, a refused batch, a damaged archive); it raises for what another attempt can cure,
after it has waited and asked again by itself. Any number of attempts may run, be killed, or come back from the dead:
all of them send the same bytes under the same sequence numbers, so that a broker takes each of them once.
"""

import time
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass

from logkeep.errors import Damaged, ObjectMissing
from logkeep.formats.run_map.stored import encode
from logkeep.kafka.admin.topic_changes import delete_records
from logkeep.kafka.client.cluster import Cluster
from logkeep.kafka.client.rate_limit import RateLimiter
from logkeep.kafka.client.retry import Backoff, ProgressBackoff
from logkeep.kafka.logs.brokers import SettingsBrokers
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
from logkeep.kafka.restore.proof.compare import prove_with
from logkeep.kafka.restore.replay.holes import TIMEOUT_MS
from logkeep.kafka.restore.replay.log_sender import LogReplay
from logkeep.kafka.restore.replay.reader import Reading
from logkeep.kafka.restore.replay.resume_point import Trouble
from logkeep.kafka.restore.replay.rounds import ReplayRounds, Tools
from logkeep.model.work import Progress

_READERS = 2


@dataclass(frozen=True)
class Ways:
    """How an attempt waits, and what it is not given by its unit. Time comes in from outside."""

    pause: Callable[[float], None] = time.sleep
    clock: Callable[[], float] = time.monotonic
    transaction_timeout_ms: int = TIMEOUT_MS


def replay(unit: ReplayUnit, progress: Progress) -> ReplayResult:
    """Put the unit's logs back. Raises ClusterNotReady, ClusterUnreachable or a StoreError."""
    return replay_with(unit, progress, Ways())


def replay_with(unit: ReplayUnit, progress: Progress, ways: Ways) -> ReplayResult:
    """The same with time handed in."""
    # Coordinators answer "a moment, please" after every transaction: asking soon again makes holes quick to fill.
    asking = Backoff(attempts=25, first_wait_s=0.005, longest_wait_s=2.0, sleep=ways.pause)
    with (
        ThreadPoolExecutor(_READERS, "read") as readers,
        Cluster(unit.settings, backoff=asking, clock=ways.clock) as cluster,
    ):
        logs = [LogReplay(log, Reading(log, unit.place, readers), progress) for log in unit.logs]
        tools = Tools(
            cluster,
            ProgressBackoff(ways.pause, ways.clock),
            RateLimiter(unit.bytes_per_s, ways.pause, ways.clock),
            ways.transaction_timeout_ms,
        )
        ReplayRounds(logs, tools).run()
        _begin_where_they_began(cluster, [log.log for log in logs if log.done])
        return ReplayResult(logs=tuple(_result(log, unit, progress, ways) for log in logs))


def _begin_where_they_began(cluster: Cluster, logs: Sequence[ReplayLog]) -> None:
    """Take away the fillers that stand before the first offsets."""
    preserved = [log for log in logs if log.offsets is Offsets.PRESERVE and log.start > log.base]
    there = {t.name: t.id.hex for t in cluster.metadata().topics} if preserved else {}
    preserved = [log for log in preserved if there.get(log.topic) == log.topic_id]  # deleting goes by name alone
    if preserved:
        delete_records(cluster, {LogReplay.key_of(log): log.start for log in preserved})


def _result(log: LogReplay, unit: ReplayUnit, progress: Progress, ways: Ways) -> LogResult:
    proof = _proven(log, unit, progress, ways) if log.done and unit.prove else None
    trouble, runs = log.trouble, log.runs()
    return LogResult(
        log=log.log.log,
        topic=log.log.topic,
        partition=log.log.partition,
        outcome=ReplayOutcome.DONE if trouble is None else trouble.outcome,
        detail="" if trouble is None else trouble.detail,
        records=log.records if trouble is None else 0,
        fillers=log.fillers,
        holes=log.holes,
        sent_bytes=log.sent_bytes,
        end=log.end if trouble is None else log.standing.log_end,
        runs=encode(runs[0]),
        others=tuple(
            SourceResult(log=other.log, records=its.records, runs=encode(its))
            for other, its in zip(log.log.others, runs[1:], strict=True)
        ),
        proof=proof,
    )


def _proven(log: LogReplay, unit: ReplayUnit, progress: Progress, ways: Ways) -> LogProof | None:
    """The comparison; an archive that can no longer be read is the log's trouble."""
    brokers, settled = SettingsBrokers(unit.settings), log.reading.settled
    try:
        return prove_with(log.log, unit.place, brokers, settled, log.end, progress, ways.pause)
    except (Damaged, ObjectMissing) as error:
        log.trouble = Trouble(ReplayOutcome.DAMAGED, str(error))
        return None
