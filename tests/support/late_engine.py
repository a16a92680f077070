"""A late engine in threads of the test: it is ready when the test says so."""

from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from threading import Event

from logkeep.engine.auto import AutoEngine, EngineChoice
from logkeep.engine.choice import Circumstances
from logkeep.engine.handover import LateEngine
from logkeep.engine.inline import InlineEngine
from logkeep.engine.outcomes import UnitDone, UnitFailed, attempt, to_error
from logkeep.engine.speeds_file import SpeedsFile
from logkeep.engine.stop import SignalStop
from logkeep.errors import EngineUnavailable
from logkeep.model.work import ProgressSink, ResultT, Task, UnitT

LARGE = 10**11
"""Bytes of a unit: two of them are faster on Spark by any estimate."""
PATIENCE_S = 30.0


class ThreadedLateEngine:
    """Keeps the promises of `LateEngine`."""

    def __init__(self, workers: int = 2) -> None:
        self.workers = workers
        self.may_start, self.took_over = Event(), Event()
        self.failure: EngineUnavailable | None = None
        self.begun = 0
        self.parts: list[int] = []
        """How many units each part had."""

    @property
    def running(self) -> bool:
        return False

    def begin(self) -> None:
        self.begun += 1

    def ready(self, timeout_s: float) -> bool:
        ready = self.may_start.wait(timeout_s)
        if ready and self.failure is not None:
            raise self.failure
        return ready

    def at_once(self, units: int) -> int:
        return min(units, self.workers)

    def run_part(
        self,
        task: Task[UnitT, ResultT],
        units: list[UnitT],
        label: str,
        stop: SignalStop,
        sink: ProgressSink,
        freed: Event,
    ) -> dict[int, UnitDone]:
        self.parts.append(len(units))

        def one(unit: UnitT) -> UnitDone:
            stop.check()
            outcome = attempt(task, unit, lambda _: stop.check(), last=True)
            stop.check()
            if isinstance(outcome, UnitFailed):
                raise to_error(outcome)
            return outcome

        over = Event()
        with ThreadPoolExecutor(self.workers) as pool:
            pool.submit(_keep_seat, freed, over)
            futures = [pool.submit(one, unit) for unit in units]
            self.took_over.set()
            try:
                done = {index: future.result() for index, future in enumerate(futures)}
            except BaseException:
                over.set()
                pool.shutdown(wait=False, cancel_futures=True)
                raise
        sink.update(sum(each.done_bytes for each in done.values()), len(done), 0)
        return done


def _keep_seat(freed: Event, over: Event) -> None:
    while not freed.wait(0.01) and not over.is_set():
        pass


def auto_engine(
    late: LateEngine,
    cache: Path,
    *,
    sink: ProgressSink | None = None,
    stop: SignalStop | None = None,
    unavailable: Callable[[EngineUnavailable], None] = lambda _: None,
) -> AutoEngine:
    """With speeds that were never measured."""
    choice = EngineChoice(SpeedsFile(cache), lambda: Circumstances(workers=late.at_once(4)))
    inline = InlineEngine(sink=sink, stop=stop)
    return AutoEngine(
        inline, lambda: late, choice, expected_bytes=4 * LARGE, unavailable=unavailable, sink=sink, stop=stop
    )


class Promising:
    """Asks how many units run at the same time before each map, as backups with limits do."""

    def __init__(self, engine: AutoEngine) -> None:
        self._engine = engine
        self.at_once, self.close = engine.at_once, engine.close

    def map(
        self,
        task: Task[UnitT, ResultT],
        units: Sequence[UnitT],
        result: type[ResultT],
        *,
        label: str,
        weight: Callable[[UnitT], int],
    ) -> list[ResultT]:
        self.at_once(len(units))
        return self._engine.map(task, units, result, label=label, weight=weight)
