"""Will retention remove records before they are archived, and when? A pure estimate.

Three ways to be overtaken, and the nearest counts:

- `retention.ms`: what is not archived yet was written after the cut was taken. It may go when it is that old.
- `retention.bytes`: what is not archived yet goes when more than that many bytes lie behind the cut. They grow by what
  producers write beyond what we copy.
- the log start moves faster than our cut: the distance between them shrinks to nothing.

Rates are taken against an earlier look, which should be minutes old: log starts jump by whole segments of the broker.
"""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from logkeep.kafka.client.topology import TopicPartition

NEAR_ROUNDS = 3
NEAR_CATCH_UPS = 2


@dataclass(frozen=True)
class LogLook:
    """One log at the end of a round; times are of one clock, in seconds."""

    start: int
    archived: int
    end: int
    bytes_per_offset: float
    cut_at_s: float
    seen_at_s: float

    @property
    def lag_offsets(self) -> int:
        return max(self.end - self.archived, 0)

    @property
    def lag_bytes(self) -> int:
        return int(self.lag_offsets * self.bytes_per_offset)


@dataclass(frozen=True)
class Retention:
    """What a topic keeps; None: for ever."""

    kept_s: float | None
    kept_bytes: int | None


def retention_of(configs: Mapping[str, str]) -> Retention:
    """From effective configs. A topic that is only compacted forgets nothing by age or size."""
    if "delete" not in configs.get("cleanup.policy", "delete"):
        return Retention(None, None)
    age_ms, size = int(configs.get("retention.ms") or -1), int(configs.get("retention.bytes") or -1)
    return Retention(age_ms / 1000 if age_ms >= 0 else None, size if size >= 0 else None)


@dataclass(frozen=True)
class Threat:
    """A topic of which retention will remove records that are not archived, in about so many seconds."""

    topic: str
    left_s: float


def threats(
    looks: Mapping[TopicPartition, LogLook],
    before: Mapping[TopicPartition, LogLook],
    retention: Mapping[str, Retention],
    near_s: float,
) -> tuple[Threat, ...]:
    """Topics for which it is near, the nearest first."""
    left: dict[str, float] = {}
    for log, look in looks.items():
        own = time_left_s(look, before.get(log), retention.get(log.topic, Retention(None, None)))
        if own is not None and own < near_s:
            left[log.topic] = min(own, left.get(log.topic, own))
    return tuple(Threat(topic, left_s) for topic, left_s in sorted(left.items(), key=lambda each: (each[1], each[0])))


def near_s(round_s: float, lag_offsets: int, offsets_per_s: float) -> float:
    """What counts as near: three rounds, or twice the time that catching up takes at our rate, if that is longer."""
    catch_up_s = lag_offsets / offsets_per_s if offsets_per_s > 0 else 0.0
    return max(NEAR_ROUNDS * round_s, NEAR_CATCH_UPS * catch_up_s)


def time_left_s(look: LogLook, before: LogLook | None, retention: Retention) -> float | None:
    """Seconds until the oldest record that is not archived may be removed; None when nothing points to it."""
    if not look.lag_offsets:
        return None
    ways = (_by_age(look, retention), _by_size(look, before, retention), _by_start(look, before))
    return min((max(way, 0.0) for way in ways if way is not None), default=None)


def _by_age(look: LogLook, retention: Retention) -> float | None:
    return None if retention.kept_s is None else retention.kept_s - (look.seen_at_s - look.cut_at_s)


def _by_size(look: LogLook, before: LogLook | None, retention: Retention) -> float | None:
    if retention.kept_bytes is None:
        return None
    room = retention.kept_bytes - look.lag_bytes
    growth = _rate(look, before, look.lag_bytes - before.lag_bytes) if before else 0.0
    if room <= 0:
        return 0.0
    return room / growth if growth > 0 else None


def _by_start(look: LogLook, before: LogLook | None) -> float | None:
    if before is None:
        return None
    closing = _rate(look, before, (look.start - before.start) - (look.archived - before.archived))
    return (look.archived - look.start) / closing if closing > 0 else None


def _rate(look: LogLook, before: LogLook | None, change: float) -> float:
    span_s = look.seen_at_s - before.seen_at_s if before else 0.0
    return change / span_s if span_s > 0 else 0.0


def total_lag(looks: Iterable[LogLook]) -> tuple[int, int]:
    """Offsets and bytes."""
    known = list(looks)
    return sum(look.lag_offsets for look in known), sum(look.lag_bytes for look in known)
