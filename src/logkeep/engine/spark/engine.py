"""The Spark engine: one Spark task per unit. Spark retries; the main thread watches and cancels."""

import os
import secrets
import time
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, suppress
from functools import partial
from typing import TYPE_CHECKING, Any, TypeVar

from logkeep.engine.base import BaseEngine
from logkeep.engine.outcomes import Outcome, UnitDone, UnitFailed, decode, sum_bytes, to_error
from logkeep.engine.spark.counters import CounterReceiver
from logkeep.engine.spark.directories import DirectorySign, SharedDirectory, make_sign, remove_sign, report_host
from logkeep.engine.spark.failures import job_error
from logkeep.engine.spark.query import Query, QueryResult, run_query
from logkeep.engine.spark.session import EngineSession
from logkeep.engine.spark.settings import SparkSettings, attempts, is_local, tasks_at_once
from logkeep.engine.spark.worker import ROW, WorkerJob, run_partition
from logkeep.engine.speeds_file import SpeedsFile
from logkeep.engine.stop import Background, SignalStop
from logkeep.errors import LogkeepError
from logkeep.model.work import SPARK_STARTS, ProgressSink, ResultT, Task, UnitT

if TYPE_CHECKING:
    import pyarrow as pa

T = TypeVar("T")
_POLL_S = 0.25
_CANCEL_S = 2.0
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
    ) -> None:
        """`directories` may grow: on a cluster, workers must see all that are named before a `map`. `speeds` gets what
        is measured on this machine."""
        super().__init__(sink=sink, stop=stop)
        self._speeds = speeds if is_local(settings.master) else None
        self._settings = settings
        self._directories = directories
        self._signs: dict[SharedDirectory, DirectorySign] = {}
        self._session: EngineSession | None = None
        self._hurry = False

    def query(self, query: Query) -> QueryResult:
        """Run a query in SQL. Raises UsageError for a query that Spark refuses; otherwise as `map`."""
        from pyspark import InheritableThread  # noqa: PLC0415

        with ExitStack() as stack:
            stop = self._stop or stack.enter_context(SignalStop())
            session = self._started(stop)
            self._check_directories(session, stop)
            group = f"logkeep-{secrets.token_hex(8)}"
            given = frozenset(self._settings.conf)
            action = Background(partial(run_query, session, query, group, given), InheritableThread)
            while not action.wait(_POLL_S):
                if stop.cancelled:
                    self._hurry = True
                    _cancel(session, group, action)
                    raise stop.error()
            answered = _ended(action, session)
        stop.check()
        return answered

    @property
    def running(self) -> bool:
        return self._session is not None

    def at_once(self, units: int) -> int:
        return tasks_at_once(self._settings.master, units, len(os.sched_getaffinity(0)))

    def close(self) -> None:
        """End Spark. After an interruption: without waiting for anything."""
        for sign in self._signs.values():
            remove_sign(sign)
        self._signs.clear()
        if self._session is not None:
            started_s, hurry = time.monotonic(), self._hurry
            records = self._session.records_classes
            self._session.close(hurry=hurry)
            self._session, self._hurry = None, False
            if self._speeds is not None and not hurry and not records:
                self._speeds.speeds = self._speeds.speeds.with_stop(time.monotonic() - started_s)

    def _started(self, stop: SignalStop) -> EngineSession:
        if self._session is not None:
            return self._session
        session, started_s = EngineSession(self._settings), time.monotonic()
        start = Background(session.start)
        while not start.wait(_POLL_S):
            if stop.cancelled:
                session.abort()
                start.wait(_CANCEL_S)
                session.close(hurry=True)
                raise stop.error()
        try:
            start.result()
        except LogkeepError:
            session.close(hurry=True)
            raise
        self._session = session
        if self._speeds is not None and not session.records_classes:
            self._speeds.speeds = self._speeds.speeds.with_start(time.monotonic() - started_s)
        return session

    def _check_directories(self, session: EngineSession, stop: SignalStop) -> None:
        """On a cluster, when a directory was named since the last check. Raises UsageError if a worker misses one."""
        if is_local(self._settings.master) or set(self._directories) <= self._signs.keys():
            return
        self._signs |= {each: make_sign(each) for each in self._directories if each not in self._signs}
        slots = session.spark.sparkContext.defaultParallelism
        self._run_on(session, report_host, list(range(_CHECKS_PER_SLOT * slots)), "directories", stop)

    def _run(self, task: Task[UnitT, ResultT], units: list[UnitT], label: str, stop: SignalStop) -> dict[int, UnitDone]:
        self._sink.waiting("" if self.running else SPARK_STARTS)
        session = self._started(stop)
        self._check_directories(session, stop)
        self._sink.waiting("")
        started_s = time.monotonic()
        done = self._run_on(session, task, units, label, stop)
        if self._speeds is not None and len(units) >= (workers := self.at_once(len(units))):
            self._speeds.ran_on_spark(label, sum_bytes(done), time.monotonic() - started_s, workers)
        return done

    def _run_on(
        self, session: EngineSession, task: Task[UnitT, ResultT], units: list[UnitT], label: str, stop: SignalStop
    ) -> dict[int, UnitDone]:
        from pyspark import InheritableThread  # noqa: PLC0415
        from pyspark.cloudpickle import dumps  # noqa: PLC0415

        context = session.spark.sparkContext
        host = context.getConf().get("spark.driver.host", "127.0.0.1") or "127.0.0.1"
        bind = host if is_local(self._settings.master) else ""
        receiver = CounterReceiver(host, secrets.token_bytes(16), bind=bind)
        try:
            pickled = [dumps(unit) for unit in units]  # type: ignore[no-untyped-call]  # pyspark left it untyped
            job = WorkerJob(task, receiver.address, attempts(self._settings), tuple(self._signs.values()))
            group = f"logkeep-{secrets.token_hex(8)}"
            action = Background(partial(_collect, session, job, pickled, group, label), InheritableThread)
            failed_attempts = self._watch(session, stop, group, action, receiver)
            done = self._finished(action, receiver, session)
            self._sink.update(sum_bytes(done), len(done), failed_attempts)
            return done
        finally:
            receiver.close()

    def _watch(
        self,
        session: EngineSession,
        stop: SignalStop,
        group: str,
        action: Background[dict[int, Outcome]],
        receiver: CounterReceiver,
    ) -> int:
        """Wait for the end of the job and report progress. A signal or a failed unit cancels it.

        Returns how many attempts have failed.
        """
        failed_attempts = 0
        while not action.wait(_POLL_S):
            done_bytes = receiver.drain()
            if stop.cancelled:
                self._hurry = True
                _cancel(session, group, action)
                raise stop.error()
            if receiver.failed:
                _cancel(session, group, action)
                break
            done_units, failed_attempts = _task_counts(session, group)
            self._sink.update(done_bytes, done_units, failed_attempts)
        return failed_attempts

    def _finished(
        self, action: Background[dict[int, Outcome]], receiver: CounterReceiver, session: EngineSession
    ) -> dict[int, UnitDone]:
        receiver.drain()
        if receiver.failed:
            raise self._unit_error(receiver.failed, session)
        outcomes = _ended(action, session)
        done = {}
        for unit, outcome in outcomes.items():
            if isinstance(outcome, UnitFailed):
                raise self._unit_error(outcome, session)
            done[unit] = outcome
        return done

    def _unit_error(self, failed: UnitFailed, session: EngineSession) -> LogkeepError:
        session.keep_log = session.keep_log or not failed.kind
        return to_error(failed, log=str(session.log))


def _ended(action: Background[T], session: EngineSession) -> T:
    try:
        return action.result()
    except LogkeepError:
        raise
    except Exception as error:
        # Spark, py4j and the JVM raise dozens of types here; all mean that the job failed.
        session.keep_log = True
        raise job_error(error, str(session.log)) from error


def _collect(session: EngineSession, job: WorkerJob, units: list[bytes], group: str, label: str) -> dict[int, Outcome]:
    """The Spark action: exactly one unit per task, because `range` makes exactly one row per partition.

    Units are broadcast: a worker gets them once. In the closure every task would carry all of them.
    """
    context = session.spark.sparkContext
    shared = context.broadcast(units)

    def partition(batches: Iterator["pa.RecordBatch"]) -> Iterator["pa.RecordBatch"]:
        return run_partition(job, shared.value, batches)

    context.setJobGroup(group, label, True)
    frame = session.spark.range(0, len(units), 1, len(units)).mapInArrow(partition, ROW)
    rows = frame.collect()
    shared.unpersist()
    return {row.unit: decode(row.result) for row in rows}


def _cancel(session: EngineSession, group: str, action: Background[T]) -> None:
    """Start no new task. The call runs in a thread: it may hang when the JVM does not answer."""
    context: Any = session.spark.sparkContext
    Background(lambda: context._jsc.sc().cancelJobGroupAndFutureJobs(group)).wait(_CANCEL_S)
    action.wait(_CANCEL_S)


def _task_counts(session: EngineSession, group: str) -> tuple[int, int]:
    """Units done and attempts failed, as far as Spark reports them."""
    from py4j.protocol import Py4JError  # noqa: PLC0415

    done = failed = 0
    with suppress(Py4JError):  # the JVM is gone: the action will fail
        tracker = session.spark.sparkContext.statusTracker()
        jobs = [tracker.getJobInfo(job) for job in tracker.getJobIdsForGroup(group)]
        for stage in [tracker.getStageInfo(stage) for job in jobs if job for stage in job.stageIds]:
            done += stage.numCompletedTasks if stage else 0
            failed += stage.numFailedTasks if stage else 0
    return done, failed
