"""One job of Spark: one task for each unit. Spark runs and retries them; the caller's thread watches and cancels."""

import secrets
from collections.abc import Iterator
from contextlib import ExitStack, suppress
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from threading import Event
from typing import TYPE_CHECKING, Any, TypeVar

from logkeep.engine.outcomes import Outcome, UnitDone, UnitFailed, decode, sum_bytes, to_error
from logkeep.engine.spark.counters import CounterReceiver
from logkeep.engine.spark.directories import DirectorySign
from logkeep.engine.spark.failures import job_error
from logkeep.engine.spark.session import EngineSession
from logkeep.engine.spark.worker import ROW, WorkerJob, run_partition
from logkeep.engine.stop import Background, SignalStop
from logkeep.errors import LogkeepError
from logkeep.model.work import ProgressSink, ResultT, Task, UnitT

if TYPE_CHECKING:
    import pyarrow as pa

T = TypeVar("T")
POLL_S = 0.25
_CANCEL_S = 2.0


class Seat:
    """Keeps one worker idle, while the driver works on a unit of its own: a task waits as long as a file exists."""

    def __init__(self, file: Path, freed: Event) -> None:
        self.file, self._freed = file, freed
        file.touch(mode=0o600)

    def free_if_wanted(self) -> None:
        if self._freed.is_set():
            self.free()

    def free(self) -> None:
        self.file.unlink(missing_ok=True)


@dataclass(frozen=True)
class SparkJob:
    """A job in a running session."""

    session: EngineSession
    stop: SignalStop
    sink: ProgressSink
    attempts: int
    """How often Spark tries a unit."""
    local: bool
    """Workers run on this machine."""
    signs: tuple[DirectorySign, ...] = ()
    seat: Seat | None = None

    def run(self, task: Task[UnitT, ResultT], units: list[UnitT], label: str) -> dict[int, UnitDone]:
        """The outcome of each unit by its position. Raises the error of a failed unit, or that of `stop`."""
        from pyspark import InheritableThread  # noqa: PLC0415
        from pyspark.cloudpickle import dumps  # noqa: PLC0415

        host = self.session.spark.sparkContext.getConf().get("spark.driver.host", "127.0.0.1") or "127.0.0.1"
        with ExitStack() as stack:
            receiver = CounterReceiver(host, secrets.token_bytes(16), bind=host if self.local else "")
            stack.callback(receiver.close)
            seat = str(self.seat.file) if self.seat else ""
            job = WorkerJob(task, receiver.address, self.attempts, self.signs, seat)
            pickled = [dumps(unit) for unit in units]  # type: ignore[no-untyped-call]  # pyspark left it untyped
            group = f"logkeep-{secrets.token_hex(8)}"
            tasks = [b""] * job.seats + pickled
            action = Background(partial(_collect, self.session, job, tasks, group, label), InheritableThread)
            failed_attempts = self._watch(group, action, receiver)
            done = self._finished(action, receiver)
        self.sink.update(sum_bytes(done), len(done), failed_attempts)
        return done

    def _watch(self, group: str, action: Background[dict[int, Outcome]], receiver: CounterReceiver) -> int:
        """Wait for the end of the job and report progress. A signal or a failed unit cancels it.

        Returns how many attempts have failed.
        """
        failed_attempts = 0
        while not action.wait(POLL_S):
            done_bytes = receiver.drain()
            if self.stop.cancelled:
                cancel(self.session, group, action)
                raise self.stop.error()
            if receiver.failed:
                cancel(self.session, group, action)
                break
            if self.seat is not None:
                self.seat.free_if_wanted()
            done_units, failed_attempts = _task_counts(self.session, group)
            freed = self.seat is not None and not self.seat.file.exists()  # its task has no unit
            self.sink.update(done_bytes, max(done_units - freed, 0), failed_attempts)
        return failed_attempts

    def _finished(self, action: Background[dict[int, Outcome]], receiver: CounterReceiver) -> dict[int, UnitDone]:
        receiver.drain()
        if receiver.failed:
            raise self._unit_error(receiver.failed)
        done = {}
        for unit, outcome in ended(action, self.session).items():
            if isinstance(outcome, UnitFailed):
                raise self._unit_error(outcome)
            done[unit] = outcome
        return done

    def _unit_error(self, failed: UnitFailed) -> LogkeepError:
        self.session.keep_log = self.session.keep_log or not failed.kind
        return to_error(failed, log=str(self.session.log))


def ended(action: Background[T], session: EngineSession) -> T:
    """The result of the action. Raises TaskFailed if the job failed."""
    try:
        return action.result()
    except LogkeepError:
        raise
    except Exception as error:
        # Spark, py4j and the JVM raise dozens of types here; all mean that the job failed.
        session.keep_log = True
        raise job_error(error, str(session.log)) from error


def cancel(session: EngineSession, group: str, action: Background[T]) -> None:
    """Cancel a job: Spark starts no new task of it. The call runs in a thread, because it may hang when the JVM does
    not answer."""
    context: Any = session.spark.sparkContext
    Background(lambda: context._jsc.sc().cancelJobGroupAndFutureJobs(group)).wait(_CANCEL_S)
    action.wait(_CANCEL_S)


def _collect(session: EngineSession, job: WorkerJob, units: list[bytes], group: str, label: str) -> dict[int, Outcome]:
    """The Spark action: exactly one unit per task, because `range` makes exactly one row per partition.

    Units are broadcast: a worker gets them once. In the closure every task would carry all of them. The seat is the
    first task, which Spark starts first; its outcome is left out.
    """
    context = session.spark.sparkContext
    shared = context.broadcast(units)

    def partition(batches: Iterator["pa.RecordBatch"]) -> Iterator["pa.RecordBatch"]:
        return run_partition(job, shared.value, batches)

    context.setJobGroup(group, label, True)
    frame = session.spark.range(0, len(units), 1, len(units)).mapInArrow(partition, ROW)
    rows = frame.collect()
    shared.unpersist()
    return {row.unit - job.seats: decode(row.result) for row in rows if row.unit >= job.seats}


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
