"""Reads and writes single logs of a cluster for a coordinator: bounds, visible records, appended records."""

import time
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING

from logkeep.application.kafka.headers import Header
from logkeep.errors import TopicMissing
from logkeep.kafka.admin.offsets import LogBounds, log_bounds
from logkeep.kafka.client.cluster import Cluster
from logkeep.kafka.client.error_codes import failure
from logkeep.kafka.client.frames import ReceiveBuffer
from logkeep.kafka.client.produce import API, VERSION, OutgoingBatch, parse, request_parts
from logkeep.kafka.client.settings import ClientSettings
from logkeep.kafka.client.topology import Topic, TopicPartition
from logkeep.kafka.datasets.sources.records_of_cluster import ClusterRecords
from logkeep.kafka.datasets.values import ExportableLog, LogToExport, ReadCounts
from logkeep.kafka.logs.brokers import SettingsBrokers
from logkeep.kafka.record.dataset_document import DatasetLog

if TYPE_CHECKING:
    import pyarrow as pa

_ANSWER_BYTES = 64 << 10
_BATCH_BYTES = 512 << 10
"""Half of what a broker accepts by default: a batch that cannot be compressed has a header too."""


@dataclass(frozen=True)
class VisibleRecord:
    """A committed record."""

    log: TopicPartition
    offset: int
    key: bytes | None
    value: bytes | None
    headers: tuple[Header, ...]


@dataclass(frozen=True)
class ClusterTopics:
    """The logs of one cluster. Raises errors of the cluster."""

    cluster: Cluster
    settings: ClientSettings

    def topic(self, name: str) -> Topic | None:
        try:
            return self.cluster.metadata([name]).topic(name)
        except TopicMissing:
            return None

    def partitions(self, names: Iterable[str]) -> dict[str, int]:
        """How many partitions each topic has. Raises TopicMissing."""
        found = {name: self.topic(name) for name in names}
        for name, topic in found.items():
            if topic is None:
                raise TopicMissing("there is no such topic", subject=name)
        return {name: len(topic.partitions) for name, topic in found.items() if topic is not None}

    def bounds(self, logs: Iterable[TopicPartition]) -> dict[TopicPartition, LogBounds]:
        return log_bounds(self.cluster, logs)

    def records(self, log: TopicPartition, start: int, end: int) -> Iterator[VisibleRecord]:
        """Committed records of `[start, end)`; `end` is at most the last stable offset."""
        for batch in self.batches(log, start, end):
            for row in batch.to_pylist():
                headers = tuple((h["key"].decode("utf-8", "replace"), h["value"]) for h in row["headers"])
                yield VisibleRecord(log, row["offset"], row["key"], row["value"], headers)

    def batches(self, log: TopicPartition, start: int, end: int) -> Iterator["pa.RecordBatch"]:
        topic = self.topic(log.topic)
        if topic is None or start >= end:
            return
        leader = topic.partitions[log.partition].leader
        source = ExportableLog(DatasetLog(*log), topic.id.hex, start, end, broker=leader)
        with ClusterRecords(SettingsBrokers(self.settings), committed=True).opened() as opened:
            yield from opened.read(LogToExport(source, start, joined=False), start, ReadCounts(), lambda _: None)

    def append(self, log: TopicPartition, records: "pa.RecordBatch") -> int:
        """Append records, which get new offsets. Returns the first of them."""
        from logkeep.formats.datasets.native_batches import native_batches  # noqa: PLC0415 - imports numba

        found = self.cluster.metadata([log.topic]).find(log)
        if found is None:
            raise TopicMissing("there is no such partition", subject=str(log))
        data, batches = native_batches(_renumbered(records), _BATCH_BYTES)
        first = -1
        with self.cluster.open_own(found.leader) as connection:
            for at, size in zip(batches.positions.tolist(), batches.sizes.tolist(), strict=True):
                connection.send_raw(API, VERSION, request_parts([OutgoingBatch(log, data[at : at + size])]))
                (ack,) = parse(connection.receive_raw(ReceiveBuffer(_ANSWER_BYTES))).acks
                if ack.error:
                    raise failure(ack.error, subject=str(log), doing=API, message=ack.said)
                first = ack.base_offset if first < 0 else first
        return first

    def append_one(self, log: TopicPartition, key: bytes, value: bytes) -> int:
        """Append a record without headers."""
        import pyarrow as pa  # noqa: PLC0415 - only a coordinator needs it

        from logkeep.formats.datasets.arrow import CREATE_TIME, SCHEMA  # noqa: PLC0415

        row = {
            "offset": 0,
            "timestamp": int(time.time() * 1000),
            "timestamp_type": CREATE_TIME,
            "key": key,
            "value": value,
            "headers": [],
        }
        return self.append(log, pa.RecordBatch.from_pylist([row], SCHEMA))


def _renumbered(records: "pa.RecordBatch") -> "pa.RecordBatch":
    """A broker accepts only dense offsets in a batch, and assigns its own."""
    import pyarrow as pa  # noqa: PLC0415 - only a restore needs it

    dense = pa.array(range(records.num_rows), pa.int64())
    return records.set_column(records.schema.get_field_index("offset"), records.schema.field("offset"), dense)
