"""Batches put into a topic byte by byte, as no client library would send them."""

import struct
from collections.abc import Sequence

from kafka.protocol.producer.produce import ProduceRequest
from tests.support.kafka.plain_client import PlainConnection
from tests.support.kafka.slow_records import Slow, batch_of
from tests.support.processes import wait_for

_NOT_YET = {3, 5, 6}
"""A topic that was just made has no leader."""


def put(port: int, topic: str, partition: int, batches: Sequence[bytes]) -> None:
    """Append whole batches, one request each."""
    connection = PlainConnection("127.0.0.1", port)
    try:
        for batch in batches:
            wait_for(lambda one=batch: _put(connection, topic, partition, one), "a leader")  # type: ignore[misc]
    finally:
        connection.close()


def _put(connection: PlainConnection, topic: str, partition: int, batch: bytes) -> bool:
    kind = ProduceRequest.TopicProduceData
    part = kind.PartitionProduceData(index=partition, records=appendable(batch))
    request = ProduceRequest(
        transactional_id=None, acks=-1, timeout_ms=5000, topic_data=[kind(name=topic, partition_data=[part])]
    )
    request.API_VERSION = 9
    request.with_header(correlation_id=1, client_id="by-hand")
    connection.send(bytes(request.encode(framed=True, header=True)))
    error = struct.unpack_from(">h", connection.receive(), 4 + 1 + 1 + 1 + len(topic) + 1 + 4)[0]
    assert error in {0, *_NOT_YET}, error
    return bool(error == 0)


def appendable(batch: bytes) -> bytes:
    """With the base offset and the epoch that a producer sends: both are outside of the CRC."""
    return bytes(8) + batch[8:12] + b"\xff" * 4 + batch[16:]


def batch_at(records: Sequence[tuple[int, Slow]]) -> bytes:
    """A batch of `(time, record)`."""
    first = records[0][0]
    moved = [Slow(delta, time_ms - first, r.key, r.value, r.headers) for delta, (time_ms, r) in enumerate(records)]
    return batch_of(0, moved, base_time_ms=first, max_time_ms=max(t for t, _ in records))
