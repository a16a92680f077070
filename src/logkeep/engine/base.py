"""The part of `map` that every engine shares: order of the units, signals, progress, results."""

from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence
from contextlib import ExitStack

from logkeep.engine.outcomes import UnitDone, to_result
from logkeep.engine.stop import SignalStop
from logkeep.model.work import NoProgress, ProgressSink, ResultT, Task, UnitT
from logkeep.store.throttled import shared_by


class BaseEngine(ABC):
    """See `logkeep.model.work.Engine` for the promises."""

    def __init__(
        self, *, sink: ProgressSink | None = None, stop: SignalStop | None = None, limited: bool = False
    ) -> None:
        """Without a `stop` of the caller, signals are caught while work runs, and the first one cancels it.

        `limited`: the stores that units hold may have rate limits, which all processes have to keep together.
        """
        self._sink: ProgressSink = sink or NoProgress()
        self._stop, self._limited = stop, limited

    def map(
        self,
        task: Task[UnitT, ResultT],
        units: Sequence[UnitT],
        result: type[ResultT],
        *,
        label: str,
        weight: Callable[[UnitT], int],
    ) -> list[ResultT]:
        if not units:
            return []
        weights = [weight(unit) for unit in units]
        # A long unit started last would keep one core busy alone.
        order = sorted(range(len(units)), key=lambda position: -weights[position])
        with ExitStack() as stack:
            stop = self._stop or stack.enter_context(SignalStop())
            self._sink.start(label, sum(weights), len(units))
            stack.callback(self._sink.finish)
            outcomes = self._run(task, self._with_limits([units[position] for position in order]), label, stop)
        stop.check()
        results = {order[index]: to_result(done, result) for index, done in outcomes.items()}
        return [results[position] for position in range(len(units))]

    @abstractmethod
    def _run(self, task: Task[UnitT, ResultT], units: list[UnitT], label: str, stop: SignalStop) -> dict[int, UnitDone]:
        """Start units in their order; the outcome of each by its index. Raises the error of a failed unit."""

    def _with_limits(self, units: list[UnitT]) -> list[UnitT]:
        return shared_by(units, self._processes(len(units))) if self._limited else units

    def _processes(self, units: int) -> int:
        """How many processes work on these units at the same time. Threads share a limit as it is."""
        return 1

    @abstractmethod
    def at_once(self, units: int) -> int: ...

    @abstractmethod
    def close(self) -> None: ...
