"""Bytes that are not what was written: rows come back equal, or `Damaged`; never a crash, never another error.

Two attackers: the disk, which cannot repair the seal, and a forger, who can. Against the forger the promise is
smaller, since a well-formed part with other rows is legal by itself (manifests name parts by hash): no error but
`Damaged`, no row that breaks the rules, no allocation beyond what the caller allowed.
"""

import hashlib
import io
from collections.abc import Iterator

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import given
from hypothesis import strategies as st

from logkeep.errors import Damaged
from logkeep.model.segments import Codec, Collection, LogName, Proof, Segment
from logkeep.repository.parts import SegmentTable, decode, encode
from logkeep.repository.parts.pages import ColumnChunk, decoded_bytes
from logkeep.repository.parts.table import SCHEMA
from tests.property.untimed import many

ROWS = 40


def _segment(number: int) -> Segment:
    return Segment(
        log=LogName(list(Collection)[number % 3], f"orders.{number % 4}", f"h{number % 2}", number % 5),
        start=number * 100,
        end=number * 100 + 100,
        first=number * 100 + 3,
        has_object=number % 6 != 5,
        proof=list(Proof)[number % 3],
        token=hashlib.sha256(b"%d" % number).hexdigest()[:16],
        records=100,
        stored_bytes=4000 + number,
        plain_bytes=9000 + number,
        base_time_ms=1_700_000_000_000 + number,
        max_time_ms=1_700_000_000_999 + number,
        sha256=hashlib.sha256(b"stored %d" % number).hexdigest(),
        plain_sha256=hashlib.sha256(b"plain %d" % number).hexdigest(),
        codec=list(Codec)[number % 3],
        digest="" if number % 2 else f"sha256:{number:064x}",
    )


TABLE = SegmentTable.from_segments(_segment(n) for n in range(ROWS))
PART = encode(TABLE)


def _resealed(data: bytes) -> bytes:
    """What a forger does: leave the damage, make the seal fit."""
    footer = len(data) - 8 - int.from_bytes(data[-8:-4], "little")
    if not 40 <= footer <= len(data):
        return data
    seal = b"LKP1" + hashlib.sha256(data[: footer - 36] + data[footer:]).digest()
    return data[: footer - 36] + seal + data[footer:]


def _sealed(parquet: bytes) -> bytes:
    footer = len(parquet) - 8 - int.from_bytes(parquet[-8:-4], "little")
    return parquet[:footer] + b"LKP1" + hashlib.sha256(parquet).digest() + parquet[footer:]


def _written(table: pa.Table, **options: object) -> bytes:
    """A sealed Parquet file that our writer would not make."""
    sink = io.BytesIO()
    pq.write_table(table, sink, **{"compression": "zstd", "store_schema": False, **options})
    return _sealed(sink.getvalue())


def _plain(table: pa.Table = TABLE.arrow) -> pa.Table:
    fields = [f.with_type(pa.string()) if pa.types.is_dictionary(f.type) else f for f in SCHEMA]
    return table.cast(pa.schema(fields))


def _with(name: str, value: object, row: int = 7) -> pa.Table:
    """The rows with one value changed."""
    table = _plain()
    index = table.column_names.index(name)
    values = table.column(name).to_pylist()
    values[row] = value
    return table.set_column(index, table.schema.field(index), pa.array(values, table.schema.field(index).type))


flips = st.lists(st.tuples(st.integers(0, len(PART) - 1), st.integers(1, 255)), min_size=1, max_size=4)


def _flipped(changes: list[tuple[int, int]]) -> bytes:
    data = bytearray(PART)
    for place, mask in changes:
        data[place] ^= mask
    return bytes(data)


@many
@given(flips)
def test_flipped_bytes_are_damage(changes: list[tuple[int, int]]) -> None:
    data = _flipped(changes)
    if data == PART:
        return
    with pytest.raises(Damaged):
        decode(data, ROWS)


@many
@given(st.integers(0, len(PART) - 1), st.integers(0, len(PART) - 1))
def test_cut_out_and_cut_off_bytes_are_damage(one: int, other: int) -> None:
    start, end = sorted((one, other))
    for data in (PART[:start], PART[start + 1 :], PART[:start] + PART[end + 1 :], PART[:start] + PART):
        if data != PART:
            with pytest.raises(Damaged):
                decode(data, ROWS)


def test_every_flipped_bit_of_seal_and_footer_is_damage() -> None:
    footer = len(PART) - 8 - int.from_bytes(PART[-8:-4], "little")
    for place in range(footer - 36, len(PART)):
        with pytest.raises(Damaged):
            decode(_flipped([(place, 1 << place % 8)]), ROWS)


@many
@given(flips)
def test_a_forger_s_flips_give_legal_rows_or_damage(changes: list[tuple[int, int]]) -> None:
    try:
        table = decode(_resealed(_flipped(changes)), ROWS)
    except Damaged:
        return
    assert len(list(table.to_segments())) == len(table) <= ROWS


@pytest.mark.parametrize("data", (b"", b"PAR1", b"PAR1PAR1", b"not parquet" * 20, b"PAR1" + bytes(200) + b"PAR1"))
def test_what_is_no_part_is_damage(data: bytes) -> None:
    with pytest.raises(Damaged):
        decode(data, ROWS)


def test_more_rows_than_allowed_are_damage() -> None:
    with pytest.raises(Damaged, match="at most 39"):
        decode(PART, ROWS - 1)


def test_a_plain_parquet_file_without_seal_is_damage() -> None:
    sink = io.BytesIO()
    pq.write_table(_plain(), sink)
    with pytest.raises(Damaged, match="no hash block"):
        decode(sink.getvalue(), ROWS)


def test_what_our_writer_would_not_write_but_is_legal_is_read() -> None:
    assert decode(_written(_plain()), ROWS) == TABLE
    assert decode(_written(_plain(), row_group_size=7, use_dictionary=False), ROWS) == TABLE


_BAD_VALUES: list[tuple[str, object, str]] = [
    ("collection", "manifests", "collection"),
    ("collection", "..", "collection"),
    ("name", "..", "'..' is not a legal name"),
    ("name", ".", "legal name"),
    ("name", "", "legal name"),
    ("name", "a/b", "legal name"),
    ("name", "a\n", "legal name"),
    ("name", "\u00e9", "legal name"),
    ("name", "n" * 250, "legal name"),
    ("name", "a\x00b", "legal name"),
    ("history", ".h", "legal history"),
    ("history", "", "legal history"),
    ("history", "h" * 65, "legal history"),
    ("codec", "sh -c", "legal codec"),
    ("digest", "x" * 129, "legal digest"),
    ("digest", "a b", "legal digest"),
    ("partition", -1, "partition is negative"),
    ("start", -1, "start is negative"),
    ("start", 2**63 - 1, "runs backwards"),
    ("end", -5, "end is negative"),
    ("first", -1, "first is negative"),
    ("proof", "sworn", "legal proof"),
    ("records", -1, "records is negative"),
    ("stored_bytes", -1, "stored_bytes is negative"),
    ("plain_bytes", -1, "plain_bytes is negative"),
]


@pytest.mark.parametrize(("column", "value", "message"), _BAD_VALUES)
def test_an_illegal_value_is_damage_that_names_its_row(column: str, value: object, message: str) -> None:
    with pytest.raises(Damaged, match=message) as caught:
        decode(_written(_with(column, value)), ROWS)
    assert caught.value.subject == "row 7"


def test_rows_out_of_order_or_twice_are_damage() -> None:
    plain = _plain()
    with pytest.raises(Damaged, match="row 2: the rows are not in order"):
        decode(_written(plain.take([0, 2, 1, 3])), ROWS)
    with pytest.raises(Damaged, match="row 3: the same object is listed twice"):
        decode(_written(plain.take([0, 1, 2, 2, 3])), ROWS)


def _wrong_tables() -> Iterator[tuple[str, pa.Table, dict[str, object]]]:
    plain = _plain()
    yield "a column less", plain.drop_columns(["digest"]), {}
    yield "a column more", plain.append_column("path", plain.column("name")), {}
    yield "columns swapped", plain.select(plain.column_names[::-1]), {}
    yield "another type", plain.set_column(3, "partition", plain.column("partition").cast(pa.int64())), {}
    yield "nullable", plain.set_column(1, "name", plain.column("name")), {}
    yield "an arrow schema", plain, {"store_schema": True}
    yield "another codec", plain, {"compression": "gzip"}
    yield "no compression", plain, {"compression": "none"}
    yield "newer pages", plain, {"data_page_version": "2.0"}
    yield "prefix encoding", plain, {"use_dictionary": False, "column_encoding": {"name": "DELTA_BYTE_ARRAY"}}


@pytest.mark.parametrize(("table", "options"), [pytest.param(t, o, id=name) for name, t, o in _wrong_tables()])
def test_another_shape_is_damage(table: pa.Table, options: dict[str, object]) -> None:
    with pytest.raises(Damaged):
        decode(_written(table, **options), ROWS)


def test_text_that_is_not_utf8_is_damage() -> None:
    bytes_as_text = pa.array([b"\xff\xfe"], pa.binary()).view(pa.string())
    names = pa.DictionaryArray.from_arrays(pa.array([0] * ROWS, pa.int32()), bytes_as_text)
    with pytest.raises(Damaged, match="inconsistent"):
        SegmentTable.validated(TABLE.arrow.set_column(1, SCHEMA.field(1), names))


def test_a_dictionary_index_out_of_range_is_damage() -> None:
    names = pa.DictionaryArray.from_arrays(pa.array([9] * ROWS, pa.int32()), pa.array(["a"]), safe=False)
    with pytest.raises(Damaged, match="inconsistent"):
        SegmentTable.validated(TABLE.arrow.set_column(1, SCHEMA.field(1), names))


@pytest.mark.parametrize("name", SCHEMA.names)
def test_a_missing_value_is_damage_that_names_its_row(name: str) -> None:
    index, field = SCHEMA.get_field_index(name), SCHEMA.field(name)
    values = TABLE.arrow.column(name).to_pylist()
    holed = pa.array([values[0], None, *values[2:]], field.type)
    with pytest.raises(Damaged, match=f"row 1: {name} is missing"):
        SegmentTable.validated(TABLE.arrow.set_column(index, field, holed))


def test_a_missing_value_inside_a_dictionary_is_damage() -> None:
    names = pa.DictionaryArray.from_arrays(pa.array([0] * ROWS, pa.int32()), pa.array([None], pa.string()))
    with pytest.raises(Damaged, match=r"is missing|empty entry") as caught:
        SegmentTable.validated(TABLE.arrow.set_column(1, SCHEMA.field(1), names))
    assert caught.value.exit_code == 10


def test_a_segment_that_could_not_be_read_back_is_not_written() -> None:
    good = _segment(1)
    for change in ({"start": -1}, {"records": 2**63}, {"digest": "x" * 1000}):
        fields = {name: getattr(good, name) for name in good.__struct_fields__}
        with pytest.raises(Damaged):
            SegmentTable.from_segments([Segment(**{**fields, **change})])


def test_a_codec_that_does_not_exist_is_damage_and_not_the_end_of_the_process() -> None:
    """In pyarrow, asking such a column for its compression ends the interpreter."""
    footer = len(PART) - 8 - int.from_bytes(PART[-8:-4], "little")
    # In each column's details the codec (field 4, ZSTD = 6) is followed by the number of values (field 5).
    known, unknown = b"\x15\x0c\x16" + bytes([ROWS * 2]), b"\x15\x01\x16" + bytes([ROWS * 2])
    assert PART.count(known, footer) == len(SCHEMA)
    forged = PART[:footer] + PART[footer:].replace(known, unknown, 1)
    with pytest.raises(Damaged, match="unexpected compression"):
        decode(_resealed(forged), ROWS)


@pytest.fixture
def arrow_memory() -> Iterator[pa.MemoryPool]:
    """A pool that has seen nothing yet, for the length of a test."""
    usual = pa.default_memory_pool()
    counted = pa.proxy_memory_pool(usual)
    pa.set_memory_pool(counted)
    yield counted
    pa.set_memory_pool(usual)


def test_a_bomb_is_refused_before_it_is_unpacked(request: pytest.FixtureRequest) -> None:
    """A name of 64 MiB of zeros packs into a few kilobytes; nothing of it is ever allocated."""
    bomb = _written(_with("name", "\0" * (64 * 2**20)), write_statistics=False)
    assert len(bomb) < 100_000
    memory: pa.MemoryPool = request.getfixturevalue("arrow_memory")
    with pytest.raises(Damaged, match="larger than"):
        decode(bomb, ROWS)
    assert (memory.max_memory() or 0) < 2**20


def test_the_memory_meter_sees_a_decoded_part(arrow_memory: pa.MemoryPool) -> None:
    decode(PART, ROWS)
    assert arrow_memory.max_memory() > 0


def _page(plain_bytes: int, stored: bytes, values: int) -> bytes:
    """A data page with a header that claims so many plain bytes."""
    numbers = b"\x15\x00\x15" + _zigzag(plain_bytes) + b"\x15" + _zigzag(len(stored))
    return numbers + b"\x2c\x15" + _zigzag(values) + b"\x15\x00\x15\x06\x15\x06\x00\x00" + stored


def _zigzag(number: int) -> bytes:
    number, encoded = 2 * number, b""
    while number > 127:
        encoded, number = encoded + bytes([number & 127 | 128]), number >> 7
    return encoded + bytes([number])


def test_a_page_that_claims_more_than_its_blocks_can_hold_is_damage() -> None:
    """The reader would allocate what the header claims, up to a budget that large parts need."""
    frame, budget = bytes(pa.Codec("zstd").compress(bytes(400))), 2**30
    honest, forged = _page(400, frame, 50), _page(512 << 20, frame, 50)
    assert decoded_bytes(memoryview(bytes(4) + honest), [ColumnChunk(4, len(honest), 50)], budget) == 400
    with pytest.raises(Damaged, match="more bytes than it can hold"):
        decoded_bytes(memoryview(bytes(4) + forged), [ColumnChunk(4, len(forged), 50)], budget)
