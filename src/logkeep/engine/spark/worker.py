"""Code that runs inside a Spark worker: one unit of work per Spark task. Imports pyspark only there."""

import pickle
import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import msgspec

from logkeep.engine.outcomes import UnitDone, UnitFailed, attempt, encode
from logkeep.engine.spark.counters import CounterAddress, CounterSender
from logkeep.engine.spark.directories import DirectorySign, refuse_unseen
from logkeep.engine.spark.imported_modules import freeze_imported_modules
from logkeep.model.process_memory import forbid_core_dumps
from logkeep.model.work import Progress, Task

if TYPE_CHECKING:
    import pyarrow as pa

ROW = "unit int, result binary"
_SEAT_POLL_S = 0.05


@dataclass(frozen=True)
class WorkerJob:
    """What a worker needs besides the units."""

    task: Task[Any, Any]
    counters: CounterAddress
    attempts: int
    signs: tuple[DirectorySign, ...] = ()
    """The signs of directories that this worker must see."""
    seat: str = ""
    """The path of a file. As long as it exists, unit 0 keeps a worker idle, because the driver works on a unit itself.
    Empty: no worker is kept idle."""

    @property
    def seats(self) -> int:
        """How many units come before those of the task."""
        return 1 if self.seat else 0

    def run(self, unit: Any, progress: Progress) -> Any:
        refuse_unseen(self.signs)
        return self.task(unit, progress)


def run_partition(
    job: WorkerJob, units: Sequence[bytes], batches: Iterator["pa.RecordBatch"]
) -> Iterator["pa.RecordBatch"]:
    """Run the unit whose number is in the one row of this partition; return one row.

    Units are pickled one by one: a worker unpickles only its own.
    """
    import pyarrow as pa  # noqa: PLC0415  # only workers need it
    from pyspark import TaskContext  # noqa: PLC0415  # only available in a worker

    freeze_imported_modules()
    forbid_core_dumps()  # on a cluster no process of ours has started this one
    context = TaskContext.get()
    number = context.attemptNumber() if context else 0
    for batch in batches:
        for unit in batch.column(0).to_pylist():
            row = [pa.array([unit], pa.int32()), pa.array([run_unit(job, units[unit], unit, number)], pa.binary())]
            yield pa.RecordBatch.from_arrays(row, names=["unit", "result"])


def run_unit(job: WorkerJob, pickled: bytes, unit: int, attempt_number: int) -> bytes:
    """One attempt; the encoded outcome."""
    if unit < job.seats:
        return encode(_keep_seat(Path(job.seat)))
    sender = CounterSender(job.counters, unit, attempt_number, time.monotonic)
    failed = None
    try:
        # The pickle comes from our own driver, over Spark's authenticated channel (see `protection`).
        value = pickle.loads(pickled)  # noqa: S301
        outcome = attempt(job.run, value, sender, last=attempt_number + 1 >= job.attempts)
        failed = outcome if isinstance(outcome, UnitFailed) else None
        return encode(outcome)
    finally:
        sender.close(failed)


def pass_through(batches: Iterator["pa.RecordBatch"]) -> Iterator["pa.RecordBatch"]:
    """The task that starts a worker: to run it, the worker imports this module."""
    yield from batches


def _keep_seat(seat: Path) -> UnitDone:
    while seat.exists():
        time.sleep(_SEAT_POLL_S)
    return UnitDone(0, msgspec.Raw(b"\xc0"))
