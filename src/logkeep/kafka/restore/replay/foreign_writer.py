"""Who wrote an unexpected batch: another client, or a transaction of ours whose abort marker came too late.

The remedy for a misplaced marker of ours is to delete the topic. One batch or marker of another client rules that out:
acknowledged records of other clients are never deleted.
"""

from collections.abc import Callable, Sequence
from uuid import UUID

import numpy as np

from logkeep.formats.kafka.batches import CONTROL, Batches
from logkeep.kafka.admin.transactions import describe_transactions
from logkeep.kafka.client.cluster import Cluster
from logkeep.kafka.client.fetch import FetchLimits
from logkeep.kafka.client.retry import ProgressBackoff
from logkeep.kafka.logs.brokers import SettingsBrokers
from logkeep.kafka.logs.live import LiveLogs, LiveRange, Lost
from logkeep.kafka.logs.lost_offset import LogPosition
from logkeep.kafka.restore.facts.units import ReplayLog
from logkeep.kafka.restore.replay.resume_point import StreamStep

_LIMITS = FetchLimits(max_bytes=1 << 20, max_wait_ms=500)


def is_own_marker(
    cluster: Cluster, log: ReplayLog, leader: int, steps: Sequence[StreamStep], pause: Callable[[float], None]
) -> bool:
    """Whether a marker of ours has the offset of one of these last steps, and nothing is of another client."""
    known = describe_transactions(cluster, [log.transactional_id]).get(log.transactional_id)
    if known is None:
        return False
    brokers, topic_id = SettingsBrokers(cluster.settings), UUID(log.topic_id)
    start = min((s.start for s in steps), default=log.producer.position)
    end = brokers.facts(log.topic, log.partition, LogPosition(topic_id, start)).log_end
    holes = [(s.start, s.end) for s in steps if s.hole]
    logs = LiveLogs(brokers, leader, _LIMITS, ProgressBackoff(pause))
    found = False
    try:
        # Up to the log end: a topic is only deleted when all of it is ours.
        for part in logs.read(LiveRange(log.topic, topic_id, log.partition, start, end), leader):
            if isinstance(part, Lost) or _foreign(part.batches, log.producer.producer_id, known.producer_id):
                return False
            markers = part.batches.base_offsets[_control(part.batches)].tolist()
            found = found or any(not any(a <= at < b for a, b in holes) for at in markers if at >= start)
    finally:
        logs.close()
    return found


def _control(batches: Batches) -> "np.ndarray[tuple[int], np.dtype[np.bool_]]":
    return np.asarray((batches.headers["attributes"] & CONTROL) != 0)


def _foreign(batches: Batches, ours: int, transactional: int) -> bool:
    """Whether a batch is neither of our producer nor of the hole filler; markers may only be of the latter."""
    producers = batches.headers["producer_id"].astype(np.int64)
    theirs = producers != transactional
    return bool(np.any(np.where(_control(batches), theirs, theirs & (producers != ours))))
