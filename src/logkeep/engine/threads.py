"""The engine without Spark that runs several units at a time, in threads of this process.

For tasks that spend their time in calls that release Python's lock: reading, hashing, packing, writing. Signals arrive
in the main thread, which only waits; a task notices them when it reports progress.
"""

from concurrent.futures import FIRST_COMPLETED, Future, ThreadPoolExecutor, wait
from contextlib import ExitStack
from threading import Lock

from logkeep.engine.base import BaseEngine
from logkeep.engine.outcomes import MAX_ATTEMPTS, Outcome, UnitDone, UnitFailed, attempt, to_error
from logkeep.engine.stop import SignalStop
from logkeep.model.work import ProgressSink, ResultT, Task, UnitT

_INTERVAL_S = 0.25


class ThreadedEngine(BaseEngine):
    """At most `parallel` units at the same time."""

    def __init__(self, parallel: int, *, sink: ProgressSink | None = None, stop: SignalStop | None = None) -> None:
        super().__init__(sink=sink, stop=stop)
        self._parallel = parallel

    def _run(self, task: Task[UnitT, ResultT], units: list[UnitT], label: str, stop: SignalStop) -> dict[int, UnitDone]:
        run = _Run(stop)
        with ExitStack() as stack:
            stack.callback(lambda: run.report(self._sink))
            # Leaving the pool waits for units that have begun; the others are dropped first.
            pool = stack.enter_context(ThreadPoolExecutor(self.at_once(len(units))))
            stack.callback(pool.shutdown, wait=False, cancel_futures=True)
            futures = {pool.submit(run.unit, task, unit): index for index, unit in enumerate(units)}
            return self._collect(futures, run)

    def _collect(self, futures: dict["Future[Outcome]", int], run: "_Run") -> dict[int, UnitDone]:
        """Every outcome, or the first error."""
        outcomes: dict[int, UnitDone] = {}
        waiting = set(futures)
        while waiting:
            done, waiting = wait(waiting, _INTERVAL_S, FIRST_COMPLETED)
            run.report(self._sink)
            for future in done:
                outcome = future.result()
                if isinstance(outcome, UnitFailed):
                    run.ended = True
                    raise to_error(outcome)
                outcomes[futures[future]] = outcome
        return outcomes

    def at_once(self, units: int) -> int:
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
            except Exception:  # noqa: BLE001  # `attempt` raises only what may be tried again
                self._check()
                self.add(-counted.done_bytes, failed=1)
                continue
            self._check()  # a task may have caught what the stop raised in it
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
    """The bytes of one attempt. They do not count if the unit is attempted again."""

    def __init__(self, run: _Run) -> None:
        self._run, self.done_bytes = run, 0

    def __call__(self, more_bytes: int) -> None:
        self.done_bytes += more_bytes
        self._run.took(more_bytes)
