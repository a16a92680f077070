"""Who wrote what does not belong there: another producer, or the marker of a transaction that was ended too late."""

from collections.abc import Callable, Sequence
from uuid import UUID

from logkeep.formats.kafka_log import CONTROL
from logkeep.kafka.brokers import SettingsBrokers
from logkeep.kafka.divergence import Position
from logkeep.kafka.fetch import FetchLimits
from logkeep.kafka.live_log import LiveLogs, LiveRange, Lost
from logkeep.kafka.pipeline import Patience
from logkeep.kafka.restore.position import Step
from logkeep.kafka.restore.units import ReplayLog
from logkeep.kafka.settings import ClientSettings

_LIMITS = FetchLimits(max_bytes=1 << 20, max_wait_ms=500)


def is_marker(
    settings: ClientSettings, log: ReplayLog, leader: int, steps: Sequence[Step], pause: Callable[[float], None]
) -> bool:
    """Whether a marker stands where these last steps of the target's log belong, and not in a hole."""
    holes = [(s.start, s.end) for s in steps if s.hole]
    start = min((s.start for s in steps), default=log.producer.position)
    brokers, topic_id = SettingsBrokers(settings), UUID(log.topic_id)
    log_end = brokers.facts(log.topic, log.partition, Position(topic_id, start)).log_end
    end = min(log_end, max((s.end for s in steps), default=log_end) + 1)
    wanted = LiveRange(log.topic, topic_id, log.partition, start, end)
    logs = LiveLogs(brokers, leader, _LIMITS, Patience(pause))
    try:
        for part in logs.read(wanted, leader):
            if isinstance(part, Lost):
                return False
            control = (part.batches.headers["attributes"] & CONTROL) != 0
            markers = part.batches.base_offsets[control].tolist()
            if any(not any(a <= at < b for a, b in holes) for at in markers if at >= start):
                return True
    finally:
        logs.close()
    return False
