"""The Spark engine: its session, from the start, which may be in the background, to the end; and the jobs in it."""

import os
import secrets
import time
from collections.abc import Sequence
from contextlib import ExitStack
from functools import partial
from threading import Event

from logkeep.engine.base import BaseEngine
from logkeep.engine.outcomes import UnitDone, sum_bytes
from logkeep.engine.spark.directories import DirectorySign, SharedDirectory, make_sign, remove_sign, report_host
from logkeep.engine.spark.job import POLL_S, Seat, SparkJob, cancel, ended
from logkeep.engine.spark.session import EngineSession
from logkeep.engine.spark.session_start import SessionStart
from logkeep.engine.spark.settings import SparkSettings, attempts, is_local, tasks_at_once
from logkeep.engine.spark.sql.query import Query, QueryResult, run_query
from logkeep.engine.speeds_file import SpeedsFile
from logkeep.engine.stop import Background, SignalStop
from logkeep.errors import EngineUnavailable
from logkeep.model.work import SPARK_STARTS, NoProgress, ProgressSink, ResultT, Task, UnitT

_CHECKS_PER_SLOT = 2


class SparkEngine(BaseEngine):
    """Starts Spark with the first `map`; `close` ends everything that it started. A later `map` starts it again."""

    def __init__(
        self,
        settings: SparkSettings,
        *,
        sink: ProgressSink | None = None,
        stop: SignalStop | None = None,
        directories: Sequence[SharedDirectory] = (),
        speeds: SpeedsFile | None = None,
        limited: bool = False,
    ) -> None:
        """`directories` may grow: on a cluster, workers must see all that are named before a `map`. `speeds` gets what
        is measured on this machine."""
        super().__init__(sink=sink, stop=stop, limited=limited)
        self._speeds = speeds if is_local(settings.master) else None
        self._settings = settings
        self._directories = directories
        self._signs: dict[SharedDirectory, DirectorySign] = {}
        self._start: SessionStart | None = None
        self._session: EngineSession | None = None
        self._used = self._hurry = False

    def query(self, query: Query) -> QueryResult:
        """Run a query in SQL. Raises UsageError for a query that Spark refuses, and whatever `map` raises."""
        from pyspark import InheritableThread  # noqa: PLC0415

        with ExitStack() as stack:
            stop = self._stop or stack.enter_context(SignalStop())
            session = self._started(stop)
            self._check_directories(session, stop)
            group = f"logkeep-{secrets.token_hex(8)}"
            given = frozenset(self._settings.conf)
            action = Background(partial(run_query, session, query, group, given), InheritableThread)
            while not action.wait(POLL_S):
                if stop.cancelled:
                    self._hurry = True
                    cancel(session, group, action)
                    raise stop.error()
            answered = ended(action, session)
        stop.check()
        return answered

    @property
    def running(self) -> bool:
        return self._session is not None

    def at_once(self, units: int) -> int:
        return tasks_at_once(self._settings.master, units, len(os.sched_getaffinity(0)))

    def _processes(self, units: int) -> int:
        return self.at_once(units)

    def begin(self) -> None:
        """Start Spark and its workers in the background, unless it was begun before."""
        if self._session is None and self._start is None:
            self._start = SessionStart(self._settings, self.at_once(len(os.sched_getaffinity(0))))

    def ready(self, timeout_s: float) -> bool:
        """Wait at most `timeout_s` for the start; True when units can run. Raises EngineUnavailable if it failed."""
        if self._session is not None:
            return True
        if self._start is None:
            raise EngineUnavailable("the start failed before", subject=self._settings.master)
        if not self._start.wait(timeout_s):
            return False
        start, self._start = self._start, None
        self._session = start.result()
        if self._speeds is not None and not self._session.records_classes:
            self._speeds.started(start.seconds)
        return True

    def close(self) -> None:
        """End Spark. After an interruption, or where it did nothing: without waiting for anything."""
        for sign in self._signs.values():
            remove_sign(sign)
        self._signs.clear()
        if self._start is not None:
            self._abort_start()
        if self._session is not None:
            self._close_session(self._session, hurry=self._hurry or not self._used)
            self._session, self._used, self._hurry = None, False, False

    def _close_session(self, session: EngineSession, *, hurry: bool) -> None:
        started_s, measured = time.monotonic(), not hurry and not session.records_classes
        session.close(hurry=hurry)
        if self._speeds is not None and measured:
            self._speeds.stopped(time.monotonic() - started_s)

    def _abort_start(self) -> None:
        start, self._start = self._start, None
        if start is not None:
            if self._speeds is not None and not start.wait(0.0):
                self._speeds.started(start.seconds, ended=False)
            start.abort()

    def _started(self, stop: SignalStop) -> EngineSession:
        if self._session is None and self._start is None:
            self._start = SessionStart(self._settings)
        while not self.ready(POLL_S):
            if stop.cancelled:
                self._abort_start()
                raise stop.error()
        assert self._session is not None  # noqa: S101  # it is ready
        self._used = True
        return self._session

    def _check_directories(self, session: EngineSession, stop: SignalStop) -> None:
        """On a cluster, when a directory was named since the last check. Raises UsageError if a worker misses one."""
        if is_local(self._settings.master) or set(self._directories) <= self._signs.keys():
            return
        self._signs |= {each: make_sign(each) for each in self._directories if each not in self._signs}
        slots = session.spark.sparkContext.defaultParallelism
        self._job(session, stop, NoProgress()).run(report_host, list(range(_CHECKS_PER_SLOT * slots)), "directories")

    def _run(self, task: Task[UnitT, ResultT], units: list[UnitT], label: str, stop: SignalStop) -> dict[int, UnitDone]:
        self._sink.waiting("" if self.running else SPARK_STARTS)
        session = self._started(stop)
        self._check_directories(session, stop)
        self._sink.waiting("")
        return self._run_job(self._job(session, stop, self._sink), task, units, label)

    def run_part(
        self,
        task: Task[UnitT, ResultT],
        units: list[UnitT],
        label: str,
        stop: SignalStop,
        sink: ProgressSink,
        freed: Event,
    ) -> dict[int, UnitDone]:
        """See `LateEngine`; only on this machine."""
        session = self._started(stop)
        seat = Seat(session.scratch / f"seat-{secrets.token_hex(8)}", freed)
        try:
            return self._run_job(self._job(session, stop, sink, seat), task, units, label)
        finally:
            seat.free()

    def _job(self, session: EngineSession, stop: SignalStop, sink: ProgressSink, seat: Seat | None = None) -> SparkJob:
        local, signs = is_local(self._settings.master), tuple(self._signs.values())
        return SparkJob(session, stop, sink, attempts(self._settings), local, signs, seat)

    def _run_job(
        self, job: SparkJob, task: Task[UnitT, ResultT], units: list[UnitT], label: str
    ) -> dict[int, UnitDone]:
        started_s = time.monotonic()
        try:
            done = job.run(task, units, label)
        finally:
            self._hurry = self._hurry or job.stop.cancelled
        if self._speeds is not None and len(units) >= (workers := self.at_once(len(units))):
            self._speeds.ran_on_spark(label, sum_bytes(done), time.monotonic() - started_s, workers)
        return done
