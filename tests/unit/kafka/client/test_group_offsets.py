"""Our one-pass encoder and parser of group offsets against kafka-python, which follows the schema of the messages."""

import struct

import pytest
from hypothesis import given
from hypothesis import strategies as st
from kafka.protocol.consumer import OffsetCommitRequest, OffsetCommitResponse, OffsetFetchResponse

from logkeep.errors import ClusterError
from logkeep.kafka.client.group_offsets import HIGHEST, LOWEST, commit_request, parse_commit, parse_fetch
from logkeep.kafka.client.protocol import _filled
from logkeep.kafka.client.topology import TopicPartition, by_topic

_names = st.text(max_size=200)
_texts = st.text(max_size=300)
_i16, _i32, _i64 = st.integers(-1, 2**15 - 1), st.integers(0, 2**31 - 1), st.integers(-1, 2**63 - 1)
_logs = st.builds(TopicPartition, st.sampled_from(("a", "b-long" * 40, "ünïcode")), _i32)
_versions = st.integers(LOWEST, HIGHEST)


def _body(kind: type, version: int, fields: dict[str, object]) -> bytes:
    message = _filled(kind, fields)
    message.API_VERSION = version
    return bytes(message.encode())


@given(_versions, _names, st.dictionaries(_logs, st.tuples(_i64, _i32, _texts), max_size=40))
def test_a_request_is_what_a_broker_reads(
    version: int, group: str, commits: dict[TopicPartition, tuple[int, int, str]]
) -> None:
    sent = b"".join(commit_request(group, commits))
    read = OffsetCommitRequest.decode(sent, version=version)
    assert (read.group_id, read.generation_id_or_member_epoch, read.member_id) == (group, -1, "")
    found = {
        TopicPartition(t.name, p.partition_index): (p.committed_offset, p.committed_leader_epoch, p.committed_metadata)
        for t in read.topics
        for p in t.partitions
    }
    assert found == commits


@given(_versions, st.dictionaries(_logs, _i16, max_size=40))
def test_answers_to_commits_are_read(version: int, codes: dict[TopicPartition, int]) -> None:
    topics = [
        {
            "name": topic,
            "partitions": [{"partition_index": p, "error_code": codes[TopicPartition(topic, p)]} for p in ps],
        }
        for topic, ps in by_topic(codes).items()
    ]
    reply = _body(OffsetCommitResponse, version, {"throttle_time_ms": 7, "topics": topics})
    assert dict(parse_commit(reply)) == codes


@given(
    _versions,
    st.dictionaries(
        _names, st.tuples(_i16, st.dictionaries(_logs, st.tuples(_i64, _i32, st.none() | _texts, _i16), max_size=20)),
        max_size=5,
    ),
)  # fmt: skip
def test_offsets_of_groups_are_read(
    version: int, groups: dict[str, tuple[int, dict[TopicPartition, tuple[int, int, str | None, int]]]]
) -> None:
    fields = ("committed_offset", "committed_leader_epoch", "metadata", "error_code")
    told = [
        {
            "group_id": name,
            "error_code": code,
            "topics": [
                {
                    "name": topic,
                    "partitions": [
                        {"partition_index": p, **dict(zip(fields, offsets[TopicPartition(topic, p)], strict=True))}
                        for p in partitions
                    ],
                }
                for topic, partitions in by_topic(offsets).items()
            ],
        }
        for name, (code, offsets) in groups.items()
    ]
    reply = _body(OffsetFetchResponse, version, {"throttle_time_ms": 0, "groups": told})
    found = {
        each.group: (each.error, {TopicPartition(t, p.partition): tuple(p)[1:] for t, ps in each.topics for p in ps})
        for each in parse_fetch(reply)
    }
    expected = {
        name: (code, {log: (o, epoch, text or "", error) for log, (o, epoch, text, error) in offsets.items()})
        for name, (code, offsets) in groups.items()
    }
    assert found == expected


@given(st.binary(max_size=80))
def test_any_bytes_are_answered_with_one_error(data: bytes) -> None:
    for parse in (parse_fetch, parse_commit):
        try:
            parse(data)
        except ClusterError:
            continue


def test_a_reply_of_a_false_length_is_refused() -> None:
    good = struct.pack(">i", 0) + b"\1\0"
    assert parse_fetch(good) == []
    for bad in (good[:-1], good + b"x", struct.pack(">i", 0) + b"\xff\xff\xff\xff\x7f", b""):
        with pytest.raises(ClusterError):
            parse_fetch(bad)
