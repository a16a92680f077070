"""Produce requests and replies against kafka-python's own classes, which share nothing with ours."""

import struct

import pytest
from hypothesis import given
from hypothesis import strategies as st
from kafka.protocol.producer.produce import ProduceRequest, ProduceResponse

from logkeep.errors import ClusterError
from logkeep.kafka.restore.produce import Ack, Parcel, parse, request_parts
from logkeep.kafka.values import TopicPartition

BATCHES = {
    TopicPartition("orders", 0): b"x" * 70,
    TopicPartition("orders", 3): b"y" * 40_000,
    TopicPartition("t", 1): b"z",
}


@pytest.mark.parametrize("transactional_id", [None, "logkeep-orders-0"])
def test_a_request_is_what_another_client_writes(transactional_id: str | None) -> None:
    kind = ProduceRequest.TopicProduceData
    topics = [
        kind(
            name=topic,
            partition_data=[
                kind.PartitionProduceData(index=log.partition, records=data)
                for log, data in BATCHES.items()
                if log.topic == topic
            ],
        )
        for topic in ("orders", "t")
    ]
    theirs = ProduceRequest(transactional_id=transactional_id, acks=-1, timeout_ms=25_000, topic_data=topics)
    theirs.API_VERSION = 9
    parts = request_parts([Parcel(log, data) for log, data in BATCHES.items()], transactional_id)
    assert b"".join(parts) == bytes(theirs.encode())
    assert any(part is BATCHES[TopicPartition("orders", 3)] for part in parts), "a large batch was copied"


def test_a_reply_is_read() -> None:
    kind = ProduceResponse.TopicProduceResponse
    inner = kind.PartitionProduceResponse
    good = inner(
        index=0,
        error_code=0,
        base_offset=2**40,
        log_append_time_ms=-1,
        log_start_offset=5,
        record_errors=[],
        error_message=None,
    )
    bad = inner(
        index=3,
        error_code=87,
        base_offset=-1,
        log_append_time_ms=-1,
        log_start_offset=-1,
        record_errors=[inner.BatchIndexAndErrorMessage(batch_index=1, batch_index_error_message="no key")],
        error_message="one or more records were refused",
    )
    reply = ProduceResponse(responses=[kind(name="orders", partition_responses=[good, bad])], throttle_time_ms=250)
    reply.API_VERSION = 9
    found = parse(memoryview(bytes(reply.encode())))
    assert found.throttle_ms == 250
    assert found.acks == (
        Ack(TopicPartition("orders", 0), 0, 2**40),
        Ack(TopicPartition("orders", 3), 87, -1, "one or more records were refused; no key"),
    )


@given(st.binary(max_size=200))
def test_any_bytes_are_read_or_refused(data: bytes) -> None:
    try:
        parse(memoryview(data))
    except ClusterError:
        return
    except struct.error:
        pytest.fail("a field was read past the end")
