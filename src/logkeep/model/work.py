"""Work that an engine spreads over processes, and what the engine promises.

A *task* is a plain top-level function `task(unit, progress) -> result`. It imports no pyspark, opens what it needs,
closes it, and returns foreseen outcomes as values; it raises only for what a retry can cure. The same function runs
inline in a unit test, in a local Spark worker and on a cluster.
"""

from collections.abc import Callable, Sequence
from typing import Protocol, TypeVar

import msgspec

UnitT = TypeVar("UnitT")
ResultT = TypeVar("ResultT", bound=msgspec.Struct)

Progress = Callable[[int], None]
"""Called by a task with the number of bytes done since its last call; cheap enough to call per megabyte."""

Task = Callable[[UnitT, Progress], ResultT]


class Engine(Protocol):
    """Runs one task per unit and brings the results back."""

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

        A unit may be tried several times, and an attempt that was given up may still be running somewhere: tasks
        must bear that. Raises `TaskFailed` (or the task's own `LogkeepError`, when every attempt raised one) after
        the last attempt; `Interrupted` when a signal came: then no new unit was started after it.
        """

    def at_once(self, units: int) -> int:
        """At most so many of that many units run at the same time: a limit over all of them is divided by this."""

    def close(self) -> None:
        """Stop what the engine started. May be called twice."""


EngineFor = Callable[[int], Engine]
"""Chooses the engine for so many bytes."""


class ProgressSink(Protocol):
    """Where an engine tells how far it is. Calls come from one thread, at most a few times a second."""

    def start(self, label: str, total_bytes: int, total_units: int) -> None: ...

    def update(self, done_bytes: int, done_units: int, failed_attempts: int) -> None:
        """Totals since `start`. Bytes come from the workers themselves and may run back when an attempt is repeated."""

    def finish(self) -> None: ...


class NoProgress:
    """A sink for tests and for `--quiet`."""

    def start(self, label: str, total_bytes: int, total_units: int) -> None: ...

    def update(self, done_bytes: int, done_units: int, failed_attempts: int) -> None: ...

    def finish(self) -> None: ...
