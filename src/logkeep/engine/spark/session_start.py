"""A start of Spark that is under way in a thread of its own, while the main thread works or waits."""

import time
from functools import partial

from logkeep.engine.spark.session import EngineSession
from logkeep.engine.spark.settings import SparkSettings
from logkeep.engine.spark.worker import pass_through
from logkeep.engine.stop import Background
from logkeep.errors import EngineUnavailable, LogkeepError

_POLL_S = 0.25
_ABORT_S = 10.0


class SessionStart:
    """A start of Spark, which begins at once."""

    def __init__(self, settings: SparkSettings, workers: int = 0) -> None:
        """So many workers are started too: the first unit need not wait for them."""
        self._session, self._started_s = EngineSession(settings), time.monotonic()
        self._ended_s: float | None = None
        self._background = Background(partial(self._run, workers))

    @property
    def seconds(self) -> float:
        """How long it took, or has taken so far. It may have ended long before this is asked."""
        return (self._ended_s or time.monotonic()) - self._started_s

    def _run(self, workers: int) -> None:
        try:
            _start(self._session, workers)
        finally:
            self._ended_s = time.monotonic()

    def wait(self, timeout_s: float) -> bool:
        """Wait at most `timeout_s`; return whether it has ended, well or not."""
        return self._background.wait(timeout_s)

    def result(self) -> EngineSession:
        """The session. Raises EngineUnavailable, or UsageError for refused settings; then nothing is left of it."""
        try:
            self._background.result()
        except LogkeepError:
            self._session.close(hurry=True)
            raise
        except Exception as error:
            # The first job may fail in as many ways as any: PySpark, py4j and the JVM have errors of their own.
            self._session.close(hurry=True)
            raise EngineUnavailable(f"Spark did not start: {type(error).__name__}") from error
        return self._session

    def abort(self) -> None:
        """End it, however far it is, and all of its processes."""
        deadline_s = time.monotonic() + _ABORT_S
        while not self.wait(0.0) and time.monotonic() < deadline_s:
            self._session.abort()  # again, as the JVM may appear only now
            self.wait(_POLL_S)
        self._session.close(hurry=True)


def _start(session: EngineSession, workers: int) -> None:
    session.start()
    if workers:
        session.spark.range(0, workers, 1, workers).mapInArrow(pass_through, "id long").collect()
