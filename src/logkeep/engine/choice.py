"""Which engine is faster for some work: this process, or Spark on this machine. Pure.

Both times are estimated from units, cores and bytes, with the speeds that were measured on this machine. Spark needs
time to start and to end, and then runs several units at a time; a single unit is never faster there.
"""

from dataclasses import dataclass

from logkeep.engine.speeds import EngineSpeeds

_UNIT_S = 0.02
"""What Spark adds to each unit, on the worker that runs it."""
_RECORDING_S = 30.0
"""A Spark that finds no class archive starts slowly, and writes the archive when it ends."""


@dataclass(frozen=True)
class WorkSize:
    """What is to be done."""

    kind: str
    """See `speeds`."""
    units: int
    total_bytes: int
    largest_bytes: int = 0


@dataclass(frozen=True)
class Circumstances:
    """What else decides."""

    workers: int
    """How many units Spark runs at a time at most."""
    started: bool = False
    """Spark is running, for earlier work of the same command."""
    archive: bool = True
    """There is a class archive, see `spark/class_archive`."""
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
    longest_s = max(work.total_bytes / workers, work.largest_bytes) / each
    return Estimate(inline_s, _idle_s(speeds, around) + longest_s + _UNIT_S * work.units / workers)


def _idle_s(speeds: EngineSpeeds, around: Circumstances) -> float:
    """What Spark takes besides the work."""
    if around.started:
        return 0.0
    return speeds.start_s + speeds.stop_s + (0.0 if around.archive else _RECORDING_S)
