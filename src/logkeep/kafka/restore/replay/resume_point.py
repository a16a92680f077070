"""Where the replay of a log resumes, and what a broker's answer to a batch means. Pure.

The stream of a log is fixed: batches and holes, each with its target offset. If no other client wrote, the target's log
end therefore shows which of them it has. The broker's state of our producer shows whether another client wrote: its
last sequence number counts what the producer sent, and the stream gives the count expected at the log end.

The producer state is read after the log end. It may be ahead (requests of a killed attempt still arrive, and the high
watermark follows the log): then the broker recognises what we send again, or refuses it as out of order and the log end
is read again. It may never be behind: then the log holds bytes of another client.
Fillers of holes do not count in our sequence: only the proof finds a foreign record in a hole.
"""

from dataclasses import dataclass
from enum import StrEnum
from typing import Final, NamedTuple

from logkeep.kafka.client.error_codes import OK
from logkeep.kafka.client.protocol import error_name
from logkeep.kafka.restore.facts.units import ReplayOutcome
from logkeep.model.plurals import plural

SEQUENCES = 2**31
_REFUSED: Final = frozenset({2, 10, 17, 18, 21, 32, 42, 43, 44, 47, 67, 76, 87})
"""Codes for a batch that the broker would refuse again: it is corrupt or too large, or its topic, acks, time, format,
codec or a record is invalid, the request is invalid or too large, a policy forbids it, or another client raised the
epoch."""
_DENIED: Final = frozenset({29, 31, 53})
_DISK_FAILED: Final = 56


@dataclass(frozen=True)
class TargetEnd:
    """The target's log end, and the last sequence number of our producer, read after it; None: the broker has none."""

    log_end: int
    last_sequence: int | None


class StreamStep(NamedTuple):
    """A batch or a hole of the stream: target offsets `[start, end)`; `sent` records of our producer precede it."""

    start: int
    end: int
    sent: int
    hole: bool = False

    def passed(self, target: TargetEnd) -> bool:
        """Whether the target's log has all of it."""
        return self.end <= target.log_end


@dataclass(frozen=True)
class Trouble:
    """Why the replay of a log cannot continue."""

    outcome: ReplayOutcome
    detail: str


def check_resume(target: TargetEnd, at: StreamStep, position: int) -> Trouble | None:
    """Check whether the stream can resume at this step, the first that the target lacks; None: it can.

    The end of a stream is a step without offsets. `position` is the target offset of the producer's first record.
    """
    if target.log_end < position:
        what = f"the log ends at {target.log_end}, before offset {position}, its end when this was planned"
        return Trouble(ReplayOutcome.GONE, f"{what}: the topic was recreated, or the log lost its end")
    if target.last_sequence is None and at.sent:
        what = f"the log ends at {target.log_end}, and the broker has no state of the producer that wrote it"
        return Trouble(ReplayOutcome.FORGOTTEN, what)
    if lost_records(target, at):
        return None
    surplus = records_ahead(target, at.sent)
    if surplus > 0:
        return _foreign(target, f"{plural(surplus, 'more offset')} than the producer of this restore wrote")
    if at.start < target.log_end and not at.hole:
        return _foreign(target, f"no sent batch ends there (expected {at.start} or {at.end})")
    return None


def lost_records(target: TargetEnd, at: StreamStep) -> bool:
    """Whether the log lost records that this attempt saw in it: only a new attempt can find out what is left."""
    return target.log_end < at.start and records_ahead(target, at.sent) > 0


def records_ahead(target: TargetEnd, sent: int) -> int:
    """The number of records in the log that our producer did not send; negative: the broker already has later ones.

    Sequence numbers wrap after 2^31, so this is the smaller of two differences.
    """
    known = 0 if target.last_sequence is None else target.last_sequence + 1
    return (sent - known + SEQUENCES // 2) % SEQUENCES - SEQUENCES // 2


def _foreign(target: TargetEnd, what: str) -> Trouble:
    return Trouble(ReplayOutcome.FOREIGN, f"the log ends at {target.log_end}: {what}")


class ProduceAnswer(StrEnum):
    """What a broker's answer to a batch means."""

    APPENDED = "appended"
    RETRY = "retry"
    """Read the log end and the leader again, then send what is missing: the same bytes."""
    DISK_FAILED = "disk-failed"
    """The same, because another replica may become leader; if none does, this is the reason to report."""


def meaning_of_answer(error: int, said: str) -> ProduceAnswer | Trouble:
    """What an error code of a produce response means; `said` is the broker's message."""
    if error == OK:
        return ProduceAnswer.APPENDED
    reason = f"{error_name(error)}{': ' + said if said else ''}"
    if error in _REFUSED:
        return Trouble(ReplayOutcome.REFUSED, f"the broker refuses a batch: {reason}")
    if error in _DENIED:
        return Trouble(ReplayOutcome.DENIED, f"this user may not write to the partition: {reason}")
    return ProduceAnswer.DISK_FAILED if error == _DISK_FAILED else ProduceAnswer.RETRY
