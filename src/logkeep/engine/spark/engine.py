"""The Spark engine: one task per unit, retried by Spark, watched and stopped from the main thread."""

import os
import secrets
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, suppress
from functools import partial
from typing import TYPE_CHECKING, Any, TypeVar

from logkeep.engine.background import Background
from logkeep.engine.outcomes import Outcome, UnitDone, UnitFailed, decode, heaviest_first, to_error, to_result
from logkeep.engine.spark.counters import CounterReceiver
from logkeep.engine.spark.failures import job_error
from logkeep.engine.spark.query import Query, QueryResult, answer
from logkeep.engine.spark.session import EngineSession
from logkeep.engine.spark.settings import SparkSettings, attempts, is_local, tasks_at_once
from logkeep.engine.spark.worker import ROW, WorkerJob, run_partition
from logkeep.engine.stop import SignalStop
from logkeep.errors import LogkeepError
from logkeep.model.work import NoProgress, ProgressSink, ResultT, Task, UnitT

if TYPE_CHECKING:
    import pyarrow as pa

T = TypeVar("T")
_POLL_S = 0.25
_CANCEL_S = 2.0


class SparkEngine:
    """Starts Spark with the first `map`; `close` ends everything that was started."""

    def __init__(
        self, settings: SparkSettings, *, sink: ProgressSink | None = None, stop: SignalStop | None = None
    ) -> None:
        """Without a `stop` of the caller's, signals are caught while `map` runs, and the first one cancels."""
        self._settings = settings
        self._sink: ProgressSink = sink or NoProgress()
        self._stop = stop
        self._session: EngineSession | None = None
        self._hurry = False

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
        order = heaviest_first(weights)
        with ExitStack() as stack:
            stop = self._stop or stack.enter_context(SignalStop())
            self._sink.start(label, sum(weights), len(units))
            stack.callback(self._sink.finish)
            session = self._started(stop)
            outcomes = self._run(session, stop, task, [units[position] for position in order], label)
        stop.check()
        results = {order[index]: to_result(done, result) for index, done in outcomes.items()}
        return [results[position] for position in range(len(units))]

    def query(self, asked: Query) -> QueryResult:
        """Answer a question in SQL. Raises UsageError for what Spark cannot make sense of; else as `map`."""
        from pyspark import InheritableThread  # noqa: PLC0415

        with ExitStack() as stack:
            stop = self._stop or stack.enter_context(SignalStop())
            session = self._started(stop)
            group = f"logkeep-{secrets.token_hex(8)}"
            given = frozenset(self._settings.conf)
            action = Background(partial(answer, session, asked, group, given), InheritableThread)
            while not action.wait(_POLL_S):
                if stop.cancelled:
                    self._hurry = True
                    _cancel(session, group, action)
                    raise stop.error()
            answered = _ended(action, session)
        stop.check()
        return answered

    def at_once(self, units: int) -> int:
        """See `logkeep.model.work.Engine.at_once`."""
        return tasks_at_once(self._settings.master, units, len(os.sched_getaffinity(0)))

    def close(self) -> None:
        """End Spark. After an interruption: without waiting for anything."""
        if self._session is not None:
            self._session.close(hurry=self._hurry)
            self._session = None

    def _started(self, stop: SignalStop) -> EngineSession:
        if self._session is not None:
            return self._session
        session = EngineSession(self._settings)
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
        return session

    def _run(
        self, session: EngineSession, stop: SignalStop, task: Task[UnitT, ResultT], units: list[UnitT], label: str
    ) -> dict[int, UnitDone]:
        from pyspark import InheritableThread  # noqa: PLC0415
        from pyspark.cloudpickle import dumps  # noqa: PLC0415

        context = session.spark.sparkContext
        host = context.getConf().get("spark.driver.host", "127.0.0.1") or "127.0.0.1"
        bind = host if is_local(self._settings.master) else ""
        receiver = CounterReceiver(host, secrets.token_bytes(16), bind=bind)
        try:
            pickled = [dumps(unit) for unit in units]  # type: ignore[no-untyped-call]  # pyspark left it untyped
            job = WorkerJob(task, receiver.address, attempts(self._settings))
            group = f"logkeep-{secrets.token_hex(8)}"
            action = Background(partial(_collect, session, job, pickled, group, label), InheritableThread)
            failed_attempts = self._watch(session, stop, group, action, receiver)
            done = self._finished(action, receiver, session)
            self._sink.update(sum(outcome.done_bytes for outcome in done.values()), len(done), failed_attempts)
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
        """Until the job ends: feed the progress sink; cancel it for a signal, or for a unit that was given up.

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
            raise self._given_up(receiver.failed, session)
        outcomes = _ended(action, session)
        done = {}
        for unit, outcome in outcomes.items():
            if isinstance(outcome, UnitFailed):
                raise self._given_up(outcome, session)
            done[unit] = outcome
        return done

    def _given_up(self, failed: UnitFailed, session: EngineSession) -> LogkeepError:
        session.keep_log = session.keep_log or not failed.kind
        return to_error(failed, log=str(session.log))


def _ended(action: Background[T], session: EngineSession) -> T:
    try:
        return action.result()
    except LogkeepError:
        raise
    except Exception as error:
        # Spark, py4j and the JVM behind them raise dozens of types here; all mean that the job failed.
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
    """No new task from now on. Asked in a thread: a JVM that does not answer must not hold us up."""
    context: Any = session.spark.sparkContext
    Background(lambda: context._jsc.sc().cancelJobGroupAndFutureJobs(group)).wait(_CANCEL_S)
    action.wait(_CANCEL_S)


def _task_counts(session: EngineSession, group: str) -> tuple[int, int]:
    """Units done and attempts failed, as far as Spark tells."""
    from py4j.protocol import Py4JError  # noqa: PLC0415

    done = failed = 0
    with suppress(Py4JError):  # the JVM is gone: the action will say so
        tracker = session.spark.sparkContext.statusTracker()
        jobs = [tracker.getJobInfo(job) for job in tracker.getJobIdsForGroup(group)]
        for stage in [tracker.getStageInfo(stage) for job in jobs if job for stage in job.stageIds]:
            done += stage.numCompletedTasks if stage else 0
            failed += stage.numFailedTasks if stage else 0
    return done, failed
