"""How one attempt at a unit ended, as a value that crosses process borders (msgpack, never pickle).

All engines follow the same rules: one of our errors that a retry cannot cure ends the unit at once; anything else is
tried again up to `MAX_ATTEMPTS` times; after the last attempt the error comes back as data, not as a stack trace.
"""

import traceback
from collections.abc import Mapping

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
    """The unit failed for good, with one of our errors (`kind` is its class) or any other (`kind` is empty)."""

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


class CountingProgress:
    """Forwards a task's byte counts and keeps their sum."""

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
        return own_failure(error)
    except Exception as error:
        # Whatever a task raises becomes a one-line cause after the last attempt.
        if not last:
            raise
        return other_failure(error)
    return UnitDone(counting.done_bytes, msgspec.Raw(_encoder.encode(result)))


def own_failure(error: LogkeepError) -> UnitFailed:
    return UnitFailed(type(error).__name__, error.what[:_MAX_TEXT], error.subject[:_MAX_TEXT], error.remedy[:_MAX_TEXT])


def other_failure(error: BaseException) -> UnitFailed:
    """One line: the type, the message and the place."""
    place = traceback.extract_tb(error.__traceback__)[-1:]
    where = f" ({place[0].filename.rsplit('/', 1)[-1]}:{place[0].lineno})" if place else ""
    message = " ".join(str(error).split())[:_MAX_TEXT]
    return UnitFailed(
        "", f"{type(error).__name__}: {message}{where}" if message else type(error).__name__ + where, "", ""
    )


def to_error(failed: UnitFailed, *, log: str = "") -> LogkeepError:
    """The error to raise for a failed unit: the task's own class where it is one of ours."""
    kind = vars(errors).get(failed.kind)
    if isinstance(kind, type) and issubclass(kind, LogkeepError):
        return kind(failed.what, subject=failed.subject, remedy=failed.remedy)
    remedy = f"{TaskFailed.remedy}; log: {log}" if log else None
    return TaskFailed(failed.what, remedy=remedy)


def to_result(done: UnitDone, result: type[ResultT]) -> ResultT:
    return msgspec.msgpack.decode(done.result, type=result)


def sum_bytes(outcomes: Mapping[int, UnitDone]) -> int:
    return sum(outcome.done_bytes for outcome in outcomes.values())
