"""Fetch version 13: our bytes against kafka-python's own encoder, and replies of every kind."""

import uuid
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from kafka.protocol.consumer.fetch import FetchRequest, FetchResponse

from logkeep.errors import ClusterError
from logkeep.kafka.client.fetch import DivergingEpoch, FetchLimits, PartitionFetch, encode, parse
from tests.property.untimed import many

ONE, TWO = uuid.UUID(int=1 << 100), uuid.UUID(int=2 << 99)
LIMITS = FetchLimits(max_bytes=1 << 20, max_wait_ms=250, min_bytes=3, rack="r" * 130, client_id="tests")


def _theirs(wanted: list[PartitionFetch]) -> bytes:
    kind = FetchRequest.FetchTopic
    topics = [
        kind(
            topic_id=topic,
            partitions=[
                kind.FetchPartition(
                    partition=w.partition,
                    current_leader_epoch=w.leader_epoch,
                    fetch_offset=w.offset,
                    last_fetched_epoch=w.last_epoch,
                    log_start_offset=-1,
                    partition_max_bytes=1 << 20,
                )
                for w in wanted
                if w.topic_id == topic
            ],
        )
        for topic in dict.fromkeys(w.topic_id for w in wanted)
    ]
    request = FetchRequest(
        replica_id=-1,
        max_wait_ms=250,
        min_bytes=3,
        max_bytes=1 << 20,
        isolation_level=0,
        session_id=0,
        session_epoch=-1,
        topics=topics,
        forgotten_topics_data=[],
        rack_id="r" * 130,
    )
    request.API_VERSION = 13
    request.with_header(correlation_id=42, client_id="tests")
    return bytes(request.encode(framed=True, header=True))


@pytest.mark.parametrize("partitions", [0, 1, 3, 200])
def test_requests_are_those_of_an_independent_encoder(partitions: int) -> None:
    wanted = [PartitionFetch(ONE, p, 2**40 + p, leader_epoch=p, last_epoch=p - 1) for p in range(partitions)]
    wanted += [PartitionFetch(TWO, 7, 0)]
    assert encode(wanted, LIMITS, 42) == _theirs(wanted)


def _reply(topics: list[Any], throttle_ms: int = 0, error: int = 0) -> memoryview:
    answer = FetchResponse(throttle_time_ms=throttle_ms, error_code=error, session_id=0, responses=topics)
    answer.API_VERSION = 13
    answer.with_header(correlation_id=42)
    return memoryview(bytes(answer.encode(header=True)))


def _partition(index: int, records: bytes | None, **more: Any) -> Any:
    kind = FetchResponse.FetchableTopicResponse.PartitionData
    told = {"error_code": 0, "high_watermark": 90, "last_stable_offset": 80, "log_start_offset": 7}
    tail = {"aborted_transactions": None, "preferred_read_replica": -1, "records": records}
    return kind(partition_index=index, **(told | tail | more))


def _topic(topic_id: uuid.UUID, partitions: list[Any]) -> Any:
    return FetchResponse.FetchableTopicResponse(topic_id=topic_id, partitions=partitions)


def _rich() -> memoryview:
    kind = FetchResponse.FetchableTopicResponse.PartitionData
    aborted = [kind.AbortedTransaction(producer_id=1, first_offset=2)] * 3
    diverging = kind.EpochEndOffset(epoch=3, end_offset=55)
    current = kind.LeaderIdAndEpoch(leader_id=2, leader_epoch=9)
    first = [_partition(0, b"x" * 300), _partition(1, None, error_code=6, current_leader=current)]
    second = [_partition(5, b"", diverging_epoch=diverging, aborted_transactions=aborted, preferred_read_replica=4)]
    return _reply([_topic(ONE, first), _topic(TWO, second)], throttle_ms=12)


def test_replies_of_an_independent_encoder_are_read() -> None:
    data = _rich()
    reply = parse(data, 42)
    assert reply.throttle_ms == 12
    one, refused, diverged = reply.partitions
    assert (one.topic_id, one.partition, one.served) == (ONE, 0, True)
    assert (one.high_watermark, one.last_stable, one.log_start) == (90, 80, 7)
    assert bytes(one.records) == b"x" * 300
    assert one.records.obj is data.obj, "the records were copied"
    assert (refused.error, refused.leader_epoch, refused.served) == (6, 9, False)
    assert (diverged.topic_id, diverged.partition, diverged.diverging) == (TWO, 5, DivergingEpoch(3, 55))
    assert (diverged.preferred_replica, diverged.served) == (4, False)


def test_a_throttled_reply_has_no_topics() -> None:
    reply = parse(_reply([], throttle_ms=2058), 42)
    assert (reply.throttle_ms, reply.partitions) == (2058, ())


def test_replies_to_something_else_and_refusals_are_errors() -> None:
    with pytest.raises(ClusterError, match="another request"):
        parse(_rich(), 41)
    with pytest.raises(ClusterError, match="71"):
        parse(_reply([], error=71), 42)


def test_every_cut_reply_is_an_error() -> None:
    data = _rich()
    for size in range(len(data)):
        with pytest.raises(ClusterError):
            parse(data[:size], 42)


@many
@given(st.binary(max_size=200), st.integers(0, 400), st.integers(0, 3))
def test_no_reply_does_worse_than_an_error(noise: bytes, at: int, keep: int) -> None:
    """Noise over a good reply: lengths and counts become anything."""
    data = bytearray(_rich())
    data[4 + at % len(data) : 4 + at % len(data) + len(noise)] = noise
    try:
        reply = parse(memoryview(data), 42)
    except ClusterError:
        return
    assert sum(len(p.records) for p in reply.partitions) <= len(data)
