"""How one attempt at a unit ended, as a value that crosses process borders (msgpack, never pickle).

The rules both engines share: a foreseen error that a retry cannot cure ends the unit at once; anything else is tried
again up to `MAX_ATTEMPTS` times; after the last attempt the error comes back as data, not as a stack.
"""

import traceback
from collections.abc import Sequence

import msgspec

from logkeep import errors
from logkeep.errors import LogkeepError, TaskFailed
from logkeep.model.work import Progress, ResultT, Task, UnitT

MAX_ATTEMPTS = 4
_MAX_TEXT = 2000
"""Longer messages are cut: an outcome must fit into one datagram."""


class UnitDone(msgspec.Struct, frozen=True, tag="done"):
    """The unit is finished; `result` is the msgpack of the task's result."""

    done_bytes: int
    result: msgspec.Raw


class UnitFailed(msgspec.Struct, frozen=True, tag="failed"):
    """The unit is given up, because of an error of ours (`kind` is its class) or any other (`kind` is empty)."""

    kind: str
    what: str
    subject: str
    remedy: str


Outcome = UnitDone | UnitFailed
_encoder = msgspec.msgpack.Encoder()
_decoder: msgspec.msgpack.Decoder[Outcome] = msgspec.msgpack.Decoder(Outcome)


def encode(outcome: Outcome) -> bytes:
    return _encoder.encode(outcome)


def decode(data: bytes | bytearray | memoryview) -> Outcome:
    return _decoder.decode(data)


def heaviest_first(weights: Sequence[int]) -> list[int]:
    """Positions of the units in the order to start them: a long unit started last would keep one core busy alone."""
    return sorted(range(len(weights)), key=lambda position: -weights[position])


class CountingProgress:
    """Passes a task's byte counts on and remembers their sum."""

    def __init__(self, onward: Progress) -> None:
        self._onward = onward
        self.done_bytes = 0

    def __call__(self, more_bytes: int) -> None:
        self.done_bytes += more_bytes
        self._onward(more_bytes)


def attempt(task: Task[UnitT, ResultT], unit: UnitT, progress: Progress, *, last: bool) -> Outcome:
    """Try a unit once. Raises only when another attempt should follow."""
    counting = CountingProgress(progress)
    try:
        result = task(unit, counting)
    except LogkeepError as error:
        if error.retry_helps and not last:
            raise
        return foreseen(error)
    except Exception as error:
        # A task is foreign code here: whatever it raises has to become a one-line cause after the last attempt.
        if not last:
            raise
        return unforeseen(error)
    return UnitDone(counting.done_bytes, msgspec.Raw(_encoder.encode(result)))


def foreseen(error: LogkeepError) -> UnitFailed:
    return UnitFailed(type(error).__name__, error.what[:_MAX_TEXT], error.subject[:_MAX_TEXT], error.remedy[:_MAX_TEXT])


def unforeseen(error: BaseException) -> UnitFailed:
    """One line: the type, the message and the place."""
    place = traceback.extract_tb(error.__traceback__)[-1:]
    where = f" ({place[0].filename.rsplit('/', 1)[-1]}:{place[0].lineno})" if place else ""
    message = " ".join(str(error).split())[:_MAX_TEXT]
    return UnitFailed(
        "", f"{type(error).__name__}: {message}{where}" if message else type(error).__name__ + where, "", ""
    )


def to_error(failed: UnitFailed, *, log: str = "") -> LogkeepError:
    """The error to raise for a unit that was given up: the task's own class where it is one of ours."""
    kind = vars(errors).get(failed.kind)
    if isinstance(kind, type) and issubclass(kind, LogkeepError):
        return kind(failed.what, subject=failed.subject, remedy=failed.remedy)
    remedy = f"{TaskFailed.remedy}; log: {log}" if log else None
    return TaskFailed(failed.what, remedy=remedy)


def to_result(done: UnitDone, result: type[ResultT]) -> ResultT:
    return msgspec.msgpack.decode(done.result, type=result)
