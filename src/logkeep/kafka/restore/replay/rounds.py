"""Rounds of sending: ask the target where each log stands, send what one leader takes, ask again.

A round ends for a log when it is through, in trouble, or has to be looked at again: its leader moved, its answers do
not fit, the connection broke. Nothing is decided from what was sent; only from what the target says afterwards.
"""

from collections import Counter, deque
from collections.abc import Sequence
from contextlib import closing
from dataclasses import dataclass, replace

from logkeep.errors import ClusterError, ClusterNotReady, ClusterUnreachable
from logkeep.kafka.client.cluster import Cluster
from logkeep.kafka.client.rate_limit import RateLimiter
from logkeep.kafka.client.retry import ProgressBackoff
from logkeep.kafka.logs.archived import PIECE_BYTES
from logkeep.kafka.restore.facts.units import ReplayOutcome
from logkeep.kafka.restore.replay.bundles import SIDE_BY_SIDE
from logkeep.kafka.restore.replay.foreign_writer import is_marker
from logkeep.kafka.restore.replay.holes import Holes, NotTaken, TakenOver
from logkeep.kafka.restore.replay.log_sender import LogReplay, StreamPiece
from logkeep.kafka.restore.replay.request_sender import Sender
from logkeep.kafka.restore.replay.resume_point import Trouble
from logkeep.kafka.restore.replay.target_ends import Absent, Stand, ask_standings

TOGETHER_BYTES = 3 * SIDE_BY_SIDE * PIECE_BYTES
"""Logs are opened at the same time while they hold no more than this in memory."""
_HELD_BYTES = 3 * PIECE_BYTES
"""What a large one holds: what is being sent, what is ready, and what is being read."""
_TOGETHER_LOGS = 200
_STOPPED = "brokers that stopped tell why in their server logs: a disk that is full stops a broker; start them again"
"""They answered when the restore was planned, so it is not the address."""
_GONE_AFTER = 5
"""A topic that is not in the cluster's list so many times in a row is gone."""


@dataclass(frozen=True)
class Tools:
    """What rounds need besides logs."""

    cluster: Cluster
    backoff: ProgressBackoff
    courtesy: RateLimiter
    transaction_timeout_ms: int


class ReplayRounds:
    """Sends all logs of a unit, and leaves each of them done or in trouble."""

    def __init__(self, logs: Sequence[LogReplay], tools: Tools) -> None:
        self._logs, self._tools = logs, tools
        self._holes = {
            log.key: Holes(tools.cluster, log.log, tools.backoff, tools.transaction_timeout_ms) for log in logs
        }
        self._absent = Counter[LogReplay]()
        self._leaders: dict[LogReplay, int] = {}
        self._shut_out = False

    def run(self) -> None:
        """Raises ClusterNotReady or ClusterUnreachable when nothing was gained for too long."""
        while todo := [log for log in self._logs if not log.finished]:
            try:
                trouble = self._one(todo)
            except (ClusterUnreachable, ClusterNotReady) as error:
                if self._shut_out:
                    raise
                trouble = error
            if trouble is not None:
                self._wait(todo, trouble)

    def _wait(self, todo: Sequence[LogReplay], trouble: ClusterError) -> None:
        """Until it is worth asking again. Where a disk failed, what waiting did not cure is an outcome: no attempt of
        an engine would cure it sooner, and a later one would not know the reason any more."""
        try:
            self._tools.backoff.failed(trouble)
        except (ClusterUnreachable, ClusterNotReady) as error:
            reasons = [log.disk_failed for log in todo if log.disk_failed]
            if not reasons:
                error.remedy = _STOPPED if isinstance(error, ClusterUnreachable) else error.remedy
                raise
            for log in todo:
                if not log.finished:
                    what = f"{log.disk_failed or reasons[0]}; since then: {trouble}"
                    log.trouble = Trouble(ReplayOutcome.DISK_FAILED, what)

    def _one(self, todo: Sequence[LogReplay]) -> ClusterError | None:
        """One look at all logs that are left, and one round with the leader of the first."""
        absent = self._look(todo)
        passing = self._sent(todo, absent)
        for log in todo:
            if log.trouble is not None and log.trouble.outcome is ReplayOutcome.FOREIGN and log in self._leaders:
                self._look_closer(log, log.trouble, self._leaders[log])
        return passing

    def _sent(self, todo: Sequence[LogReplay], absent: ClusterError | None) -> ClusterError | None:
        here = [log for log in todo if not log.finished and log in self._leaders]
        if not here:
            return absent
        leader = self._leaders[here[0]]
        here = [log for log in here if self._leaders[log] == leader]
        with closing(self._tools.cluster.open_own(leader)) as connection:
            _Round(Sender(connection, leader, self._tools.courtesy), here, self).run()
        return next((log.again for log in here if log.again is not None), absent)

    def _look(self, todo: Sequence[LogReplay]) -> ClusterError | None:
        """Take what the target says; why some logs are not there, if so."""
        missing: ClusterError | None = None
        self._leaders.clear()
        for log, answer in zip(todo, ask_standings(self._tools.cluster, [log.log for log in todo]), strict=True):
            if isinstance(answer, Stand):
                self._absent[log] = 0
                self._leaders[log] = answer.leader
                self._stand(log, answer)
            elif isinstance(answer, Absent):
                self._absent[log] = self._absent[log] + 1 if answer.gone else 0
                missing = ClusterNotReady(answer.what, subject=log.log.target)
                if self._absent[log] >= _GONE_AFTER:
                    log.trouble = Trouble(ReplayOutcome.GONE, answer.what)
            else:
                log.trouble = answer
        return missing

    def _stand(self, log: LogReplay, answer: Stand) -> None:
        was_through, log.leader = log.through, answer.leader
        if log.stand(answer.standing):
            self.gained()
        if was_through and log.head() is not None:
            log.conclude()

    def fill(self, log: LogReplay, hole: StreamPiece) -> None:
        """Fill the hole at the head of a log, of which nothing is under way."""
        try:
            filled = self._holes[log.key].fill(hole.step)
        except (ClusterUnreachable, ClusterNotReady) as error:
            log.again = ClusterNotReady(error.what, subject=log.log.target)
            return
        if isinstance(filled, TakenOver):
            self._shut_out = True  # taking it back would shut the other one out, and so on for ever
            raise ClusterNotReady("another attempt fills the holes of this log", subject=log.log.target)
        if isinstance(filled, NotTaken):
            log.not_taken(f"a filler for offset {filled.offset}", filled.ack)
        elif isinstance(filled, Trouble):
            log.trouble = filled
        elif filled > hole.step.end:
            log.again = ClusterNotReady(f"the log ends at {filled}, behind the hole", subject=log.log.target)
        else:
            log.filled(filled)
            self.gained()

    def gained(self) -> None:
        self._tools.backoff.progress()

    def _look_closer(self, log: LogReplay, found: Trouble, leader: int) -> None:
        """A marker in the wrong place is our own doing, and has another remedy than a foreign writer."""
        if log.log.transactional_id and is_marker(
            self._tools.cluster, log.log, leader, log.doubtful, self._tools.backoff.pause
        ):
            log.trouble = replace(found, outcome=ReplayOutcome.MISPLACED)


class _Round:
    """What is sent over one connection to one leader."""

    def __init__(self, sender: Sender, logs: Sequence[LogReplay], rounds: ReplayRounds) -> None:
        self._sender, self._rounds = sender, rounds
        self._waiting = deque(logs)
        self._open: list[LogReplay] = []

    def run(self) -> None:
        self._admit()
        while True:
            if self._sender.send(self._open):
                continue
            if self._advance() or self._admit():
                continue
            if not self._sender.in_flight:
                return
            if self._sender.receive():
                self._rounds.gained()

    def _admit(self) -> bool:
        """Open logs while what they hold in memory stays small; whether one was opened."""
        if not self._waiting:
            return False
        self._open, before = [log for log in self._open if not _over(log)], len(self._waiting)
        held = sum(min(log.log.size_bytes, _HELD_BYTES) for log in self._open)
        while self._waiting and len(self._open) < _TOGETHER_LOGS and (not self._open or held < TOGETHER_BYTES):
            log = self._waiting.popleft()
            log.reading.open()
            self._open.append(log)
            held += min(log.log.size_bytes, _HELD_BYTES)
        return len(self._waiting) < before

    def _advance(self) -> bool:
        """Fill a hole or end a log that nothing is under way of; whether there was one."""
        for log in self._open:
            head = log.head() if log.idle and not _over(log) else None
            if head is not None and head.last:
                log.conclude()
                return True
            if head is not None and head.batch is None:
                self._rounds.fill(log, head)
                return True
        return False


def _over(log: LogReplay) -> bool:
    """Whether this round is over for a log."""
    return log.idle and (log.finished or log.again is not None or log.through)
