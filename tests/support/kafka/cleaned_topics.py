"""Compacted topics on a broker whose cleaner works in seconds, and waiting until it has removed a key."""

import time
from collections.abc import Callable, Mapping
from contextlib import closing

from confluent_kafka import Producer

from logkeep.formats.kafka.batches import CONTROL
from logkeep.kafka.admin.offsets import log_bounds
from logkeep.kafka.client.cluster import Cluster
from logkeep.kafka.client.fetch import FetchLimits
from logkeep.kafka.client.retry import ProgressBackoff
from logkeep.kafka.client.settings import ClientSettings, endpoints
from logkeep.kafka.client.topology import TopicPartition
from logkeep.kafka.logs.brokers import SettingsBrokers
from logkeep.kafka.logs.live import LiveLogs, LiveRange, Lost
from tests.support.kafka.consumer_view import Seen, seen
from tests.support.kafka.topic_matrix import Matrix
from tests.support.processes import wait_for

CONFIG = {
    "cleanup.policy": "compact",
    "segment.ms": "100",
    "min.cleanable.dirty.ratio": "0.01",
    "delete.retention.ms": "100",
    "max.compaction.lag.ms": "300",
}
TICK = b"tick"
"""How keys of records begin that only close the segment before them."""


class CleanedTopic:
    """One topic of one partition that is compacted as soon as its segments are closed."""

    def __init__(self, matrix: Matrix, bootstrap: str, name: str, config: Mapping[str, str] | None = None) -> None:
        self.name, self._bootstrap, self._ticks = name, bootstrap, 0
        self._producer = matrix.producer()
        matrix.create(name, 1, CONFIG | dict(config or {}))

    def put(self, records: Mapping[bytes, bytes | None]) -> None:
        for key, value in records.items():
            self._producer.produce(self.name, value, key, 0)
        assert self._producer.flush(30) == 0

    def delete(self, *keys: bytes) -> None:
        self.put(dict.fromkeys(keys))

    def tick(self) -> None:
        """A record that stays: a backup that ends with it is recognised by the next one."""
        self._ticks += 1
        self.put({TICK + b"%d" % self._ticks: b"now"})

    def clean(self, done: Callable[[dict[int, Seen]], bool]) -> None:
        """Until a consumer from the beginning sees what the test waits for. Segments are closed by new records."""

        def cleaned() -> bool:
            self.tick()
            return done(seen(self._bootstrap, self.name, 0))

        wait_for(cleaned, f"the cleaner in {self.name}")

    def without(self, *keys: bytes) -> None:
        """Until neither a value nor a tombstone of these keys is left."""
        self.clean(lambda records: not {r.key for r in records.values()} & set(keys))


def latest(bootstrap: str, topic: str) -> dict[bytes, bytes]:
    """What a table made of the topic holds: the last value of every key that is not deleted. Without ticks."""
    table: dict[bytes, bytes] = {}
    for record in seen(bootstrap, topic, 0).values():
        assert record.key is not None
        table.pop(record.key, None)
        if record.value is not None:
            table[record.key] = record.value
    return {key: value for key, value in table.items() if not key.startswith(TICK)}


def transaction(producer: Producer, topic: str, records: Mapping[bytes, bytes | None]) -> None:
    """Begin one and send its records; the test ends it."""
    producer.begin_transaction()
    for key, value in records.items():
        producer.produce(topic, value, key, 0)
    producer.flush(30)


def markers(bootstrap: str, topic: str) -> set[int]:
    """The offsets of control records that the log still has. The cleaner leaves the last batch of a producer without
    its record, for the producer's state."""
    settings, log = ClientSettings(endpoints(bootstrap)), TopicPartition(topic, 0)
    with Cluster(settings) as cluster:
        found = cluster.metadata([topic]).topic(topic)
        bounds = log_bounds(cluster, [log])[log]
    assert found is not None
    wanted, there = LiveRange(topic, found.id, 0, bounds.start, bounds.high_watermark), set[int]()
    backoff, leader = ProgressBackoff(time.sleep), found.partitions[0].leader
    with closing(LiveLogs(SettingsBrokers(settings), leader, FetchLimits(), backoff)) as logs:
        for part in logs.read(wanted, leader):
            assert not isinstance(part, Lost), part
            control = (part.batches.headers["attributes"] & CONTROL) != 0
            there |= set(part.batches.base_offsets[control & (part.batches.headers["records"] > 0)].tolist())
    return there
