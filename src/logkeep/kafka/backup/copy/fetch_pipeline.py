"""Fetches ranges from one broker over two connections in turn: one receives while the reply of the other is written.

A helper thread works on the bytes where they were received; a connection receives again only when its last reply is
finished. So nothing is copied, and memory is two replies and one write buffer per partition that is being written.
Positions move when a reply is parsed, and every parsed piece is passed to the helper before anything else can fail:
what was skipped over is written, or the whole attempt raises.
"""

from collections.abc import Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import ExitStack, closing
from dataclasses import dataclass

from logkeep.errors import ClusterNotReady, SourceDamaged
from logkeep.kafka.backup.copy.range_state import RangeCopy, TakenBatches
from logkeep.kafka.backup.units import CopyOutcome, CopyUnit
from logkeep.kafka.client.fetch import DENIED, Code, FetchConnection, FetchedPartition, FetchReply, encode, parse
from logkeep.kafka.client.rate_limit import RateLimiter
from logkeep.kafka.client.retry import ProgressBackoff
from logkeep.kafka.logs.lost_offset import Cause, OffsetVerdict, explain
from logkeep.model.work import Progress
from logkeep.repository.segments.writer import SegmentWriter

TOGETHER = 16
"""Partitions per request: each one that is being written needs a buffer."""
_STALL_REPLIES = 20

_LOST = {
    Code.OFFSET_OUT_OF_RANGE,
    Code.UNKNOWN_TOPIC_OR_PARTITION,
    Code.UNKNOWN_TOPIC_ID,
    Code.INCONSISTENT_TOPIC_ID,
}


@dataclass(frozen=True)
class RangeJob:
    """One range and the writer of its bytes."""

    copy: RangeCopy
    writer: SegmentWriter


@dataclass(frozen=True)
class _Piece:
    """The part of one reply that belongs to one range."""

    job: RangeJob
    data: memoryview
    taken: TakenBatches
    last: bool

    def write(self) -> int:
        if self.taken.skip:
            self.job.writer.skip(self.taken.skip.start, self.taken.skip.end)
        written = self.job.writer.write(self.data, self.taken.batches)
        if self.last:
            self.job.writer.finish(self.job.copy.claimed_to())
        return written


class _Lane:
    """One connection and the work on what it received last."""

    def __init__(self, connection: FetchConnection) -> None:
        self.connection = connection
        self.work: Future[int] | None = None
        self.correlation = -1

    def done(self) -> int:
        """Wait until the bytes of the last reply are written; returns how many."""
        work, self.work = self.work, None
        return work.result() if work else 0


class Pipeline:
    """Fetches ranges from one broker."""

    def __init__(
        self,
        unit: CopyUnit,
        broker: int,
        jobs: Sequence[RangeJob],
        progress: Progress,
        backoff: ProgressBackoff,
        limiter: RateLimiter,
    ) -> None:
        self._unit, self._broker, self._jobs = unit, broker, list(jobs)
        self._progress, self._backoff, self._limiter = progress, backoff, limiter
        self._moved: list[RangeJob] = []
        self._trouble: ClusterNotReady | None = None
        self._correlation = 0
        self._idle = 0
        self._stack = ExitStack()

    def __enter__(self) -> "Pipeline":
        with ExitStack() as stack:
            connect = self._unit.brokers.connect
            self._lanes = [_Lane(stack.enter_context(closing(connect(self._broker)))) for _ in range(2)]
            self._pool = stack.enter_context(ThreadPoolExecutor(1, "write"))
            self._stack = stack.pop_all()
        return self

    def __exit__(self, *exc: object) -> None:
        """Wait for the helper. Its errors come before errors of the connection."""
        self._stack.close()
        self._drain()

    def run(self) -> list[RangeJob]:
        """Copy until no job is left; returns the jobs that another broker has to serve."""
        now, other = self._lanes
        flying = self._send(now)
        while flying:
            self._progress(now.done())
            data = now.connection.receive()
            reply = parse(data, now.correlation)
            known = self._by_key(flying, reply)
            before = [job.copy.state for job in flying]
            pieces = self._take_served(known)
            now.work = self._pool.submit(lambda some: sum(piece.write() for piece in some), pieces)
            self._handle_refused(known)
            self._leave_slow_followers(known)
            self._detect_stall(flying, reply, gained=before != [job.copy.state for job in flying])
            self._limiter.received(self._broker, len(data), reply.throttle_ms)
            flying = self._send(other)
            now, other = other, now
        if self._trouble is not None:  # one election moves many partitions at once: that is one failure
            self._backoff.failed(self._trouble)
        return self._moved

    def _drain(self) -> None:
        for lane in self._lanes:
            self._progress(lane.done())

    def _send(self, lane: _Lane) -> list[RangeJob]:
        """Request the next bytes of the first jobs that are left; returns those jobs."""
        chosen: dict[tuple[bytes, int], RangeJob] = {}
        for job in self._jobs:
            if job.copy.outcome is None and job not in self._moved and len(chosen) < TOGETHER:
                chosen.setdefault(job.copy.key, job)
        if chosen:
            self._correlation += 1
            lane.correlation = self._correlation
            wanted = [job.copy.wanted() for job in chosen.values()]
            self._limiter.wait_to_send(self._broker)
            lane.connection.send(encode(wanted, self._unit.limits, lane.correlation))
        return list(chosen.values())

    def _by_key(self, asked: Sequence[RangeJob], reply: FetchReply) -> list[tuple[RangeJob, FetchedPartition]]:
        """The reply's answer for each requested range; answers for others, or repeated ones, are ignored."""
        waiting = {job.copy.key: job for job in asked}
        answers = ((waiting.pop((f.topic_id.bytes, f.partition), None), f) for f in reply.partitions)
        return [(job, fetched) for job, fetched in answers if job is not None]

    def _take_served(self, known: Sequence[tuple[RangeJob, FetchedPartition]]) -> list[_Piece]:
        """Advance every range that got bytes. Raises no error that a retry can cure."""
        pieces: list[_Piece] = []
        for job, fetched in known:
            if fetched.served:
                taken = job.copy.take(fetched)
                pieces.append(_Piece(job, fetched.records, taken, job.copy.outcome is not None))
        return pieces

    def _handle_refused(self, known: Sequence[tuple[RangeJob, FetchedPartition]]) -> None:
        """Find out why some ranges were refused. Rare, so all pending writes are finished first."""
        for job, fetched in known:
            if not fetched.served:
                self._drain()
                self._handle_refusal(job, fetched)
                if job.copy.outcome is not None:
                    job.writer.finish(job.copy.claimed_to())

    def _leave_slow_followers(self, known: Sequence[tuple[RangeJob, FetchedPartition]]) -> None:
        """Ask the leader instead of a follower that lags: the leader has what was planned."""
        for job, _ in known:
            if job.copy.follower_lags:
                self._to_leader(job)

    def _to_leader(self, job: RangeJob) -> None:
        job.copy.leave_follower()
        self._moved.append(job)

    def _handle_refusal(self, job: RangeJob, fetched: FetchedPartition) -> None:
        if job.copy.follower is not None:
            self._to_leader(job)
        elif fetched.error in DENIED:
            job.copy.end(CopyOutcome.DENIED, detail=f"error {fetched.error}")
        elif fetched.error == Code.CORRUPT_MESSAGE:
            raise SourceDamaged("the broker reports that its own log is damaged", subject=str(job.copy.range.log))
        elif fetched.error in _LOST or fetched.diverging:
            self._investigate(job)
        elif fetched.error == Code.NONE:
            job.copy.follow(fetched.preferred_replica)
            self._moved.append(job)
        else:
            self._postpone(job, fetched.error)

    def _investigate(self, job: RangeJob) -> None:
        where = job.copy.range
        verdict = explain(job.copy.position, self._unit.brokers.facts(where.topic, where.partition, job.copy.position))
        if not job.copy.judge(verdict) and job.copy.outcome is None:
            self._postpone(job, Code.OFFSET_OUT_OF_RANGE)

    def _postpone(self, job: RangeJob, code: int) -> None:
        """This broker cannot serve the range now: find its leader again when all other ranges here are done."""
        self._moved.append(job)
        self._trouble = ClusterNotReady(
            f"no broker serves it, the last error was {code}", subject=str(job.copy.range.log)
        )

    def _detect_stall(self, asked: Sequence[RangeJob], reply: FetchReply, *, gained: bool) -> None:
        """Raise for a broker that keeps sending empty replies."""
        if gained:
            self._idle = 0
            self._backoff.progress()
        elif not reply.throttle_ms:
            self._idle += 1
        if self._idle > _STALL_REPLIES:
            self._idle = 0
            ended = [job for job in asked if self._lost_its_end(job)]
            if not ended:
                first = asked[0].copy
                raise ClusterNotReady(f"no records come from offset {first.offset} on", subject=str(first.range.log))

    def _lost_its_end(self, job: RangeJob) -> bool:
        """Whether the log ends before the end of the planned range: then it is no longer the planned log."""
        where = job.copy.range
        facts = self._unit.brokers.facts(where.topic, where.partition, job.copy.position)
        if facts.topic_id != where.topic_id or not 0 <= facts.log_end < where.hi:
            return False
        self._drain()
        job.copy.judge(OffsetVerdict(Cause.TRUNCATED, common_end=facts.log_end))
        job.writer.finish(job.copy.claimed_to())
        return True
