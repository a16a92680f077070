"""Which engine is faster for some work: this process, or Spark on this machine. Pure.

Both times are estimated from units, cores and bytes, with the speeds that were measured on this machine. Spark needs
time to start, in which this process works on, and to end; between them it runs several units at a time. A single unit
is never faster there.
"""

from dataclasses import dataclass

from logkeep.engine.speeds import EngineSpeeds

_UNIT_S = 0.02
"""What Spark adds to each unit, on the worker that runs it."""
_RECORDING_S = 30.0
"""What a missing class archive costs: Spark starts slowly, and writes the archive when it ends."""


@dataclass(frozen=True)
class WorkSize:
    """The size of the work."""

    kind: str
    """See `speeds`."""
    units: int
    total_bytes: int
    largest_bytes: int = 0


@dataclass(frozen=True)
class Circumstances:
    """The circumstances that decide besides the work."""

    workers: int
    """How many units Spark runs at a time at most."""
    started: bool = False
    """Spark is running, for earlier work of the same command."""
    archive: bool = True
    """There is a class archive, see `spark/jvm/class_archive`."""
    bytes_per_s: int | None = None
    """The user's limit for all units together."""


@dataclass(frozen=True)
class Estimate:
    """Seconds until the work is done and the engine has ended."""

    inline_s: float
    spark_s: float

    @property
    def takes_spark(self) -> bool:
        return self.spark_s < self.inline_s


def estimate(work: WorkSize, speeds: EngineSpeeds, around: Circumstances) -> Estimate:
    """The time of both engines. Spark's is infinite where it could not run two units at a time."""
    limit = around.bytes_per_s or float("inf")
    rate = min(speeds.inline_rate(work.kind), limit)
    inline_s = work.total_bytes / rate
    workers = min(around.workers, work.units)
    if workers < 2:  # one unit at a time is what this process does
        return Estimate(inline_s, float("inf"))
    each = min(speeds.spark_rate(work.kind), limit / workers)
    start_s = 0.0 if around.started else speeds.start_s
    rest_bytes = max(work.total_bytes - rate / _shares(workers, limit) * start_s, 0.0)
    rest_s = rest_bytes / workers / each + _UNIT_S * work.units / workers
    # The largest unit is begun first, and no second worker can help with it.
    work_s = max(start_s + rest_s, work.largest_bytes / rate)
    return Estimate(inline_s, work_s + _end_s(speeds, around))


def _shares(workers: int, limit: float) -> int:
    """A limit is divided among all workers, so this process has only a part of it while Spark starts."""
    return 1 if limit == float("inf") else workers


def _end_s(speeds: EngineSpeeds, around: Circumstances) -> float:
    if around.started:
        return 0.0
    return speeds.stop_s + (0.0 if around.archive else _RECORDING_S)
