"""Estimates when retention removes records that are not archived yet. Pure.

Retention overtakes the backup in one of three ways; the nearest counts:

- `retention.ms`: what is not archived was written after the cut. It is removed at that age.
- `retention.bytes`: what is not archived is removed when more than that many bytes follow the cut. They grow by what
  producers write beyond what the backup copies.
- the log start moves faster than the cut: the distance between them shrinks to nothing.

Rates are measured against an earlier reading, some minutes old: log starts jump by whole segments of the broker.
"""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from logkeep.kafka.admin.topics import config_number
from logkeep.kafka.client.topology import TopicPartition

NEAR_ROUNDS = 3
NEAR_CATCH_UPS = 2


@dataclass(frozen=True)
class LogReading:
    """One log at the end of a round; times are of one clock, in seconds."""

    start: int
    archived: int
    end: int
    bytes_per_offset: float
    cut_at_s: float
    read_at_s: float

    @property
    def lag_offsets(self) -> int:
        return max(self.end - self.archived, 0)

    @property
    def lag_bytes(self) -> int:
        return int(self.lag_offsets * self.bytes_per_offset)


@dataclass(frozen=True)
class Retention:
    """What a topic keeps; None: no limit."""

    kept_s: float | None
    kept_bytes: int | None


def retention_of(configs: Mapping[str, str]) -> Retention:
    """What a topic keeps, by its effective configs. One that is only compacted removes nothing by age or size."""
    if "delete" not in configs.get("cleanup.policy", "delete"):
        return Retention(None, None)
    age_ms, size = config_number(configs, "retention.ms"), config_number(configs, "retention.bytes")
    return Retention(age_ms / 1000 if age_ms >= 0 else None, size if size >= 0 else None)


@dataclass(frozen=True)
class Threat:
    """A topic whose retention will remove unarchived records, in about this many seconds."""

    topic: str
    left_s: float


def threats(
    readings: Mapping[TopicPartition, LogReading],
    before: Mapping[TopicPartition, LogReading],
    retention: Mapping[str, Retention],
    near_s: float,
) -> tuple[Threat, ...]:
    """Topics with less than `near_s` left, the nearest first."""
    left: dict[str, float] = {}
    for log, reading in readings.items():
        own = time_left_s(reading, before.get(log), retention.get(log.topic, Retention(None, None)))
        if own is not None and own < near_s:
            left[log.topic] = min(own, left.get(log.topic, own))
    return tuple(Threat(topic, left_s) for topic, left_s in sorted(left.items(), key=lambda each: (each[1], each[0])))


def near_s(round_s: float, lag_offsets: int, offsets_per_s: float) -> float:
    """What counts as near: three rounds, or if longer, twice the time to catch up at the present rate."""
    catch_up_s = lag_offsets / offsets_per_s if offsets_per_s > 0 else 0.0
    return max(NEAR_ROUNDS * round_s, NEAR_CATCH_UPS * catch_up_s)


def time_left_s(reading: LogReading, before: LogReading | None, retention: Retention) -> float | None:
    """Seconds until the oldest record that is not archived may be removed; None when that is not in sight."""
    if not reading.lag_offsets:
        return None
    ways = (_by_age(reading, retention), _by_size(reading, before, retention), _by_start(reading, before))
    return min((max(way, 0.0) for way in ways if way is not None), default=None)


def _by_age(reading: LogReading, retention: Retention) -> float | None:
    return None if retention.kept_s is None else retention.kept_s - (reading.read_at_s - reading.cut_at_s)


def _by_size(reading: LogReading, before: LogReading | None, retention: Retention) -> float | None:
    if retention.kept_bytes is None:
        return None
    room = retention.kept_bytes - reading.lag_bytes
    growth = _rate(reading, before, reading.lag_bytes - before.lag_bytes) if before else 0.0
    if room <= 0:
        return 0.0
    return room / growth if growth > 0 else None


def _by_start(reading: LogReading, before: LogReading | None) -> float | None:
    if before is None:
        return None
    closing = _rate(reading, before, (reading.start - before.start) - (reading.archived - before.archived))
    return (reading.archived - reading.start) / closing if closing > 0 else None


def _rate(reading: LogReading, before: LogReading | None, change: float) -> float:
    span_s = reading.read_at_s - before.read_at_s if before else 0.0
    return change / span_s if span_s > 0 else 0.0


def total_lag(readings: Iterable[LogReading]) -> tuple[int, int]:
    """How many offsets and bytes the archive lags behind in all logs together."""
    known = list(readings)
    return sum(reading.lag_offsets for reading in known), sum(reading.lag_bytes for reading in known)
