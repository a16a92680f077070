"""Keys and values of the topics in which a cluster keeps its books: golden bytes, every version, damage, all codecs."""

import gzip
import struct
from typing import Any
from uuid import UUID

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from logkeep.errors import Damaged
from logkeep.formats.kafka.fields import FieldReader
from logkeep.formats.kafka.internal_topics import metadata_records as records
from logkeep.formats.kafka.internal_topics.offsets_topic import (
    ClassicGroupValue,
    GroupKey,
    PositionKey,
    PositionValue,
    decode_classic_group,
    decode_key,
    decode_position,
)
from logkeep.formats.kafka.plain_records import PlainRecord, marker_type, records_of
from tests.support.kafka.handmade_batches import Batch

ID = UUID("00112233-4455-6677-8899-aabbccddeeff")
_KEY = bytes.fromhex("0001 0007") + b"billing" + bytes.fromhex("0006") + b"orders" + bytes.fromhex("00000002")
_VALUES = {
    0: "0000 000000000000002a 0002 6869 0000000000000005",
    1: "0001 000000000000002a 0002 6869 0000000000000005 0000000000000009",
    2: "0002 000000000000002a 0002 6869 0000000000000005",
    3: "0003 000000000000002a 00000007 0002 6869 0000000000000005",
    4: f"0004 000000000000002a 00000007 03 6869 0000000000000005 01 00 10 {ID.hex}",
}
_GROUPS = {
    0: "0000 0008 636f6e73756d6572 00000003 ffff ffff 00000001",
    2: "0002 0008 636f6e73756d6572 00000003 ffff 0001 61 0000000000000001 00000001",
    4: "0004 09 636f6e73756d6572 00000003 00 02 61 0000000000000001 02",
}


def test_keys() -> None:
    position = PositionKey("billing", "orders", 2)
    assert decode_key(_KEY) == decode_key(b"\x00\x00" + _KEY[2:]) == position
    kinds = {2: "classic", 3: "consumer", 11: "share", 17: "streams"}
    for number, kind in kinds.items():
        assert decode_key(struct.pack(">hh", number, 7) + b"billing") == GroupKey("billing", kind)
    assert decode_key(struct.pack(">hh", 5, 7) + b"billing") is None


@pytest.mark.parametrize("version", _VALUES)
def test_positions_of_every_version(version: int) -> None:
    epoch = 7 if version >= 3 else -1
    topic_id = ID.hex if version == 4 else ""
    assert decode_position(bytes.fromhex(_VALUES[version])) == PositionValue(42, epoch, "hi", topic_id)


@pytest.mark.parametrize("version", _GROUPS)
def test_classic_groups(version: int) -> None:
    assert decode_classic_group(bytes.fromhex(_GROUPS[version])) == ClassicGroupValue("consumer", 3, 1)


def test_a_later_version_is_refused() -> None:
    with pytest.raises(Damaged, match="version 5"):
        decode_position(b"\x00\x05" + bytes(30))


_RECORDS = {
    "01 02 00 07 6f7264657273 " + ID.hex + " 00": records.TopicMade("orders", ID),
    "01 09 00 " + ID.hex + " 00": records.TopicRemoved(ID),
    "01 03 02 00000001 " + ID.hex + " 03 00000005 00000006 01 01 01 00000005 00000000 00000000 01 00": (
        records.ReplicasSet(ID, 1, (5, 6))
    ),
    "01 05 00 00000001 " + ID.hex + " 02 01 04 00000005 02 05 02 00000009": records.ReplicasSet(ID, 1, (9,)),
    "01 05 00 00000001 " + ID.hex + " 01 01 04 00000005": None,
    "01 04 00 02 02 74 02 6b 02 76 00": records.TopicConfigSet("t", "k", "v"),
    "01 04 00 02 02 74 02 6b 00 00": records.TopicConfigSet("t", "k", None),
    "01 04 00 04 02 31 02 6b 02 76 00": None,
    "01 0e 00 02 05 75736572 00 00 02 6b 3ff0000000000000 00 00": records.QuotaSet((("user", None),), "k", 1.0),
    "01 0e 00 02 05 75736572 02 61 00 02 6b 3ff0000000000000 01 00": records.QuotaSet((("user", "a"),), "k", None),
    "01 12 00 " + ID.hex + " 02 02 74 03 07 557365723a61 02 2a 03 03 00": (
        records.AclMade(ID, 2, "t", 3, "User:a", "*", 3, 3)
    ),
    "01 13 00 " + ID.hex + " 00": records.AclRemoved(ID),
    "01 17 00 00": records.TransactionStep(records.MetadataRecordType.BEGIN_TRANSACTION),
    "01 0b 00 ff": None,
}


@pytest.mark.parametrize("text", _RECORDS)
def test_metadata_records(text: str) -> None:
    assert records.decode(bytes.fromhex(text)) == _RECORDS[text]


@given(st.binary(max_size=60))
def test_any_bytes_are_read_or_refused(data: bytes) -> None:
    for read in (decode_key, decode_position, decode_classic_group, records.decode):
        try:
            read(data)
        except Damaged:
            continue


@given(st.integers(min_value=0, max_value=2**64 - 1))
def test_varints(number: int) -> None:
    left, data = number, bytearray()
    while left > 0x7F:
        data.append(left & 0x7F | 0x80)
        left >>= 7
    data.append(left)
    assert FieldReader(bytes(data)).unsigned() == number
    assert FieldReader(bytes(data)).signed() == (number // 2 if number % 2 == 0 else -(number // 2) - 1)


_PLAIN = bytes.fromhex("10 00 00 00 02 6b 02 76 00") + bytes.fromhex("0e 00 00 02 01 02 77 00")
_TOLD = [PlainRecord(7, b"k", b"v"), PlainRecord(8, None, b"w")]


def _xerial(data: bytes) -> bytes:
    block = bytes(pa.Codec("snappy").compress(data, asbytes=True))
    return b"\x82SNAPPY\x00" + struct.pack(">iii", 1, 1, len(block)) + block


def _stream(data: bytes, codec: str) -> bytes:
    sink = pa.BufferOutputStream()
    with pa.CompressedOutputStream(sink, codec) as stream:
        stream.write(data)
    found: bytes = sink.getvalue().to_pybytes()
    return found


@pytest.mark.parametrize(
    ("codec", "packed"),
    [
        (0, _PLAIN),
        (1, gzip.compress(_PLAIN, mtime=0)),
        (2, bytes(pa.Codec("snappy").compress(_PLAIN, asbytes=True))),
        (2, _xerial(_PLAIN)),
        (3, _stream(_PLAIN, "lz4")),
        (4, _stream(_PLAIN, "zstd")),
    ],
    ids=["none", "gzip", "snappy", "snappy-of-java", "lz4", "zstd"],
)
def test_records_of_every_codec(codec: int, packed: bytes) -> None:
    batch = Batch(7, 1, 2, attributes=codec, payload=packed).encode()
    assert list(records_of(batch, 7, codec, 2)) == _TOLD
    for broken in (batch[:-1], batch[:70]):
        with pytest.raises(Damaged):
            list(records_of(broken, 7, codec, 2))


def test_markers() -> None:
    for decided in (0, 1):
        record: Any = bytes.fromhex(f"20 00 00 00 08 0000 000{decided} 0c 0000 00000000 00")
        assert marker_type(Batch(0, attributes=0x30, payload=record).encode()) == decided
