"""Work that two engines share: this process begins, and an engine that starts meanwhile takes what is left.

Each unit is begun by one engine and ends there. The late engine gets only units that were never begun, all of them at
once. While this process still works on its last unit, the late engine leaves one of its places free, so that no more
units run at the same time than were promised.
"""

from collections import deque
from collections.abc import Iterator
from functools import partial
from threading import Event, Lock
from typing import Generic, Protocol

from logkeep.engine.inline import InlineRun
from logkeep.engine.outcomes import UnitDone, UnitFailed, to_error
from logkeep.engine.stop import Background, SignalStop
from logkeep.errors import EngineUnavailable, Interrupted
from logkeep.model.work import SPARK_STARTS, ProgressSink, ResultT, Task, UnitT

_POLL_S = 0.25
_START_POLL_S = 0.05
_CANCEL_S = 6.0
"""A cancelled job of Spark ends within this time, see `spark/engine`."""
LatePart = Background[dict[int, UnitDone]]


class UnbegunUnits:
    """Positions of units, in the order in which they should begin. Each is handed out once; threads may share it."""

    def __init__(self, count: int) -> None:
        self._left = deque(range(count))
        self._lock = Lock()

    def next(self) -> int | None:
        """The first one, for this process; None if there is no more."""
        with self._lock:
            return self._left.popleft() if self._left else None

    def rest(self) -> list[int]:
        """All that are left, for the late engine."""
        with self._lock:
            rest = list(self._left)
            self._left.clear()
            return rest

    def __bool__(self) -> bool:
        with self._lock:
            return bool(self._left)


class LateEngine(Protocol):
    """An engine that takes seconds to start, such as Spark."""

    def begin(self) -> None:
        """Start in the background, unless it was begun before."""

    def ready(self, timeout_s: float) -> bool:
        """Wait at most `timeout_s`; True when units can run. Raises EngineUnavailable if it cannot start."""

    def run_part(
        self,
        task: Task[UnitT, ResultT],
        units: list[UnitT],
        label: str,
        stop: SignalStop,
        sink: ProgressSink,
        freed: Event,
    ) -> dict[int, UnitDone]:
        """Run units; the outcome of each by its position. Until `freed` is set, one of its places stays free.

        Raises the error of a failed unit, or that of `stop` when it is cancelled: then no unit is running any more.
        """

    def at_once(self, units: int) -> int: ...

    @property
    def running(self) -> bool:
        """Whether it was ready before."""


class JointProgress:
    """Adds up what two engines report. Only this process calls the real sink, so that calls come from one thread."""

    def __init__(self, sink: ProgressSink) -> None:
        self._sink = sink
        self._here = (0, 0, 0)
        self.there = _OtherCounts()

    def update(self, done_bytes: int, done_units: int, failed_attempts: int) -> None:
        """What this process has done."""
        self._here = (done_bytes, done_units, failed_attempts)
        self.report()

    def report(self) -> None:
        size, units, failed = (here + there for here, there in zip(self._here, self.there.counts, strict=True))
        self._sink.update(size, units, failed)

    def waiting(self, reason: str) -> None:
        self._sink.waiting(reason)


class _OtherCounts:
    """The sink of the late engine."""

    counts = (0, 0, 0)

    def start(self, label: str, total_bytes: int, total_units: int) -> None: ...

    def update(self, done_bytes: int, done_units: int, failed_attempts: int) -> None:
        self.counts = (done_bytes, done_units, failed_attempts)

    def waiting(self, reason: str) -> None: ...

    def finish(self) -> None: ...


class _LateFailed(Interrupted):
    """The other engine failed. It is not an error that tasks catch: a task would handle the other engine's lost broker
    as its own."""


class SharedWork(Generic[UnitT]):
    """The units of one `map`. `run_here` works in the main thread, `run_there` in another."""

    def __init__(
        self, late: LateEngine, units: list[UnitT], label: str, stop: SignalStop, progress: JointProgress
    ) -> None:
        self._late, self._units, self._label, self._stop, self._progress = late, units, label, stop, progress
        self._unbegun = UnbegunUnits(len(units))
        self._late_stop, self._freed = SignalStop(), Event()
        self._handed_over = self._shown = False

    def run_there(self, task: Task[UnitT, ResultT]) -> dict[int, UnitDone]:
        """Wait for the late engine and hand over what is left, unless this process was faster."""
        while not self._late.ready(_START_POLL_S):
            if self._late_stop.cancelled or not self._unbegun:
                return {}
        positions = self._unbegun.rest()
        if not positions:
            return {}
        self._handed_over = True
        rest, sink = [self._units[position] for position in positions], self._progress.there
        done = self._late.run_part(task, rest, self._label, self._late_stop, sink, self._freed)
        return {positions[index]: outcome for index, outcome in done.items()}

    def run_here(self, task: Task[UnitT, ResultT], there: LatePart) -> Iterator[tuple[int, UnitDone]]:
        """One unit at a time, as long as there are any. Raises the error of a failed unit, also of one there."""
        self._progress.waiting("" if self._late.running else SPARK_STARTS)
        run = InlineRun(self._progress, partial(self._check, there))
        while (position := self._unbegun.next()) is not None:
            try:
                outcome = run.unit(task, self._units[position])
            except _LateFailed:
                there.result()
                raise
            if isinstance(outcome, UnitFailed):
                raise to_error(outcome)
            yield position, outcome
        run.report()
        self._freed.set()

    def wait_for(self, there: LatePart) -> dict[int, UnitDone]:
        """The outcomes of the late engine."""
        while not there.wait(_POLL_S):
            self._progress.report()
            self._check_here()
        return {} if self.start_failure(there) else there.result()

    def start_failure(self, there: LatePart) -> EngineUnavailable | None:
        """Why the late engine could not start; None if it could, or may still."""
        if there.wait(0) and not self._handed_over:
            try:
                there.result()
            except EngineUnavailable as error:
                return error
        return None

    def end(self, there: LatePart) -> None:
        """End the late engine's part, so that no unit keeps running."""
        self._late_stop.request()
        self._freed.set()
        there.wait(_CANCEL_S)

    def _check(self, there: LatePart) -> None:
        self._check_here()
        if there.wait(0) and not self.start_failure(there) and there.failed:
            raise _LateFailed("the other engine failed")

    def _check_here(self) -> None:
        self._stop.check()
        if self._handed_over and not self._shown:
            self._shown = True
            self._progress.waiting("")
