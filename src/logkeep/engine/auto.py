"""The engine of `--engine auto`: for each piece of work this process or Spark on this machine, whichever is faster."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from logkeep.engine.choice import Circumstances, WorkSize, estimate
from logkeep.engine.speeds_file import SpeedsFile
from logkeep.model.work import Engine, ResultT, Task, UnitT


@dataclass(frozen=True)
class EngineChoice:
    """What the choice depends on besides the work."""

    speeds: SpeedsFile
    circumstances: Callable[[], Circumstances]

    def takes_spark(self, label: str, weights: Sequence[int]) -> bool:
        work = WorkSize(self.speeds.kind(label), len(weights), sum(weights), max(weights, default=0))
        return estimate(work, self.speeds.speeds, self.circumstances()).takes_spark


class AutoEngine:
    """One of two engines for each `map`. Limits are divided by the answer of `at_once`, so later maps follow it."""

    def __init__(
        self,
        inline: Engine,
        spark: Callable[[], Engine],
        choice: EngineChoice,
        *,
        expected_bytes: int,
        expected_label: str = "",
    ) -> None:
        """`spark` makes Spark's engine when it is needed. The expected label and bytes are those of the main work,
        whose units may not be planned yet, and of units without a weight."""
        self._inline, self._spark, self._choice = inline, spark, choice
        self._expected_bytes, self._expected_label = expected_bytes, expected_label
        self._promised: int | None = None

    def map(
        self,
        task: Task[UnitT, ResultT],
        units: Sequence[UnitT],
        result: type[ResultT],
        *,
        label: str,
        weight: Callable[[UnitT], int],
    ) -> list[ResultT]:
        weights = [weight(unit) for unit in units]
        engine = self._spark() if self._takes_spark(label, weights) else self._inline
        return engine.map(task, units, result, label=label, weight=weight)

    def at_once(self, units: int) -> int:
        takes_spark = self._choice.takes_spark(self._expected_label, self._shares(units))
        self._promised = (self._spark() if takes_spark else self._inline).at_once(units)
        return self._promised

    def close(self) -> None:
        """The command closes what it started."""

    def _takes_spark(self, label: str, weights: Sequence[int]) -> bool:
        if self._promised is not None:
            return self._promised > 1 and len(weights) > 1
        return self._choice.takes_spark(label, weights if any(weights) else self._shares(len(weights)))

    def _shares(self, units: int) -> list[int]:
        return [self._expected_bytes // units] * units if units else []
