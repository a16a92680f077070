"""The engine without Spark: every unit in this process, one after the other, with the same promises.

For unit tests and for small jobs on machines without Java.
"""

import time
from collections.abc import Callable, Sequence
from contextlib import ExitStack

from logkeep.engine.outcomes import MAX_ATTEMPTS, Outcome, UnitFailed, attempt, heaviest_first, to_error, to_result
from logkeep.engine.stop import SignalStop
from logkeep.model.work import NoProgress, ProgressSink, ResultT, Task, UnitT

_INTERVAL_S = 0.25


class InlineEngine:
    """Same results, same order, same errors as the Spark engine. Retries follow at once: tasks back off themselves."""

    def __init__(
        self,
        *,
        sink: ProgressSink | None = None,
        stop: SignalStop | None = None,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self._sink: ProgressSink = sink or NoProgress()
        self._stop = stop
        self._clock = clock

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
        results: dict[int, ResultT] = {}
        with ExitStack() as stack:
            stop = self._stop or stack.enter_context(SignalStop())
            run = _Run(self._sink, stop, self._clock)
            self._sink.start(label, sum(weights), len(units))
            stack.callback(self._sink.finish)
            stack.callback(run.report)
            with stop.raising():
                for position in heaviest_first(weights):
                    outcome = run.unit(task, units[position])
                    if isinstance(outcome, UnitFailed):
                        raise to_error(outcome)
                    results[position] = to_result(outcome, result)
        stop.check()
        return [results[position] for position in range(len(units))]

    def at_once(self, units: int) -> int:
        """See `logkeep.model.work.Engine.at_once`."""
        return 1

    def close(self) -> None:
        """Nothing was started."""


class _Run:
    """The counters of one `map`."""

    def __init__(self, sink: ProgressSink, stop: SignalStop, clock: Callable[[], float]) -> None:
        self._sink = sink
        self._stop = stop
        self._clock = clock
        self._next_s = 0.0
        self._finished_bytes = 0
        self._finished_units = 0
        self._attempt_bytes = 0
        self._failed_attempts = 0

    def unit(self, task: Task[UnitT, ResultT], unit: UnitT) -> Outcome:
        for number in range(1, MAX_ATTEMPTS + 1):
            self._check_stop()
            self._attempt_bytes = 0
            try:
                outcome = attempt(task, unit, self._progress, last=number == MAX_ATTEMPTS)
            except Exception:  # noqa: BLE001  # `attempt` lets exactly those through that deserve another try
                self._failed_attempts += 1
                continue
            self._check_stop()  # a task may have swallowed the error that the signal raised in it
            self._finished(outcome)
            return outcome
        raise AssertionError("the last attempt returns")

    def _finished(self, outcome: Outcome) -> None:
        if isinstance(outcome, UnitFailed):
            self._failed_attempts += 1
        else:
            self._finished_units += 1
            self._finished_bytes += self._attempt_bytes
        self._attempt_bytes = 0
        self._report_now_and_then()

    def _progress(self, more_bytes: int) -> None:
        self._attempt_bytes += more_bytes
        self._check_stop()
        self._report_now_and_then()

    def _report_now_and_then(self) -> None:
        now_s = self._clock()
        if now_s >= self._next_s:
            self._next_s = now_s + _INTERVAL_S
            self.report()

    def report(self) -> None:
        self._sink.update(self._finished_bytes + self._attempt_bytes, self._finished_units, self._failed_attempts)

    def _check_stop(self) -> None:
        if self._stop.cancelled:
            raise self._stop.error()
