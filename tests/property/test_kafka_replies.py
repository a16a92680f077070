"""Whatever bytes a reply holds, reading it ends in a value or in our own error."""

import contextlib

import pytest
from hypothesis import given
from hypothesis import strategies as st

from logkeep.errors import ClusterError
from logkeep.kafka.client.metadata import read_metadata
from logkeep.kafka.client.protocol import decode, encode, shape
from tests.property.untimed import untimed

APIS = ("Metadata", "ListOffsets", "OffsetFetch", "DescribeShareGroupOffsets", "ConsumerGroupDescribe", "ApiVersions")


@pytest.mark.parametrize("api", APIS)
@untimed
@given(body=st.binary(max_size=200))
def test_hostile_replies(api: str, body: bytes) -> None:
    what = shape(api)
    for version in {what.lowest, what.highest}:
        with contextlib.suppress(ClusterError):
            decode(what, version, body)


@untimed
@given(body=st.binary(max_size=200))
def test_hostile_metadata_becomes_a_value_or_our_error(body: bytes) -> None:
    with contextlib.suppress(ClusterError):
        read_metadata(decode(shape("Metadata"), 12, b"\0\0\0\0" + body))


def test_nested_fields_are_written_where_the_protocol_wants_them() -> None:
    fields = {"groups": [{"group_id": "g", "topics": [{"topic_name": "t", "partitions": [1, 2]}]}]}
    made = encode(shape("DescribeShareGroupOffsets"), 0, fields, 7, "me")
    body = b"\x02\x02g\x02\x02t\x03\0\0\0\x01\0\0\0\x02\0\0\0"
    head = b"\0\x5a\0\0\0\0\0\x07\0\x02me\0"
    assert made == len(head + body).to_bytes(4, "big") + head + body
