"""The state of one log while it is sent: the next batch, the batches in flight, the meaning of acknowledgements.

Batches are kept until they are acknowledged, so that after a failure the same bytes are sent again from the target's
log end on. This module decides; it sends nothing itself.
"""

from collections import deque
from typing import NamedTuple

from logkeep.errors import ClusterNotReady, Damaged, ObjectMissing
from logkeep.formats.kafka.producer_stamp import ReadyBatch
from logkeep.formats.run_map.runs import RunMap, RunMapBuilder
from logkeep.kafka.client.produce import Ack
from logkeep.kafka.client.protocol import error_name
from logkeep.kafka.restore.facts.units import ReplayLog, ReplayOutcome
from logkeep.kafka.restore.replay.outgoing import SendBuffer
from logkeep.kafka.restore.replay.reader import StreamReader
from logkeep.kafka.restore.replay.resume_point import (
    ProduceAnswer,
    StreamStep,
    TargetEnd,
    Trouble,
    check_resume,
    lost_records,
    meaning_of_answer,
)
from logkeep.model.work import Progress

WINDOW = 5
"""Batches in flight: a broker recognises repetitions of the last five."""
_REMEMBERED = 8


class StreamPiece(NamedTuple):
    """A step of the stream and, unless it is a hole or the end, its batch."""

    step: StreamStep
    batch: ReadyBatch | None = None
    last: bool = False

    @property
    def size_bytes(self) -> int:
        return 0 if self.batch is None else self.batch.size_bytes


class ProgressShare:
    """The progress of one log. Merged batches have fewer bytes than archived ones: the rest is counted at the end."""

    def __init__(self, progress: Progress, total_bytes: int) -> None:
        self._progress, self._left = progress, total_bytes

    def __call__(self, size_bytes: int) -> None:
        self._left -= size_bytes
        self._progress(size_bytes)

    def complete(self) -> None:
        """Count what is left of the total."""
        if self._left > 0:
            self(self._left)


class LogReplay:
    """Lives for one attempt. Call `resume_from` before anything else, and after every temporary failure."""

    def __init__(self, log: ReplayLog, reader: StreamReader, progress: Progress) -> None:
        self.log, self.key, self.reader = log, log.key, reader
        self.trouble: Trouble | None = None
        self.all_acknowledged = self.done = False
        """`done`: the target's log end was read afterwards and is the expected one."""
        self.retry_reason: ClusterNotReady | None = None
        """Why the target's log end has to be read again; None: continue to send."""
        self.leader = -1
        """As last reported by the target."""
        self.disk_failed = ""
        """What a broker reported about its disk; cleared when a batch is acknowledged again."""
        self.records = self.fillers = self.holes = self.sent_bytes = 0
        self.recent: deque[StreamStep] = deque(maxlen=_REMEMBERED)
        """The last steps that are in the target: where to search when its content is unexpected."""
        self.target_end = TargetEnd(log.base, None)
        self._progress = ProgressShare(progress, log.size_bytes)
        self._checked, self._alone = False, True
        self._queue: deque[StreamPiece] = deque()
        self._flying: deque[StreamPiece] = deque()
        self._returned: list[StreamPiece] = []
        self._runs = [RunMapBuilder(source.start, source.end, log.base) for source in log.sources]
        self._end = StreamStep(log.base, log.base, 0)
        self._ended = False

    @property
    def finished(self) -> bool:
        """Whether this attempt has nothing more to do for this log."""
        return self.done or self.trouble is not None

    @property
    def idle(self) -> bool:
        return not self._flying

    @property
    def recent_and_unacknowledged(self) -> list[StreamStep]:
        """The last steps that are or should be in the target."""
        return [*self.recent, *(piece.step for piece in (*self._returned, *self._flying))]

    @property
    def end(self) -> int:
        """The target offset after the part of the stream that was read so far."""
        return self._end.end

    def resume_from(self, target_end: TargetEnd) -> bool:
        """Start or resume at the target's log end; whether that is further than before.

        Batches that were sent and not acknowledged may be in the target or not: the log end decides.
        """
        self._queue.extendleft(reversed([*self._returned, *self._flying]))
        self._returned.clear()
        self._flying.clear()
        further = target_end.log_end > self.target_end.log_end
        self.all_acknowledged = False
        self.target_end, self.retry_reason = target_end, None
        self._checked, self._alone = False, True
        self.reader.reached = target_end.log_end
        return further

    def head(self) -> StreamPiece | None:
        """The next piece to send; the last one is the end of the stream. None: sending has to stop."""
        try:
            piece = self._first_unpassed()
        except (Damaged, ObjectMissing) as error:
            self.trouble = Trouble(ReplayOutcome.DAMAGED, str(error))
            return None
        if not self._checked:
            self._checked = True
            self._check(piece.step)
        return None if self.trouble or self.retry_reason else piece

    def sendable(self) -> ReadyBatch | None:
        """The next batch, if one may be sent now."""
        if self.finished or self.retry_reason or len(self._flying) >= (1 if self._alone else WINDOW):
            return None
        piece = self.head()
        return None if piece is None else piece.batch

    def sent(self) -> None:
        """Note that the `sendable` batch was sent."""
        self._flying.append(self._queue.popleft())

    def acknowledged(self, ack: Ack) -> int:
        """Process the answer to the oldest batch in flight; returns the bytes that it acknowledges.

        After an error, answers to later batches are ignored: these batches are sent again, or found in the target.
        """
        piece = self._flying.popleft()
        if not self.retry_reason and not self.trouble and self._accepted(piece.step, ack):
            size = piece.size_bytes
            self._alone, self.disk_failed = False, ""
            self.recent.append(piece.step)
            self.sent_bytes += size
            self._progress(size)
            return size
        self._returned.append(piece)
        return 0

    def conclude(self) -> None:
        """Nothing is left to send. If anything was sent, the target's log end is read once more."""
        if self.target_end.log_end >= self.end:
            self.done = True
            self._progress.complete()
        elif not self._alone:
            self.all_acknowledged = True
        else:
            what = f"the log ends at {self.target_end.log_end}, and everything up to {self.end} was acknowledged"
            self.retry_reason = ClusterNotReady(what, subject=self.log.target)

    def filled(self, log_end: int) -> None:
        """Note that the hole at the head is filled up to this offset."""
        self.target_end, self.disk_failed = TargetEnd(log_end, self.target_end.last_sequence), ""

    def not_appended(self, what: str, ack: Ack) -> None:
        """The broker could not append `what` at this moment: the target's log end has to be read again."""
        reason = f"broker {self.leader} did not append {what}: {error_name(ack.error)} {ack.said}".rstrip()
        if meaning_of_answer(ack.error, ack.said) is ProduceAnswer.DISK_FAILED:
            self.disk_failed = reason
        self.retry_reason = ClusterNotReady(reason, subject=self.log.target)

    def runs(self) -> list[RunMap]:
        """The target offsets of what was read of the stream, a map for each archived log."""
        for each in self._runs:
            each.skip_to(self.end)
        return [each.finish() for each in self._runs]

    def _accepted(self, step: StreamStep, ack: Ack) -> bool:
        """Whether the broker appended the batch at the expected offset."""
        if not ack.error and ack.base_offset == step.start:
            return True
        answer = meaning_of_answer(ack.error, ack.said)
        if isinstance(answer, Trouble):
            self.trouble = answer
        elif answer is not ProduceAnswer.APPENDED:
            self.not_appended(f"a batch for offset {step.start}", ack)
        else:
            what = f"the batch for offset {step.start} was appended at {ack.base_offset}"
            self.trouble = Trouble(ReplayOutcome.FOREIGN, what)
        return False

    def _check(self, step: StreamStep) -> None:
        self.trouble = check_resume(self.target_end, step, self.log.producer.position)
        if self.trouble is None and lost_records(self.target_end, step):
            what = f"the log ends at {self.target_end.log_end}, before what it had already"
            self.retry_reason = ClusterNotReady(what, subject=self.log.target)

    def _first_unpassed(self) -> StreamPiece:
        while True:
            while self._queue and self._queue[0].step.passed(self.target_end):
                self._pass(self._queue.popleft())
            if self._queue:
                return self._queue[0]
            if self._ended:
                return StreamPiece(self._end, last=True)
            self._read()

    def _pass(self, piece: StreamPiece) -> None:
        self.recent.append(piece.step)
        self._progress(piece.size_bytes)

    def _read(self) -> None:
        item = self.reader.take()
        if item is None:
            self._ended = True
        elif isinstance(item, StreamStep):
            self.holes, self.fillers = self.holes + 1, self.fillers + item.end - item.start - 1
            self._queue.append(StreamPiece(item))
            self._end = StreamStep(item.end, item.end, item.sent)
        else:
            self._load(item)
            self._end = StreamStep(item.end, item.end, item.sent_after)

    def _load(self, load: SendBuffer) -> None:
        total = load.batches.total_records
        if load.filler:
            self.fillers += total
        else:
            self.records += total
            self._runs[load.batches.source].place(load.runs())
        if load.end <= self.target_end.log_end:
            self.recent.extend(load.steps()[-_REMEMBERED:])
            self._progress(int(load.batches.sizes.sum()))
            return
        if not load.stamped:  # the target had it when it was read, and lost it later
            load.stamp(self.log)
        ready = load.batches.ready()
        self._queue.extend(StreamPiece(step, batch) for step, batch in zip(load.steps(), ready, strict=True))
