"""Rounds of sending: read the log ends of the target, send batches to one leader, read the log ends again.

A round ends for a log when it is finished, has failed, or its log end must be read again: the leader moved, an answer
was unexpected, the connection broke. Decisions rest only on what the target reports afterwards, not on what was sent.
"""

from collections import Counter, deque
from collections.abc import Sequence
from contextlib import closing
from dataclasses import dataclass, replace

from logkeep.errors import ClusterError, ClusterNotReady, ClusterUnreachable
from logkeep.kafka.client.cluster import Cluster
from logkeep.kafka.client.rate_limit import RateLimiter
from logkeep.kafka.client.retry import RESTART, USUAL, ProgressBackoff
from logkeep.kafka.logs.archived import PIECE_BYTES
from logkeep.kafka.restore.facts.units import ReplayOutcome
from logkeep.kafka.restore.replay.bundles import SIDE_BY_SIDE
from logkeep.kafka.restore.replay.foreign_writer import is_own_marker
from logkeep.kafka.restore.replay.holes import Fenced, Holes, NotAppended
from logkeep.kafka.restore.replay.log_sender import LogReplay, StreamPiece
from logkeep.kafka.restore.replay.request_sender import Sender
from logkeep.kafka.restore.replay.resume_point import Trouble
from logkeep.kafka.restore.replay.target_ends import Absent, FoundTarget, read_target_ends

TOGETHER_BYTES = 3 * SIDE_BY_SIDE * PIECE_BYTES
"""Logs are open at the same time while they hold no more than this in memory."""
_HELD_BYTES = 3 * PIECE_BYTES
"""The memory of a large log: one piece being sent, one ready, one being read."""
_TOGETHER_LOGS = 200
_STOPPED = "see the server logs of stopped brokers for the reason (a full disk stops a broker); start them again"
"""The brokers answered when the restore was planned, so the address is right."""
_GONE_AFTER = 5
"""A topic that is missing in the cluster's list this many times in a row is gone."""


@dataclass(frozen=True)
class ReplayTools:
    """What rounds need in addition to the logs."""

    cluster: Cluster
    backoff: ProgressBackoff
    rate_limit: RateLimiter
    transaction_timeout_ms: int


class ReplayRounds:
    """Sends all logs of a unit, and leaves each of them done or in trouble."""

    def __init__(self, logs: Sequence[LogReplay], tools: ReplayTools) -> None:
        self._logs, self._tools = logs, tools
        self._holes = {
            log.key: Holes(tools.cluster, log.log, tools.backoff, tools.transaction_timeout_ms) for log in logs
        }
        self._absent = Counter[LogReplay]()
        self._leaders: dict[LogReplay, int] = {}
        self._fenced = False

    def run(self) -> None:
        """Send until all logs are done or in trouble. Raises ClusterNotReady or ClusterUnreachable when there was no
        progress for too long."""
        while todo := [log for log in self._logs if not log.finished]:
            try:
                trouble = self._run_round(todo)
            except (ClusterUnreachable, ClusterNotReady) as error:
                if self._fenced:
                    raise
                trouble = error
            if trouble is not None:
                self._wait(todo, trouble)

    def _wait(self, todo: Sequence[LogReplay], trouble: ClusterError) -> None:
        """Wait before the next round, for minutes if a broker may be restarting.

        When a failed disk did not recover in time, that is an outcome, not an error: another attempt of the engine
        would not cure it either, and would not know the reason.
        """
        reasons = [log.disk_failed for log in todo if log.disk_failed]
        try:
            self._tools.backoff.failed(trouble, USUAL if reasons else RESTART)
        except (ClusterUnreachable, ClusterNotReady) as error:
            if not reasons:
                error.remedy = _STOPPED if isinstance(error, ClusterUnreachable) else error.remedy
                raise
            for log in todo:
                if not log.finished:
                    what = f"{log.disk_failed or reasons[0]}; since then: {trouble}"
                    log.trouble = Trouble(ReplayOutcome.DISK_FAILED, what)

    def _run_round(self, todo: Sequence[LogReplay]) -> ClusterError | None:
        """Read the log ends of all unfinished logs, then send to the leader of the first."""
        absent = self._read_ends(todo)
        temporary = self._send(todo, absent)
        for log in todo:
            if log.trouble is not None and log.trouble.outcome is ReplayOutcome.FOREIGN and log in self._leaders:
                self._recognise_own_marker(log, log.trouble, self._leaders[log])
        return temporary

    def _send(self, todo: Sequence[LogReplay], absent: ClusterError | None) -> ClusterError | None:
        here = [log for log in todo if not log.finished and log in self._leaders]
        if not here:
            return absent
        leader = self._leaders[here[0]]
        here = [log for log in here if self._leaders[log] == leader]
        with closing(self._tools.cluster.open_own(leader)) as connection:
            _Round(Sender(connection, leader, self._tools.rate_limit), here, self).run()
        return next((log.retry_reason for log in here if log.retry_reason is not None), absent)

    def _read_ends(self, todo: Sequence[LogReplay]) -> ClusterError | None:
        """Read the target's log ends; returns why some logs are absent, if any are."""
        missing: ClusterError | None = None
        self._leaders.clear()
        for log, answer in zip(todo, read_target_ends(self._tools.cluster, [log.log for log in todo]), strict=True):
            if isinstance(answer, FoundTarget):
                self._absent[log] = 0
                self._leaders[log] = answer.leader
                self._resume(log, answer)
            elif isinstance(answer, Absent):
                self._absent[log] = self._absent[log] + 1 if answer.gone else 0
                missing = ClusterNotReady(answer.what, subject=log.log.target)
                if self._absent[log] >= _GONE_AFTER:
                    log.trouble = Trouble(ReplayOutcome.GONE, answer.what)
            else:
                log.trouble = answer
        return missing

    def _resume(self, log: LogReplay, answer: FoundTarget) -> None:
        was_complete, log.leader = log.all_acknowledged, answer.leader
        if log.resume_from(answer.end):
            self.gained()
        if was_complete and log.head() is not None:
            log.conclude()

    def fill(self, log: LogReplay, hole: StreamPiece) -> None:
        """Fill the hole at the head of a log that has nothing in flight."""
        try:
            filled = self._holes[log.key].fill(hole.step)
        except (ClusterUnreachable, ClusterNotReady) as error:
            log.retry_reason = ClusterNotReady(error.what, subject=log.log.target)
            return
        if isinstance(filled, Fenced):
            self._fenced = True  # claiming the id again would fence the other attempt, and so on forever
            raise ClusterNotReady("another attempt fills the holes of this log", subject=log.log.target)
        if isinstance(filled, NotAppended):
            log.not_appended(f"a filler for offset {filled.offset}", filled.ack)
        elif isinstance(filled, Trouble):
            log.trouble = filled
        elif filled > hole.step.end:
            log.retry_reason = ClusterNotReady(f"the log ends at {filled}, after the hole", subject=log.log.target)
        else:
            log.filled(filled)
            self.gained()

    def gained(self) -> None:
        self._tools.backoff.progress()

    def _recognise_own_marker(self, log: LogReplay, found: Trouble, leader: int) -> None:
        """A misplaced marker of our own has another remedy than a foreign writer."""
        if log.log.transactional_id and is_own_marker(
            self._tools.cluster, log.log, leader, log.recent_and_unacknowledged, self._tools.backoff.pause
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
        """Open logs while their memory stays below the limit; whether one was opened."""
        if not self._waiting:
            return False
        self._open, before = [log for log in self._open if not _over(log)], len(self._waiting)
        held = sum(min(log.log.size_bytes, _HELD_BYTES) for log in self._open)
        while self._waiting and len(self._open) < _TOGETHER_LOGS and (not self._open or held < TOGETHER_BYTES):
            log = self._waiting.popleft()
            log.reader.open()
            self._open.append(log)
            held += min(log.log.size_bytes, _HELD_BYTES)
        return len(self._waiting) < before

    def _advance(self) -> bool:
        """Fill a hole of, or conclude, a log that has nothing in flight; whether there was one."""
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
    return log.idle and (log.finished or log.retry_reason is not None or log.all_acknowledged)
