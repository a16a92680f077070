"""The smallest possible client: blocking sockets without security, kafka-python's message classes for the rest."""

import socket
import struct
import time
import uuid
from dataclasses import dataclass
from typing import Any

from kafka.protocol.consumer import FetchRequest, FetchResponse, ListOffsetsRequest, OffsetForLeaderEpochRequest
from kafka.protocol.consumer.offsets import ListOffsetsResponse, OffsetForLeaderEpochResponse
from kafka.protocol.metadata.metadata import MetadataRequest, MetadataResponse
from logkeep.errors import ClusterNotReady, ClusterUnreachable
from logkeep.kafka.client.fetch import DivergingEpoch
from logkeep.kafka.logs.brokers import Leader
from logkeep.kafka.logs.lost_offset import LogFacts, LogPosition
from logkeep.model.clock_time import ClockName, ClockTime

_TIMEOUT_S = 30.0


class PlainConnection:
    """A `FetchConnection` on a plain socket."""

    def __init__(self, host: str, port: int) -> None:
        try:
            self._socket = socket.create_connection((host, port), timeout=_TIMEOUT_S)
        except OSError as error:
            raise ClusterUnreachable(str(error), subject=f"{host}:{port}") from error
        self._socket.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        self._buffer = memoryview(bytearray(1 << 20))

    def send(self, request: bytes) -> None:
        try:
            self._socket.sendall(request)
        except OSError as error:
            raise ClusterUnreachable(str(error)) from error

    def receive(self) -> memoryview:
        head = memoryview(bytearray(4))
        self._fill(head)
        size = struct.unpack(">i", head)[0]
        if size > len(self._buffer):
            self._buffer = memoryview(bytearray(size))
        self._fill(self._buffer[:size])
        return self._buffer[:size]

    def close(self) -> None:
        self._socket.close()

    def _fill(self, view: memoryview) -> None:
        while len(view):
            try:
                received = self._socket.recv_into(view)
            except OSError as error:
                raise ClusterUnreachable(str(error)) from error
            if not received:
                raise ClusterUnreachable("the broker hung up")
            view = view[received:]


@dataclass(frozen=True)
class PlainBrokers:
    """A `Brokers` for a cluster without security."""

    host: str
    port: int

    def connect(self, broker: int) -> PlainConnection:
        for node in self.metadata("").brokers:
            if node.node_id == broker:
                return PlainConnection(node.host, node.port)
        raise ClusterUnreachable(f"there is no broker {broker}")

    def leader(self, topic: str, topic_id: uuid.UUID, partition: int) -> Leader:
        for each in self.metadata(topic).topics[0].partitions:
            if each.partition_index == partition and each.leader_id >= 0:
                return Leader(each.leader_id, each.leader_epoch)
        raise ClusterNotReady("nobody leads it", subject=f"{topic}/{partition}")

    def facts(self, topic: str, partition: int, position: LogPosition) -> LogFacts:
        found = self.metadata(topic).topics[0]
        if found.error_code:
            return LogFacts(None)
        start, end = (self.offset(topic, partition, when) for when in (-2, -1))
        known = self.epoch_end(topic, partition, position.last_epoch) if position.last_epoch >= 0 else None
        return LogFacts(found.topic_id, start, end, known)

    def now(self) -> ClockTime:
        return ClockTime(int(time.time() * 1000), ClockName.OWN)

    def topic_id(self, topic: str) -> uuid.UUID:
        found: uuid.UUID = self.metadata(topic).topics[0].topic_id
        return found

    def offset(self, topic: str, partition: int, when: int) -> int:
        """-2 the log start, -1 the high watermark."""
        kind = ListOffsetsRequest.ListOffsetsTopic
        one = kind.ListOffsetsPartition(partition_index=partition, current_leader_epoch=-1, timestamp=when)
        request = ListOffsetsRequest(
            replica_id=-1, isolation_level=0, topics=[kind(name=topic, partitions=[one])], timeout_ms=5000
        )
        answer = self._ask(request, ListOffsetsResponse, 7)
        return int(answer.topics[0].partitions[0].offset)

    def epoch_end(self, topic: str, partition: int, epoch: int) -> DivergingEpoch:
        kind = OffsetForLeaderEpochRequest.OffsetForLeaderTopic
        one = kind.OffsetForLeaderPartition(partition=partition, current_leader_epoch=-1, leader_epoch=epoch)
        request = OffsetForLeaderEpochRequest(replica_id=-1, topics=[kind(topic=topic, partitions=[one])])
        answer = self._ask(request, OffsetForLeaderEpochResponse, 4).topics[0].partitions[0]
        return DivergingEpoch(answer.leader_epoch, answer.end_offset)

    def aborted(self, topic: str, partition: int, offset: int) -> list[tuple[int, int]]:
        """Producer and first offset of the aborted transactions that a read-committed fetch is told of."""
        found = self._fetch(topic, partition, offset, isolation=1).aborted_transactions
        return [(each.producer_id, each.first_offset) for each in found or ()]

    def fetched(self, topic: str, partition: int, offset: int) -> bytes:
        """What one fetch brings: batches as they are, the last one perhaps cut off."""
        return bytes(self._fetch(topic, partition, offset, isolation=0).records or b"")

    def _fetch(self, topic: str, partition: int, offset: int, isolation: int) -> Any:
        kind = FetchRequest.FetchTopic
        one = kind.FetchPartition(
            partition=partition, current_leader_epoch=-1, fetch_offset=offset, last_fetched_epoch=-1,
            log_start_offset=-1, partition_max_bytes=1 << 26,
        )  # fmt: skip
        request = FetchRequest(
            replica_id=-1, max_wait_ms=100, min_bytes=1, max_bytes=1 << 26, isolation_level=isolation, session_id=0,
            session_epoch=-1, topics=[kind(topic=topic, partitions=[one])], forgotten_topics_data=[], rack_id="",
        )  # fmt: skip
        return self._ask(request, FetchResponse, 12).responses[0].partitions[0]

    def metadata(self, topic: str) -> Any:
        kind = MetadataRequest.MetadataRequestTopic
        wanted = [kind(topic_id=uuid.UUID(int=0), name=topic)] if topic else []
        request = MetadataRequest(
            topics=wanted, allow_auto_topic_creation=False, include_topic_authorized_operations=False
        )
        return self._ask(request, MetadataResponse, 12)

    def _ask(self, request: Any, response: Any, version: int) -> Any:
        """One request on a connection of its own. All these versions have flexible headers."""
        connection = PlainConnection(self.host, self.port)
        try:
            request.API_VERSION = version
            request.with_header(correlation_id=1, client_id="plain")
            connection.send(bytes(request.encode(framed=True, header=True)))
            return response.decode(bytes(connection.receive())[5:], version=version)
        finally:
            connection.close()
