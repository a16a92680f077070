"""The stream of batches sent for one log, in order, each with its target offset and sequence number.

The plan and the archive alone determine the stream. With `preserve` it begins with fillers up to the log's first
offset; after them every batch keeps its own offset, and each hole is a separate step. Batches that the target already
has are included, because their records count as restored; they are not stamped, because they are not sent.
"""

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass

import numpy as np

from logkeep.errors import Damaged
from logkeep.formats.kafka.batches import Longs
from logkeep.formats.kafka.restore.send_batches import OffsetHole, Outgoing, stamp
from logkeep.formats.kafka.restore.synthetic_batches import filler_batches
from logkeep.kafka.restore.facts.units import Offsets, ReplayLog
from logkeep.kafka.restore.replay.resume_point import StreamStep


@dataclass(frozen=True)
class SendBuffer:
    """Batches in one buffer, ready to send."""

    batches: Outgoing
    starts: Longs
    """The target offset of each."""
    sent: Longs
    """The number of records that our producer sends before each batch."""
    sent_after: int
    """The same after the last batch."""
    first_sequence: int
    filler: bool
    stamped: bool
    """Whether they can be sent; batches that the target had when they were read are not stamped."""

    @property
    def end(self) -> int:
        return int(self.starts[-1] + self.batches.records[-1])

    def stamp(self, log: ReplayLog) -> None:
        stamp(self.batches, log.producer.producer_id, log.producer.epoch, self.first_sequence)

    def steps(self) -> list[StreamStep]:
        columns = self.starts.tolist(), (self.starts + self.batches.records).tolist(), self.sent.tolist()
        return [StreamStep(start, end, sent) for start, end, sent in zip(*columns, strict=True)]

    def runs(self) -> Longs:
        """Rows of (source offset, target offset, n)."""
        if len(self.batches.runs) == 1:
            ((source, count),) = self.batches.runs.tolist()
            return np.array([[source, int(self.starts[0]), count]], np.int64)
        sources, counts = self.batches.runs[:, 0], self.batches.runs[:, 1]
        return np.column_stack((sources, int(self.starts[0]) + np.cumsum(counts) - counts, counts))


def stream(
    log: ReplayLog, parts: Iterable[Outgoing | OffsetHole], reached: Callable[[], int]
) -> Iterator[SendBuffer | StreamStep]:
    """Holes and batches. What ends at or before `reached()` is already in the target."""
    placing = _Placing(log, reached)
    if log.offsets is Offsets.PRESERVE:
        for filler in filler_batches(log.first.start - log.base):
            yield placing.load(filler, filler=True)
    for part in parts:
        yield placing.hole(part) if isinstance(part, OffsetHole) else placing.load(part)


class _Placing:
    """Assigns target offsets and sequence numbers to batches."""

    def __init__(self, log: ReplayLog, reached: Callable[[], int]) -> None:
        self._log, self._reached = log, reached
        self._target, self._sent = log.base, 0

    def hole(self, hole: OffsetHole) -> StreamStep:
        self._check(hole.start)
        start, self._target = self._target, self._target + hole.length
        return StreamStep(start, self._target, self._sent, hole=True)

    def load(self, batches: Outgoing, *, filler: bool = False) -> SendBuffer:
        if not filler:
            self._check(int(batches.first_offsets[0]))
        before = np.cumsum(batches.records) - batches.records
        starts = self._target + before
        # Batches before the producer's position were sent by an earlier producer of this restore.
        counted = np.where(starts >= self._log.producer.position, batches.records, 0)
        sent = self._sent + np.cumsum(counted) - counted
        end = int(starts[-1] + batches.records[-1])
        made = SendBuffer(
            batches,
            starts,
            sent,
            int(sent[-1] + counted[-1]),
            int(sent[-1] - before[-1]),
            filler,
            stamped=end > self._reached(),
        )
        if made.stamped:
            made.stamp(self._log)
        self._target, self._sent = made.end, made.sent_after
        return made

    def _check(self, source: int) -> None:
        """With `preserve`, source and target offset must be equal."""
        if self._log.offsets is Offsets.PRESERVE and source != self._target:
            what = f"the batch of offset {source} would get offset {self._target}"
            raise Damaged(what, subject=str(self._log.first.log))
