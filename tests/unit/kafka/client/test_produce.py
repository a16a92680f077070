"""Produce requests and replies against kafka-python's own classes, which share nothing with ours."""

import struct

import pytest
from hypothesis import given
from hypothesis import strategies as st
from kafka.protocol.producer.produce import ProduceRequest, ProduceResponse

from logkeep.errors import ClusterError
from logkeep.kafka.client import produce
from logkeep.kafka.client.produce import Ack, OutgoingBatch, parse, request_parts
from logkeep.kafka.client.topology import TopicPartition

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
    parts = request_parts([OutgoingBatch(log, data) for log, data in BATCHES.items()], transactional_id)
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


def made_reply(topics: dict[str, list[tuple[int, int]]], throttle_ms: int) -> bytes:
    """As kafka-python writes it: partitions and error codes per topic, no texts."""
    kind = ProduceResponse.TopicProduceResponse
    inner = kind.PartitionProduceResponse
    answers = {
        topic: [
            inner(
                index=index,
                error_code=code,
                base_offset=index * 7,
                log_append_time_ms=-1,
                log_start_offset=0,
                record_errors=[],
                error_message=None,
            )
            for index, code in some
        ]
        for topic, some in topics.items()
    }
    responses = [kind(name=topic, partition_responses=some) for topic, some in answers.items()]
    reply = ProduceResponse(responses=responses, throttle_time_ms=throttle_ms)
    reply.API_VERSION = 9
    return bytes(reply.encode())


_ANSWERS = st.lists(st.tuples(st.integers(0, 2**31 - 1), st.sampled_from([0, 3, 6, 45])), max_size=130)
_REPLIES = st.builds(
    made_reply,
    st.dictionaries(st.text("aé.", max_size=130), _ANSWERS, min_size=1, max_size=2),
    st.sampled_from([0, 250, -1]),
)


@given(_REPLIES, st.lists(st.tuples(st.integers(0, 10_000), st.integers(0, 255)), max_size=3), st.integers(0, 3))
def test_the_short_way_says_what_the_long_way_says(
    reply: bytes, changes: list[tuple[int, int]], shortened: int
) -> None:
    """Or nothing at all: damaged ones too."""
    damaged = bytearray(reply)
    for at, value in changes:
        damaged[at % len(damaged)] = value
    body = memoryview(damaged)[: len(damaged) - shortened]
    found = produce._parse_simple(body)
    if found is not None:
        assert found == produce._parse_any(body)


@pytest.mark.parametrize("topic", ["orders", "a" * 100, "é"])
@pytest.mark.parametrize("partitions", [1, 2, 126])
def test_common_replies_are_read_the_short_way(topic: str, partitions: int) -> None:
    body = memoryview(made_reply({topic: [(index, 0) for index in range(partitions)]}, 0))
    found = produce._parse_simple(body)
    assert found is not None
    assert [ack.log for ack in found.acks] == [TopicPartition(topic, index) for index in range(partitions)]


def test_every_single_byte_that_is_another_one_is_seen() -> None:
    reply = made_reply({"t": [(0, 0), (3, 6)]}, 0)
    for at in range(len(reply)):
        for value in range(256):
            body = memoryview(reply[:at] + bytes([value]) + reply[at + 1 :])
            found = produce._parse_simple(body)
            try:
                assert found is None or found == produce._parse_any(body)
            except ClusterError:
                pytest.fail(f"byte {at} as {value} is read the short way, and cannot be read")
