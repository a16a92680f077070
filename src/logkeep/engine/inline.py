"""The engine without Spark: units run in this process, one after the other.

For small jobs, machines without Java, and unit tests.
"""

import time
from collections.abc import Callable
from typing import Protocol

from logkeep.engine.base import BaseEngine
from logkeep.engine.outcomes import MAX_ATTEMPTS, Outcome, UnitDone, UnitFailed, attempt, sum_bytes, to_error
from logkeep.engine.speeds_file import SpeedsFile
from logkeep.engine.stop import SignalStop
from logkeep.model.work import ProgressSink, ResultT, Task, UnitT

_INTERVAL_S = 0.25


class UpdateSink(Protocol):
    """The part of a `ProgressSink` that units need."""

    def update(self, done_bytes: int, done_units: int, failed_attempts: int) -> None: ...


class InlineEngine(BaseEngine):
    """Same results, same order, same errors as the Spark engine. It retries at once, because tasks wait themselves."""

    def __init__(
        self,
        *,
        sink: ProgressSink | None = None,
        stop: SignalStop | None = None,
        clock: Callable[[], float] = time.monotonic,
        speeds: SpeedsFile | None = None,
    ) -> None:
        """`speeds` gets what is measured."""
        super().__init__(sink=sink, stop=stop)
        self._clock, self._speeds = clock, speeds

    def _run(self, task: Task[UnitT, ResultT], units: list[UnitT], label: str, stop: SignalStop) -> dict[int, UnitDone]:
        run, outcomes, started_s = (
            InlineRun(self._sink, stop.check, self._clock),
            dict[int, UnitDone](),
            time.monotonic(),
        )
        try:
            with stop.raising():
                for index, unit in enumerate(units):
                    outcome = run.unit(task, unit)
                    if isinstance(outcome, UnitFailed):
                        raise to_error(outcome)
                    outcomes[index] = outcome
        finally:
            run.report()
        if self._speeds is not None:
            self._speeds.ran_inline(label, sum_bytes(outcomes), time.monotonic() - started_s)
        return outcomes

    def at_once(self, units: int) -> int:
        return 1

    def close(self) -> None:
        """Does nothing: this engine starts no process."""


class InlineRun:
    """The counters of one `map`. `check` raises when the work must end; it is called often."""

    def __init__(
        self, sink: UpdateSink, check: Callable[[], None], clock: Callable[[], float] = time.monotonic
    ) -> None:
        self._sink, self._check_stop, self._clock = sink, check, clock
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
            except Exception:  # noqa: BLE001  # `attempt` raises only what may be tried again
                self._failed_attempts += 1
                continue
            self._check_stop()  # a task may have caught the error that the signal raised in it
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
        self._report_if_due()

    def _progress(self, more_bytes: int) -> None:
        self._attempt_bytes += more_bytes
        self._check_stop()
        self._report_if_due()

    def _report_if_due(self) -> None:
        now_s = self._clock()
        if now_s >= self._next_s:
            self._next_s = now_s + _INTERVAL_S
            self.report()

    def report(self) -> None:
        self._sink.update(self._finished_bytes + self._attempt_bytes, self._finished_units, self._failed_attempts)
