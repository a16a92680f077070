"""How fast the engines are on this machine: values that every run measures and later runs estimate with. Pure.

A rate is in bytes per second, by the kind of work: its store and its label, such as `file copy`. An unmeasured kind has
a usual rate. Small jobs spend most of their time on things that do not grow with the bytes, so a low rate counts only
if it was measured over many bytes; a high one always counts.
"""

from typing import Self

import msgspec

USUAL_RATE = 200e6
_MANY_BYTES = 64 << 20
_RATES = (1e4, 1e11)
_SECONDS = (0.1, 600.0)
_MOST_KINDS = 200


class EngineSpeeds(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """What was measured on one machine."""

    machine: str = ""
    start_s: float = 8.0
    """From the start of Spark until its workers can run units."""
    stop_s: float = 1.5
    inline: dict[str, float] = {}
    """The rate of this process, one unit at a time."""
    spark: dict[str, float] = {}
    """The rate of one of Spark's workers, while all of them work."""

    def inline_rate(self, kind: str) -> float:
        """The rate of this process: at least that of one of several workers that share the machine."""
        known = [rates[kind] for rates in (self.inline, self.spark) if kind in rates]
        return max(known, default=USUAL_RATE)

    def spark_rate(self, kind: str) -> float:
        return self.spark.get(kind, self.inline_rate(kind))

    def with_inline(self, kind: str, size_bytes: int, seconds: float, *, alone: bool = True) -> Self:
        """The speeds with one more measurement. `alone`: nothing else, such as a start of Spark, slowed it down."""
        found = _mean(self.inline.get(kind), size_bytes, seconds, low_counts=alone)
        return self if found is None else msgspec.structs.replace(self, inline=_with(self.inline, kind, found))

    def with_spark(self, kind: str, size_bytes: int, seconds: float, workers: int) -> Self:
        found = _mean(self.spark.get(kind), size_bytes // max(workers, 1), seconds)
        return self if found is None else msgspec.structs.replace(self, spark=_with(self.spark, kind, found))

    def with_start(self, seconds: float, *, ended: bool = True) -> Self:
        """The speeds with one more start of Spark. A start that was aborted would have taken at least this long."""
        found = (self.start_s + seconds) / 2 if ended else max(self.start_s, seconds)
        return msgspec.structs.replace(self, start_s=_within(found, _SECONDS))

    def with_stop(self, seconds: float) -> Self:
        return msgspec.structs.replace(self, stop_s=_within((self.stop_s + seconds) / 2, _SECONDS))

    def sane(self) -> Self:
        """The same speeds within bounds: a file may have any numbers."""
        return msgspec.structs.replace(
            self,
            start_s=_within(self.start_s, _SECONDS),
            stop_s=_within(self.stop_s, _SECONDS),
            inline={kind: _within(rate, _RATES) for kind, rate in self.inline.items()},
            spark={kind: _within(rate, _RATES) for kind, rate in self.spark.items()},
        )


def _mean(known: float | None, size_bytes: int, seconds: float, *, low_counts: bool = True) -> float | None:
    """The rate to keep; None to keep what is known."""
    if size_bytes <= 0 or seconds <= 0:
        return None
    rate = size_bytes / seconds
    if rate < (known or USUAL_RATE) and not (low_counts and size_bytes >= _MANY_BYTES):
        return None
    return _within(rate if known is None else (known + rate) / 2, _RATES)


def _with(rates: dict[str, float], kind: str, rate: float) -> dict[str, float]:
    """The newest kinds, as the file must not grow forever."""
    newest = {each: known for each, known in rates.items() if each != kind} | {kind: rate}
    return dict(list(newest.items())[-_MOST_KINDS:])


def _within(value: float, bounds: tuple[float, float]) -> float:
    low, high = bounds
    return min(max(value, low), high)
