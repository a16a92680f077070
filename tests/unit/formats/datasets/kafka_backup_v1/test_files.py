"""kafka-backup-v1 as bytes: golden ones made by hand from the tables of its description."""

from pathlib import Path

import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from logkeep.errors import Damaged, FormatTooNew
from logkeep.formats.datasets.arrow import SCHEMA
from logkeep.formats.datasets.kafka_backup_v1.files import (
    MAGIC,
    ListedSegment,
    encode,
    encode_groups,
    group_file,
    partition_index_name,
    segment_name,
)
from logkeep.formats.datasets.kafka_backup_v1.reader import listed_segments
from tests.support.kafka.arrow_rows import ArrowRow, record_batch
from tests.support.kafka.v1_reader import V1Record, records

_FIRST = "00000000000001f4000000000000000000000005ffffffff0000000000000000"
_SECOND = (
    "00000000000001fb" "fffffffe" "00000000" "ffffffff" "00000002"
    "00000001" "61" "00000001" "78" "00000001" "61" "ffffffff"
)  # fmt: skip
_THIRD = "00000002540be400000000010000000000000000000000016b000000027631000000010000000000000000"
_ROWS: list[ArrowRow] = [
    (500, 5, 0, None, b"", []),
    (507, -1, 0, b"", None, [(b"a", b"x"), (b"a", None)]),
    (10**10, 0, 1, b"k", b"v1", [(b"", b"")]),
]


def test_the_bytes_of_records_and_their_index() -> None:
    encoded = encode(record_batch(_ROWS))
    assert bytes(encoded.data).hex() == _FIRST + _SECOND + _THIRD
    assert encoded.index(0, 3, 1).hex() == (
        "00000000000001f4" "0000000000000001" "0000000000000020"
        "00000000000001fb" "0000000000000021" "000000000000002b"
        "00000002540be400" "000000000000004c" "000000000000002b"
    )  # fmt: skip
    assert encoded.index(1, 2, 1).hex() == "00000000000001fb0000000000000001000000000000002b"


def test_a_part_of_a_batch_has_the_bytes_of_its_records() -> None:
    whole = record_batch(_ROWS)
    assert bytes(encode(whole.slice(1, 1)).data).hex() == _SECOND
    assert bytes(encode(whole.slice(2)).data).hex() == _THIRD
    assert bytes(encode(whole.slice(1, 0)).data) == b""


def test_no_timestamp_is_distinct_from_a_create_time_without_a_time() -> None:
    (none,) = record_batch([(1, -1, -1, None, None, [])]).column("timestamp_type").to_pylist()
    assert none == -1
    assert bytes(encode(record_batch([(1, -1, -1, None, None, [])])).data)[8:12].hex() == "ffffffff"
    assert bytes(encode(record_batch([(1, -1, 0, None, None, [])])).data)[8:12].hex() == "fffffffe"
    assert len(encode(record_batch([(1, -1, 1, None, None, [])])).data) == 32


def test_names_have_minimum_widths() -> None:
    assert partition_index_name(7) == "index_partition_007"
    assert partition_index_name(1000) == "index_partition_1000"
    assert group_file(12) == "consumer_offsets_partition_012"
    assert segment_name(3, 500) == "segment_partition_003_from_offset_0000000500"
    assert segment_name(3, 10**10) == "segment_partition_003_from_offset_10000000000"


def test_groups_are_one_line_of_json() -> None:
    assert encode_groups({"other": 7, "group": 42}) == b'{"group":42,"other":7}'
    assert encode_groups({}) == b"{}"
    assert encode_groups({"späti\n": 1}) == '{"späti\\n":1}'.encode()


def test_the_bytes_of_a_partition_index() -> None:
    data = MAGIC + ListedSegment("seg", 500).encoded()
    assert data.hex() == "010000000373656700000000000001f4"


def test_a_torn_partition_index_is_read_up_to_its_last_whole_entry() -> None:
    first, second = (ListedSegment(segment_name(3, start), start) for start in (1, 2**40))
    whole = MAGIC + first.encoded() + second.encoded()
    for size in range(1, len(whole)):
        found, torn = listed_segments(whole[:size], 3, "x")
        expected = (first,) if size >= len(MAGIC + first.encoded()) else ()
        assert [each.first for each in found] == [each.start for each in expected]
        assert size - torn == len(MAGIC + b"".join(s.encoded() for s in expected))


@pytest.mark.parametrize(
    "bad", [b"", b"\x02", b"\x01\xff\xff\xff\xff", b"\x01\x7f\xff\xff\xff", b"\x01\0\0\0\x01\xff" + b"\0" * 8]
)
def test_what_is_no_partition_index_is_refused(bad: bytes) -> None:
    with pytest.raises((Damaged, FormatTooNew)):
        listed_segments(bad, 3, "x")


_BINARY = st.none() | st.binary(max_size=20)
_ROW = st.tuples(
    st.integers(-(2**63), 2**63 - 1),
    st.sampled_from([0, 1, -1]),
    _BINARY,
    _BINARY,
    st.lists(st.tuples(st.binary(max_size=5), _BINARY), max_size=20),
)


@settings(max_examples=60, deadline=None)
@given(st.lists(_ROW, max_size=30), st.integers(0, 2**62))
def test_an_independent_reader_reads_any_records(
    tmp_path_factory: pytest.TempPathFactory,
    rows: list[tuple[int, int, bytes | None, bytes | None, list[tuple[bytes, bytes | None]]]],
    first: int,
) -> None:
    topic = tmp_path_factory.mktemp("v1")
    given_rows: list[ArrowRow] = [(first + 3 * i, *row) for i, row in enumerate(rows)]
    encoded = encode(record_batch(given_rows))
    if rows:
        name = segment_name(0, first)
        (topic / f"{name}_records").write_bytes(MAGIC + bytes(encoded.data))
        (topic / f"{name}_index").write_bytes(MAGIC + encoded.index(0, len(rows), 1))
    listed = ListedSegment(segment_name(0, first), first).encoded() if rows else b""
    (topic / partition_index_name(0)).write_bytes(MAGIC + listed)
    assert records(Path(topic), 0) == [expected(row) for row in given_rows]


def expected(row: ArrowRow) -> V1Record:
    offset, time, kind, key, value, headers = row
    kind = -2 if (kind, time) == (0, -1) else kind
    return V1Record(offset, kind, time if kind >= 0 else None, key, value, tuple(headers))


def test_the_schema_is_the_one_that_is_encoded() -> None:
    assert record_batch(_ROWS).schema == SCHEMA
    assert isinstance(record_batch([]), pa.RecordBatch)
