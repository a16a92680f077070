"""An engine that runs every unit twice at the same time, as Spark does where an executor that it lost still works."""

import threading
from concurrent.futures import ThreadPoolExecutor

from logkeep.engine.inline import InlineEngine
from logkeep.engine.outcomes import UnitDone
from logkeep.engine.stop import SignalStop
from logkeep.errors import LogkeepError
from logkeep.model.work import Progress, ResultT, Task, UnitT


class TwiceEngine(InlineEngine):
    """The result is that of the attempt that ends last; one may fail, as an attempt that nobody waits for may."""

    def __init__(self) -> None:
        super().__init__()
        self.twice = 0
        """Units of which both attempts ended well."""

    def _run(self, task: Task[UnitT, ResultT], units: list[UnitT], label: str, stop: SignalStop) -> dict[int, UnitDone]:
        def both(unit: UnitT, progress: Progress) -> ResultT:
            together, ended = threading.Barrier(2), list[ResultT]()

            def attempt(_number: int) -> LogkeepError | None:
                together.wait(60)
                try:
                    ended.append(task(unit, lambda _: None))
                except LogkeepError as error:
                    return error
                return None

            with ThreadPoolExecutor(2) as pool:
                errors = [error for error in pool.map(attempt, range(2)) if error is not None]
            if not ended:
                raise errors[0]
            self.twice += len(ended) == 2
            return ended[-1]

        return super()._run(both, units, label, stop)
