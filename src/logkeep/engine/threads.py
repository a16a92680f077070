"""The engine without Spark that works on several units at a time: threads of this process, with the same promises.

For tasks that spend their time in calls which let other threads run: reading, hashing, packing, writing. Signals arrive
in the main thread, which does nothing but wait; a task notices them at its next word of progress.
"""

from collections.abc import Callable, Sequence
from concurrent.futures import FIRST_COMPLETED, Future, ThreadPoolExecutor, wait
from contextlib import ExitStack
from threading import Lock

from logkeep.engine.outcomes import (
    MAX_ATTEMPTS,
    Outcome,
    UnitDone,
    UnitFailed,
    attempt,
    heaviest_first,
    to_error,
    to_result,
)
from logkeep.engine.stop import SignalStop
from logkeep.model.work import NoProgress, ProgressSink, ResultT, Task, UnitT

_INTERVAL_S = 0.25


class ThreadedEngine:
    """At most `parallel` units at the same time."""

    def __init__(self, parallel: int, *, sink: ProgressSink | None = None, stop: SignalStop | None = None) -> None:
        self._parallel = parallel
        self._sink: ProgressSink = sink or NoProgress()
        self._stop = stop

    def map(
        self,
        task: Task[UnitT, ResultT],
        units: Sequence[UnitT],
        result: type[ResultT],
        *,
        label: str,
        weight: Callable[[UnitT], int],
    ) -> list[ResultT]:
        """See `logkeep.model.work.Engine.map`."""
        if not units:
            return []
        weights = [weight(unit) for unit in units]
        with ExitStack() as stack:
            stop = self._stop or stack.enter_context(SignalStop())
            run = _Run(stop)
            self._sink.start(label, sum(weights), len(units))
            stack.callback(self._sink.finish)
            stack.callback(lambda: run.report(self._sink))
            # Leaving the pool waits for what has begun; what has not is dropped first.
            pool = stack.enter_context(ThreadPoolExecutor(self.at_once(len(units))))
            stack.callback(pool.shutdown, wait=False, cancel_futures=True)
            futures = {p: pool.submit(run.unit, task, units[p]) for p in heaviest_first(weights)}
            outcomes = self._gathered(futures, run)
        stop.check()
        return [to_result(outcomes[position], result) for position in range(len(units))]

    def _gathered(self, futures: dict[int, "Future[Outcome]"], run: "_Run") -> dict[int, UnitDone]:
        """Every result, or the first error."""
        positions, outcomes = {future: position for position, future in futures.items()}, {}
        waiting = set(positions)
        while waiting:
            done, waiting = wait(waiting, _INTERVAL_S, FIRST_COMPLETED)
            run.report(self._sink)
            for future in done:
                outcome = future.result()
                if isinstance(outcome, UnitFailed):
                    run.ended = True
                    raise to_error(outcome)
                outcomes[positions[future]] = outcome
        return outcomes

    def at_once(self, units: int) -> int:
        """See `logkeep.model.work.Engine.at_once`."""
        return max(1, min(self._parallel, units))

    def close(self) -> None:
        """Nothing outlives a `map`."""


class _Run:
    """The counters of one `map`, and whether its units should end."""

    def __init__(self, stop: SignalStop) -> None:
        self._stop = stop
        self._lock = Lock()
        self._bytes = self._units = self._failed = 0
        self.ended = False

    def unit(self, task: Task[UnitT, ResultT], unit: UnitT) -> Outcome:
        for number in range(1, MAX_ATTEMPTS + 1):
            self._check()
            counted = _Counted(self)
            try:
                outcome = attempt(task, unit, counted, last=number == MAX_ATTEMPTS)
            except Exception:  # noqa: BLE001  # `attempt` lets exactly those through that deserve another try
                self._check()
                self.add(-counted.done_bytes, failed=1)
                continue
            self._check()  # a task may have swallowed what the stop raised in it
            self.add(0, units=0 if isinstance(outcome, UnitFailed) else 1)
            return outcome
        raise AssertionError("the last attempt returns")

    def add(self, more_bytes: int, *, units: int = 0, failed: int = 0) -> None:
        with self._lock:
            self._bytes += more_bytes
            self._units += units
            self._failed += failed

    def took(self, more_bytes: int) -> None:
        self._check()
        self.add(more_bytes)

    def report(self, sink: ProgressSink) -> None:
        sink.update(self._bytes, self._units, self._failed)

    def _check(self) -> None:
        if self._stop.cancelled or self.ended:
            raise self._stop.error()


class _Counted:
    """The bytes of one attempt: they do not count when it is repeated."""

    def __init__(self, run: _Run) -> None:
        self._run, self.done_bytes = run, 0

    def __call__(self, more_bytes: int) -> None:
        self.done_bytes += more_bytes
        self._run.took(more_bytes)
