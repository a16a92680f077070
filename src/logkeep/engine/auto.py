"""The engine of `--engine auto`: this process, or Spark on this machine where that is faster.

Where Spark is faster it starts in the background, and this process works on the first units meanwhile; see `handover`.
"""

import time
from collections.abc import Callable, Sequence
from contextlib import ExitStack
from dataclasses import dataclass
from functools import partial

from logkeep.engine.base import BaseEngine
from logkeep.engine.choice import Circumstances, WorkSize, estimate
from logkeep.engine.handover import JointProgress, LateEngine, SharedWork
from logkeep.engine.inline import InlineEngine
from logkeep.engine.outcomes import UnitDone, sum_bytes
from logkeep.engine.speeds_file import SpeedsFile
from logkeep.engine.stop import Background, SignalStop
from logkeep.errors import EngineUnavailable
from logkeep.model.work import ProgressSink, ResultT, Task, UnitT


@dataclass(frozen=True)
class EngineChoice:
    """What the choice depends on besides the work."""

    speeds: SpeedsFile
    circumstances: Callable[[], Circumstances]

    def takes_spark(self, label: str, weights: Sequence[int]) -> bool:
        work = WorkSize(self.speeds.kind(label), len(weights), sum(weights), max(weights, default=0))
        return estimate(work, self.speeds.speeds, self.circumstances()).takes_spark


class AutoEngine(BaseEngine):
    """Chooses for each `map`. Limits are divided by the answer of `at_once`, so the next map follows it."""

    def __init__(
        self,
        inline: InlineEngine,
        spark: Callable[[], LateEngine],
        choice: EngineChoice,
        *,
        expected_bytes: int,
        expected_label: str = "",
        unavailable: Callable[[EngineUnavailable], None] = lambda _: None,
        sink: ProgressSink | None = None,
        stop: SignalStop | None = None,
        limited: bool = False,
    ) -> None:
        """`spark` returns Spark's engine, which the caller closes. The expected label and bytes are those of the main
        work, whose units may not be planned yet; they also count for units without a weight. `unavailable` is called
        when Spark cannot start; then this process does the work."""
        super().__init__(sink=sink, stop=stop, limited=limited)
        self._inline, self._spark, self._choice, self._unavailable = inline, spark, choice, unavailable
        self._expected_bytes, self._expected_label = expected_bytes, expected_label
        self._promised: int | None = None
        self._failed = False

    def expect(self, units: int) -> None:
        """Start Spark, if this number of units with the expected bytes is faster there."""
        if not self._failed and self._choice.takes_spark(self._expected_label, self._shares(units)):
            self._spark().begin()

    def map(
        self,
        task: Task[UnitT, ResultT],
        units: Sequence[UnitT],
        result: type[ResultT],
        *,
        label: str,
        weight: Callable[[UnitT], int],
    ) -> list[ResultT]:
        takes_spark = self._takes_spark(label, [weight(unit) for unit in units])
        self._promised = None
        if takes_spark:
            return super().map(task, units, result, label=label, weight=weight)
        return self._inline.map(task, units, result, label=label, weight=weight)

    def at_once(self, units: int) -> int:
        self._promised = 1
        if not self._failed and self._choice.takes_spark(self._expected_label, self._shares(units)):
            spark = self._spark()
            spark.begin()
            self._promised = spark.at_once(units)
        return self._promised

    def _processes(self, units: int) -> int:
        return self._spark().at_once(units)

    def close(self) -> None:
        """Nothing: the command closes the engines that it started."""

    def _takes_spark(self, label: str, weights: Sequence[int]) -> bool:
        if self._failed or len(weights) <= 1:
            return False
        if self._promised is not None:
            return self._promised > 1
        return self._choice.takes_spark(label, weights if any(weights) else self._shares(len(weights)))

    def _shares(self, units: int) -> list[int]:
        return [self._expected_bytes // units] * units if units else []

    def _run(self, task: Task[UnitT, ResultT], units: list[UnitT], label: str, stop: SignalStop) -> dict[int, UnitDone]:
        late = self._spark()
        late.begin()
        progress = JointProgress(self._sink)
        shared, here, started_s = (
            SharedWork(late, units, label, stop, progress),
            dict[int, UnitDone](),
            time.monotonic(),
        )
        with ExitStack() as stack:
            stack.callback(progress.report)
            there = Background(partial(shared.run_there, task))
            stack.callback(shared.end, there)
            with stop.raising():
                for position, done in shared.run_here(task, there):
                    here[position] = done
                    self._note_failure(shared.start_failure(there))
                self._choice.speeds.ran_inline(label, sum_bytes(here), time.monotonic() - started_s, alone=False)
                rest = shared.wait_for(there)
        self._note_failure(shared.start_failure(there))
        return here | rest

    def _note_failure(self, error: EngineUnavailable | None) -> None:
        if error is not None and not self._failed:
            self._failed = True
            self._sink.waiting("")
            self._unavailable(error)
