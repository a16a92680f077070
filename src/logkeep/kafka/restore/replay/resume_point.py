"""Where the replay of a log goes on, told by the target itself. Pure.

What is sent is a fixed stream: batches and holes, each at the target offset it belongs to. So the end of the target's
log says which of them are there, if nobody else wrote. Whether nobody did is told by the broker's memory of our
producer: its last sequence number counts what it sent, and the stream says how much that must be where the log ends.

The memory is read after the end of the log. It may be ahead of it (requests of an attempt that died still arrive, and
a high watermark follows its log): then what we send again is recognised by the broker, or refused as out of order and
the position is asked again. It may never be behind: then somebody else's bytes are in the log.
What fills a hole has no sequence number of ours: a foreign record in a hole is only found by the proof.
"""

from dataclasses import dataclass
from typing import NamedTuple

from logkeep.kafka.restore.facts.units import ReplayOutcome

SEQUENCES = 2**31


@dataclass(frozen=True)
class TargetEnd:
    """What the target says: where its log ends, and then the last sequence number of our producer, None = unknown."""

    log_end: int
    last_sequence: int | None


class StreamStep(NamedTuple):
    """A batch or a hole of the stream: target offsets `[start, end)`, and how many records our producer sent before."""

    start: int
    end: int
    sent: int
    hole: bool = False

    @property
    def sequence(self) -> int:
        """Of its first record."""
        return self.sent % SEQUENCES

    def passed(self, standing: TargetEnd) -> bool:
        """Whether all of it is in the target's log."""
        return self.end <= standing.log_end


@dataclass(frozen=True)
class Trouble:
    """Why a log cannot be gone on with."""

    outcome: ReplayOutcome
    detail: str


def judged(standing: TargetEnd, at: StreamStep, position: int) -> Trouble | None:
    """Whether the stream may go on with this step, the first that is not passed; None: it may.

    The end of a stream is a step without offsets. `position` is where the producer's first record stands or will.
    """
    if standing.log_end < position:
        what = f"the log ends at {standing.log_end}, before {position} where it ended when this was planned"
        return Trouble(ReplayOutcome.GONE, f"{what}: it is another log, or lost its end")
    if standing.last_sequence is None and at.sent:
        what = f"the log ends at {standing.log_end}, and the broker does not know the producer of what is in it"
        return Trouble(ReplayOutcome.FORGOTTEN, what)
    if lost(standing, at):
        return None
    surplus = ahead(standing, at.sent)
    if surplus > 0:
        return _foreign(standing, f"{surplus} offsets more than our producer wrote")
    if at.start < standing.log_end and not at.hole:
        return _foreign(standing, f"not where anything that was sent ends ({at.start} or {at.end})")
    return None


def lost(standing: TargetEnd, at: StreamStep) -> bool:
    """Whether the log ends before what this attempt saw in it: only a new attempt can tell what is left."""
    return standing.log_end < at.start and ahead(standing, at.sent) > 0


def ahead(standing: TargetEnd, sent: int) -> int:
    """How many records of the log our producer did not send; below zero: the broker remembers later ones already.

    Sequence numbers begin again after 2^31, so this is the nearer of two differences.
    """
    known = 0 if standing.last_sequence is None else standing.last_sequence + 1
    return (sent - known + SEQUENCES // 2) % SEQUENCES - SEQUENCES // 2


def _foreign(standing: TargetEnd, what: str) -> Trouble:
    return Trouble(ReplayOutcome.FOREIGN, f"the log ends at {standing.log_end}: {what}")
