"""The task that archives ranges of partitions: fetch, check, hash, write, and leave a receipt.

A plain function: it imports no engine, opens what it needs, and closes it. Expected outcomes come back as values (a
gap, a new history, no permission, an old format). It raises only what another attempt can cure, after retries of its
own. When a leader moves or a connection breaks, nothing has to be copied again: positions and open segments stay, and
the topic id and the last epoch make sure that the next broker has the same log.
"""

import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import replace

import msgspec

from logkeep.errors import ClusterError, ClusterNotReady, ClusterUnreachable, StoreFull
from logkeep.kafka.backup.copy.fetch_pipeline import TOGETHER, Pipeline, RangeJob
from logkeep.kafka.backup.copy.range_state import RangeCopy
from logkeep.kafka.backup.units import CopyResult, CopyUnit, put_copied
from logkeep.kafka.client.rate_limit import RateLimiter, with_short_replies
from logkeep.kafka.client.retry import Pause, ProgressBackoff
from logkeep.kafka.logs.brokers import opened
from logkeep.kafka.logs.read_times import times_between
from logkeep.model.clock_time import ClockTime
from logkeep.model.time import TokenSource, random_token
from logkeep.model.work import Progress
from logkeep.repository.segments.writer import SegmentLimits, SegmentWriter

_LEAST_REPLY = 64 << 10
_INDEXED_BATCHES = 400_000
"""Over all segments that a task has open: limits the memory for their indexes, whatever producers send."""


def copy_ranges(unit: CopyUnit, progress: Progress) -> CopyResult:
    """Archive the unit's ranges. Raises ClusterNotReady, ClusterUnreachable, SourceDamaged or a StoreError."""
    return copy_with(unit, progress, random_token, time.sleep)


def copy_with(
    unit: CopyUnit,
    progress: Progress,
    tokens: TokenSource,
    pause: Pause,
    clock: Callable[[], float] = time.monotonic,
) -> CopyResult:
    """The same with randomness and time as arguments."""
    with opened(unit.brokers) as brokers, _jobs(unit, tokens) as jobs, _space_freed(jobs):
        unit = replace(unit, limits=with_short_replies(unit.limits), brokers=brokers)
        begin = _now(unit)
        backoff, limiter = ProgressBackoff(pause, clock), RateLimiter(unit.limits.bytes_per_s, pause, clock)
        while todo := [job for job in jobs if job.copy.outcome is None]:
            unit = _one_round(unit, todo, progress, backoff, limiter)
        times = times_between(begin, _now(unit))
        result = CopyResult(
            unit=unit.name,
            ranges=tuple(msgspec.structs.replace(job.copy.result(), times=times) for job in jobs),
            segments=tuple(segment for job in jobs for segment in job.writer.segments),
        )
        put_copied(unit, result, tokens())
    return result


def _now(unit: CopyUnit) -> ClockTime | None:
    """The time by the cluster's clock; None if the cluster does not answer, which does not end the copy."""
    try:
        return unit.brokers.now()
    except ClusterError:
        return None


@contextmanager
def _space_freed(jobs: Sequence[RangeJob]) -> Iterator[None]:
    """If the store is full, delete what this attempt has stored: without a receipt no other attempt uses it."""
    try:
        yield
    except StoreFull:
        for job in jobs:
            job.writer.delete_segments()
        raise


@contextmanager
def _jobs(unit: CopyUnit, tokens: TokenSource) -> Iterator[list[RangeJob]]:
    with ExitStack() as stack:
        jobs: list[RangeJob] = []
        most_batches = _INDEXED_BATCHES // min(max(len(unit.ranges), 1), TOGETHER)
        for wanted in unit.ranges:
            limits = SegmentLimits(unit.segment_bytes, most_batches)
            writer = SegmentWriter(unit.place, wanted.log, wanted.lo, limits, wanted.size_bytes, tokens, unit.codec)
            stack.callback(writer.abort)
            jobs.append(RangeJob(RangeCopy(wanted, unit.broker), writer))
        yield jobs


def _one_round(
    unit: CopyUnit, todo: Sequence[RangeJob], progress: Progress, backoff: ProgressBackoff, limiter: RateLimiter
) -> CopyUnit:
    """Copy what one broker serves, until all of it is done or another broker has to serve the rest.

    Returns the unit for the next round: after a connection broke, with smaller replies, so that some of them arrive.
    """
    broker, alone = todo[0].copy.broker, todo[0].copy.leader_only
    here = [job for job in todo if (job.copy.broker, job.copy.leader_only) == (broker, alone)]
    asked = replace(unit, limits=replace(unit.limits, rack="")) if alone else unit
    try:
        with Pipeline(asked, broker, here, progress, backoff, limiter) as pipeline:
            moved = pipeline.run()
    except (ClusterUnreachable, ClusterNotReady) as error:
        backoff.failed(error)
        moved = [job for job in here if job.copy.outcome is None]
        if isinstance(error, ClusterUnreachable):
            unit = _with_smaller_replies(unit)
    leaderless: ClusterError | None = None
    for job in moved:
        if job.copy.broker != broker:
            continue  # this broker named another one, or was a follower that is not asked again
        if job.copy.follower is not None:
            job.copy.leave_follower()
        else:
            leaderless = _find_leader(unit, job) or leaderless
    if leaderless is not None:
        backoff.failed(leaderless)
    return unit


def _with_smaller_replies(unit: CopyUnit) -> CopyUnit:
    limits = unit.limits
    return replace(
        unit, limits=replace(limits, max_bytes=min(limits.max_bytes, max(limits.max_bytes // 4, _LEAST_REPLY)))
    )


def _find_leader(unit: CopyUnit, job: RangeJob) -> ClusterError | None:
    """Find the current leader of the range's log; returns the error if there is none."""
    where = job.copy.range
    try:
        job.copy.leader = unit.brokers.leader(where.topic, where.topic_id, where.partition)
    except (ClusterUnreachable, ClusterNotReady) as error:
        return error
    return None
