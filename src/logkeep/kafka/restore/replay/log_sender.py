"""One log on its way into its partition: what is next, what is under way, and what an acknowledgement means.

Batches that were sent stay here until they are acknowledged, so that after a trouble the very same bytes are sent
again from wherever the target says it is. Decides; sends nothing itself.
"""

from collections import deque
from typing import NamedTuple

from logkeep.errors import ClusterNotReady, Damaged, ObjectMissing
from logkeep.formats.kafka.stamping import ReadyBatch
from logkeep.formats.run_map.runs import RunMap, RunMapBuilder
from logkeep.kafka.client.produce import Ack
from logkeep.kafka.client.protocol import error_name
from logkeep.kafka.client.topology import TopicPartition
from logkeep.kafka.restore.facts.units import ReplayLog, ReplayOutcome
from logkeep.kafka.restore.replay.outgoing import Load
from logkeep.kafka.restore.replay.produce_errors import Next, meaning
from logkeep.kafka.restore.replay.reader import Reading
from logkeep.kafka.restore.replay.resume_point import StreamStep, TargetEnd, Trouble, judged, lost
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


class LogReplay:
    """Made for one attempt. `stand` before anything else, and after every trouble that may pass."""

    def __init__(self, log: ReplayLog, reading: Reading, progress: Progress) -> None:
        self.log, self.key, self.reading = log, self.key_of(log), reading
        self.trouble: Trouble | None = None
        self.through = self.done = False
        """Everything is acknowledged; and the target's log is seen to end there."""
        self.again: ClusterNotReady | None = None
        """Why the target has to be asked again; None: go on."""
        self.leader = -1
        """As the target was last heard to tell."""
        self.disk_failed = ""
        """What a broker said of its disk, as long as nothing was taken since."""
        self.records = self.fillers = self.holes = self.sent_bytes = 0
        self.recent: deque[StreamStep] = deque(maxlen=_REMEMBERED)
        """The last steps that are in the target: where to look when it is not as it should be."""
        self.standing = TargetEnd(log.base, None)
        self._progress = progress
        self._judged, self._alone = False, True
        self._queue: deque[StreamPiece] = deque()
        self._flying: deque[StreamPiece] = deque()
        self._returned: list[StreamPiece] = []
        self._runs = [RunMapBuilder(source.start, source.end, log.base) for source in log.sources]
        self._end = StreamStep(log.base, log.base, 0)
        self._ended = False

    @staticmethod
    def key_of(log: ReplayLog) -> TopicPartition:
        return TopicPartition(log.topic, log.partition)

    @property
    def finished(self) -> bool:
        """Whether there is nothing more to do for this log in this attempt."""
        return self.done or self.trouble is not None

    @property
    def idle(self) -> bool:
        return not self._flying

    @property
    def doubtful(self) -> list[StreamStep]:
        """The last steps that are or should be in the target."""
        return [*self.recent, *(piece.step for piece in (*self._returned, *self._flying))]

    @property
    def end(self) -> int:
        """The target offset after all that was read of the stream so far."""
        return self._end.end

    def stand(self, standing: TargetEnd) -> bool:
        """Begin, or begin again, where the target says it is; whether that is further than it was.

        What was sent and not acknowledged may be there or not: that is exactly what the standing tells.
        """
        self._queue.extendleft(reversed([*self._returned, *self._flying]))
        self._returned.clear()
        self._flying.clear()
        further = standing.log_end > self.standing.log_end
        self.through = False
        self.standing, self.again = standing, None
        self._judged, self._alone = False, True
        self.reading.reached = standing.log_end
        return further

    def head(self) -> StreamPiece | None:
        """The next thing to do; the last one is the end of the stream. None: there is a trouble."""
        try:
            piece = self._first_unpassed()
        except (Damaged, ObjectMissing) as error:
            self.trouble = Trouble(ReplayOutcome.DAMAGED, str(error))
            return None
        if not self._judged:
            self._judged = True
            self._judge(piece.step)
        return None if self.trouble or self.again else piece

    def sendable(self) -> ReadyBatch | None:
        """The next batch, if one may be sent now."""
        if self.finished or self.again or len(self._flying) >= (1 if self._alone else WINDOW):
            return None
        piece = self.head()
        return None if piece is None else piece.batch

    def sent(self) -> None:
        """The batch that was `sendable` is on its way."""
        self._flying.append(self._queue.popleft())

    def acknowledged(self, ack: Ack) -> int:
        """Take the answer to the oldest batch on its way; how many bytes are there now.

        After an error the answers to those behind it say nothing: they are sent again, or found to be there.
        """
        piece = self._flying.popleft()
        if not self.again and not self.trouble and self._understood(piece.step, ack):
            size = piece.size_bytes
            self._alone, self.disk_failed = False, ""
            self.recent.append(piece.step)
            self.sent_bytes += size
            self._progress(size)
            return size
        self._returned.append(piece)
        return 0

    def conclude(self) -> None:
        """Nothing is left to send. Whether the target ends there too is asked once more if anything was sent."""
        if self.standing.log_end >= self.end:
            self.done = True
        elif not self._alone:
            self.through = True
        else:
            what = f"the log ends at {self.standing.log_end}, and everything up to {self.end} was acknowledged"
            self.again = ClusterNotReady(what, subject=self.log.target)

    def filled(self, log_end: int) -> None:
        """The hole at the head is filled up to there."""
        self.standing, self.disk_failed = TargetEnd(log_end, self.standing.last_sequence), ""

    def not_taken(self, what: str, ack: Ack) -> None:
        """The broker could not take it at this moment: the target has to be asked again."""
        told = f"broker {self.leader} did not take {what}: {error_name(ack.error)} {ack.said}".rstrip()
        if meaning(ack.error, ack.said) is Next.DISK_FAILED:
            self.disk_failed = told
        self.again = ClusterNotReady(told, subject=self.log.target)

    def runs(self) -> list[RunMap]:
        """Where everything stands that was read of the stream, a map for each archived log."""
        for each in self._runs:
            each.skip_to(self.end)
        return [each.finish() for each in self._runs]

    def _understood(self, step: StreamStep, ack: Ack) -> bool:
        """Whether the answer is that the batch is where it belongs."""
        if not ack.error and ack.base_offset == step.start:
            return True
        answer = meaning(ack.error, ack.said)
        if isinstance(answer, Trouble):
            self.trouble = answer
        elif answer is not Next.GO_ON:
            self.not_taken(f"a batch for offset {step.start}", ack)
        else:
            what = f"what belongs to offset {step.start} came to stand at {ack.base_offset}"
            self.trouble = Trouble(ReplayOutcome.FOREIGN, what)
        return False

    def _judge(self, step: StreamStep) -> None:
        self.trouble = judged(self.standing, step, self.log.producer.position)
        if self.trouble is None and lost(self.standing, step):
            what = f"the log ends at {self.standing.log_end}, before what it had already"
            self.again = ClusterNotReady(what, subject=self.log.target)

    def _first_unpassed(self) -> StreamPiece:
        while True:
            while self._queue and self._queue[0].step.passed(self.standing):
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
        item = self.reading.take()
        if item is None:
            self._ended = True
        elif isinstance(item, StreamStep):
            self.holes, self.fillers = self.holes + 1, self.fillers + item.end - item.start - 1
            self._queue.append(StreamPiece(item))
            self._end = StreamStep(item.end, item.end, item.sent)
        else:
            self._load(item)
            self._end = StreamStep(item.end, item.end, item.sent_after)

    def _load(self, load: Load) -> None:
        total = load.batches.total_records
        if load.filler:
            self.fillers += total
        else:
            self.records += total
            self._runs[load.batches.source].place(load.runs())
        if load.end <= self.standing.log_end:
            self.recent.extend(load.steps()[-_REMEMBERED:])
            self._progress(int(load.batches.sizes.sum()))
            return
        if not load.stamped:  # the target had it when it was read, and has lost it since
            load.stamp(self.log)
        ready = load.batches.ready()
        self._queue.extend(StreamPiece(step, batch) for step, batch in zip(load.steps(), ready, strict=True))
