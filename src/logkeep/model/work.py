"""Tasks and the interface of the engines that run them.

A *task* is a plain top-level function `task(unit, progress) -> result`. It imports no pyspark, opens and closes what it
needs, and returns expected outcomes as values; it raises only errors that a retry can cure. The same function runs
inline in a unit test, in a local Spark worker and on a cluster.
"""

from collections.abc import Callable, Sequence
from typing import Protocol, TypeVar

import msgspec

UnitT = TypeVar("UnitT")
ResultT = TypeVar("ResultT", bound=msgspec.Struct)

Progress = Callable[[int], None]
"""Called by a task with the bytes done since its last call; cheap enough for every megabyte."""

Task = Callable[[UnitT, Progress], ResultT]


class Engine(Protocol):
    """Runs one task per unit and returns the results."""

    def map(
        self,
        task: Task[UnitT, ResultT],
        units: Sequence[UnitT],
        result: type[ResultT],
        *,
        label: str,
        weight: Callable[[UnitT], int],
    ) -> list[ResultT]:
        """Run `task` on every unit, heaviest (by `weight`, in bytes) first, and return results in the order of `units`.

        A unit may be tried several times, and an abandoned attempt may still be running: tasks must tolerate that.
        Raises `TaskFailed` (or the task's own `LogkeepError`, if every attempt raised one) after the last attempt;
        `Interrupted` after a signal: then no new unit was started.
        """

    def at_once(self, units: int) -> int:
        """How many of these units run at the same time at most: limits are divided by this."""

    def close(self) -> None:
        """Stop what the engine started. May be called twice."""


EngineFor = Callable[[int], Engine]
"""Chooses the engine for a number of bytes."""


SPARK_STARTS = "Spark is starting"
COUNTED_BYTES = {"restore and compare": "sent and compared", "fold": "read and written"}
"""Labels of work that counts a byte more than once, with the words that say so beside the sum."""


class ProgressSink(Protocol):
    """Receives the progress of an engine. Calls come from one thread, at most a few times a second."""

    def start(self, label: str, total_bytes: int, total_units: int) -> None: ...

    def update(self, done_bytes: int, done_units: int, failed_attempts: int) -> None:
        """Totals since `start`. Bytes may decrease when an attempt is repeated."""

    def waiting(self, reason: str) -> None:
        """Units wait, or only some of them run, for this reason ("Spark is starting"); empty: no longer."""

    def finish(self) -> None: ...


class NoProgress:
    """A sink for tests and for `--quiet`."""

    def start(self, label: str, total_bytes: int, total_units: int) -> None: ...

    def update(self, done_bytes: int, done_units: int, failed_attempts: int) -> None: ...

    def waiting(self, reason: str) -> None: ...

    def finish(self) -> None: ...
