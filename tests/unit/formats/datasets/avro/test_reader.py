"""Avro files as they are read: ours, fastavro's in both known layouts, torn, lying and hostile ones."""

import io
import json
import random
import struct
import zlib
from typing import Any

import fastavro
import pyarrow as pa
import pytest

from logkeep.errors import Damaged, FormatTooNew, UsageError
from logkeep.formats.datasets.avro import writer as avro_writer
from logkeep.formats.datasets.avro.blocks import INFLATED_BYTES, PIECE_BYTES, AvroBlock, plain_pieces
from logkeep.formats.datasets.avro.container import MAGIC, AvroCodec, number, piece
from logkeep.formats.datasets.avro.reader import AvroFile
from logkeep.formats.datasets.avro.schemas import AvroSchema, schema_text
from logkeep.formats.datasets.avro.writer import AvroFileWriter, AvroOptions
from tests.support.kafka.arrow_samples import PARTITION, TOPIC, rows_of, sample

SYNC = b"0123456789abcdef"
PLAIN = AvroOptions(codec=AvroCodec.NULL)
TRIVADIS: Any = json.loads(schema_text(AvroSchema.SEED001))
TRIVADIS["fields"][0]["type"] = {"type": "string", "avro.java.string": "String"}
TRIVADIS["fields"][5] |= {"type": ["bytes", "null"], "default": "null"}
TRIVADIS["fields"][6] |= {"type": [{"type": "map", "values": "bytes", "avro.java.string": "String"}, "null"]}
"""What the tool itself writes; its code's default of `headers` is the text "null", which fastavro does not accept."""


def written(batch: pa.RecordBatch, options: AvroOptions, first: int = 10**10) -> bytes:
    writer = AvroFileWriter(TOPIC, PARTITION, first, options)
    return b"".join((writer.begin(), writer.add(batch), writer.end()))


def read(data: bytes) -> list[pa.RecordBatch]:
    found = list(AvroFile(io.BytesIO(data), "a.data").records())
    for batch in found:
        batch.validate(full=True)
    return found


def handmade(*blocks: tuple[int, bytes], schema: object = None, codec: bytes = b"null", label: bytes = b"") -> bytes:
    text = json.dumps(schema).encode() if schema is not None else schema_text(AvroSchema.SEED001).encode()
    metadata = {b"avro.schema": text, b"avro.codec": codec, b"logkeep.format": label}
    head = MAGIC + number(3) + b"".join(piece(k) + piece(v) for k, v in metadata.items()) + number(0) + SYNC
    return head + b"".join(number(count) + piece(data) + SYNC for count, data in blocks)


def plain_record(offset: int, topic: bytes = b"t", partition: int = 0, rest: bytes = b"\x00\x02k\x02v\x02") -> bytes:
    return piece(topic) + number(partition) + number(offset) + number(1) + rest


@pytest.mark.parametrize("codec", AvroCodec)
def test_ours_come_back_whole(codec: AvroCodec, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(avro_writer, "BLOCK_BYTES", 3000)
    batch = sample(900)
    data = written(batch, AvroOptions(codec=codec))
    file = AvroFile(io.BytesIO(data))
    assert rows_of(list(file.records())) == rows_of([batch])
    assert (file.topic, file.partition, file.header.label) == (TOPIC, PARTITION, "faithful-1")
    plain = sample(300, plain=True)
    assert rows_of(read(written(plain, AvroOptions(AvroSchema.SEED001, codec)))) == rows_of([plain])


@pytest.mark.parametrize("codec", AvroCodec)
@pytest.mark.parametrize("schema", [json.loads(schema_text(AvroSchema.SEED001)), TRIVADIS], ids=["seed", "real"])
def test_files_of_fastavro(codec: AvroCodec, schema: Any) -> None:
    batch = sample(400, plain=True)
    out = io.BytesIO()
    records = [
        {"topic": TOPIC, "partition": PARTITION, "offset": r[0], "timestamp": r[4], "key": r[2], "value": r[3]}
        | {"headers": {k.decode(): v for k, v in r[5]} or None}
        for r in rows_of([batch])
    ]
    fastavro.writer(out, schema, records, codec=codec, sync_interval=1000)
    assert rows_of(read(out.getvalue())) == rows_of([batch])


def test_fields_are_found_by_their_names() -> None:
    """Another order, null as first branch, headers without union, maps in blocks that state their size."""
    fields = [("value", ["null", "bytes"]), ("headers", {"type": "map", "values": "bytes"}), ("offset", "long")]
    fields += [("key", "bytes"), ("timestamp", "long"), ("partition", "int"), ("topic", "string")]
    schema = {"type": "record", "name": "R", "fields": [{"name": n, "type": t} for n, t in fields]}
    entries = number(-2) + number(8) + piece(b"a") + piece(b"x") + piece(b"b") + piece(b"") + number(1) + piece(b"c")
    tail = number(7) + piece(b"k") + number(9) + number(4) + piece(b"t")
    record = number(1) + piece(b"v") + entries + piece(b"z") + number(0) + tail
    empty = number(0) + number(0) + number(8) + piece(b"") + number(-1) + number(4) + piece(b"t")
    headers = [(b"a", b"x"), (b"b", b""), (b"c", b"z")]
    found = rows_of(read(handmade((2, record + empty), schema=schema)))
    assert found == [(7, 0, b"k", b"v", 9, headers), (8, 0, b"", None, -1, [])]


def test_other_schemas_are_refused() -> None:
    good: Any = json.loads(schema_text(AvroSchema.FAITHFUL))
    for change, said in (
        ({"fields": [*good["fields"], {"name": "extra", "type": "int"}]}, "unknown field 'extra'"),
        ({"fields": good["fields"][1:]}, "lacks the field 'topic'"),
        ({"fields": [*good["fields"], good["fields"][0]]}, "a field twice"),
        ({"type": "enum"}, "is not a record"),
        ({"fields": [{"name": "offset", "type": "int"}, *good["fields"][:2], *good["fields"][3:]]}, "'offset' has the"),
        (
            {"fields": [*good["fields"][:6], {"name": "headers", "type": {"type": "map", "values": "string"}}]},
            "'headers'",
        ),
        ({"fields": [*good["fields"][:8], {"name": "orderedHeaders", "type": "bytes"}]}, "'orderedHeaders'"),
        ({"fields": 5}, "no schema of a record"),
    ):
        with pytest.raises(UsageError, match=said):
            AvroFile(io.BytesIO(handmade(schema={**good, **change})))
    wrong: list[Any] = [[], "bytes", None, 5, {"type": "record"}]
    for text in wrong:
        with pytest.raises(UsageError):
            AvroFile(io.BytesIO(handmade(schema=[text])))


def test_what_is_no_avro_file() -> None:
    for data in (b"", b"PK\x03\x04", b"Obj\x02" + bytes(99), b"text"):
        with pytest.raises(UsageError, match="not an Avro file"):
            AvroFile(io.BytesIO(data))
    with pytest.raises(UsageError, match="codec is 'bzip2'"):
        AvroFile(io.BytesIO(handmade(codec=b"bzip2")))
    with pytest.raises(FormatTooNew, match="faithful-2"):
        AvroFile(io.BytesIO(handmade(label=b"faithful-2")))


@pytest.mark.parametrize("codec", AvroCodec)
def test_a_file_cut_at_any_byte(codec: AvroCodec, monkeypatch: pytest.MonkeyPatch) -> None:
    """Records of whole blocks, then an error; without an error only where a block ends."""
    monkeypatch.setattr(avro_writer, "BLOCK_BYTES", 150)
    batch = sample(9, seed=5)
    data = written(batch, AvroOptions(codec=codec))
    rows, ends, complete = rows_of([batch]), 0, set[int]()
    for size in range(len(data) + 1):
        seen: list[pa.RecordBatch] = []
        error = _read_into(seen, data[:size])
        found = rows_of(seen)
        if error is None:
            ends += 1
            complete.add(len(found))
        else:
            assert size < 4 or "ends inside" in error
        assert found == rows[: len(found)]
    assert ends == len(list(fastavro.block_reader(io.BytesIO(data)))) + 1
    assert len(rows) in complete


def _read_into(seen: list[pa.RecordBatch], data: bytes) -> str | None:
    """The error, if there is one."""
    try:
        seen.extend(AvroFile(io.BytesIO(data)).records())
    except (Damaged, UsageError) as error:
        return str(error)
    return None


def test_blocks_that_lie() -> None:
    good, other = plain_record(1), plain_record(2)
    for blocks, said in (
        ([(3, good + other)], "longer than its block"),
        ([(1, good + other)], "bytes are left after the last record"),
        ([(0, good)], "bytes are left"),
        ([(1 << 31, good + other)], "longer than its block"),
        ([(1 << 62, good)], "longer than its block"),
        ([(-1, good)], "negative count"),
        ([(2, other + good)], "offsets do not rise"),
        ([(1, good), (1, good)], "offsets do not rise"),
        ([(1, plain_record(-1))], "offsets do not rise"),
        ([(2, good + plain_record(2, topic=b"u"))], "another topic"),
        ([(2, good + plain_record(2, partition=1))], "another topic"),
        ([(1, plain_record(1, partition=-1))], "has the partition -1"),
        ([(1, plain_record(1, topic=b"\xff"))], "topic of the first record is not text"),
        ([(1, plain_record(1, rest=b"\x04\x02k\x02v\x02"))], r"malformed \(key\)"),
        ([(1, plain_record(1, rest=b"\x02" + number(2**31) + b"v\x02"))], r"malformed \(value\)"),
        ([(1, plain_record(1, rest=b"\x02" + number(-1) + b"v\x02"))], r"malformed \(value\)"),
        ([(1, plain_record(1, rest=b"\x02" + number(1 << 20) + b"v\x02"))], r"longer than its block \(value\)"),
        ([(1, plain_record(1, rest=b"\x02\x02v\x00" + number(2**31)))], r"malformed \(headers\)"),
        ([(1, plain_record(1, rest=b"\x02\x02v\x00" + number(-(2**63)) + number(0)))], r"malformed \(headers\)"),
        ([(1, plain_record(1, rest=b"\x02\x02v\x00" + number(9)))], r"longer than its block \(headers\)"),
        ([(1, piece(b"t") + b"\xff" * 11 + bytes(40))], r"malformed \(partition\)"),
    ):
        with pytest.raises(Damaged, match=said) as caught:
            read(handmade(*blocks))
        assert "byte" in str(caught.value) or "first record" in str(caught.value)
    for tail in (number(5) + number(2**31) + good, number(1) + number(-5) + bytes(30), b"\xff" * 40):
        with pytest.raises(Damaged, match="block at byte"):
            read(handmade((1, good)) + tail)
    wrong = handmade((1, good))[:-1] + b"!"
    with pytest.raises(Damaged, match="not followed by the sync marker"):
        read(wrong)


@pytest.mark.parametrize("codec", [AvroCodec.DEFLATE, AvroCodec.SNAPPY, AvroCodec.ZSTANDARD])
def test_damaged_compression(codec: AvroCodec) -> None:
    data = written(sample(50), AvroOptions(codec=codec))
    batches: list[pa.RecordBatch] = []
    for at in range(len(data) - 400, len(data) - 20, 7):
        error = _read_into(batches, data[:at] + bytes((data[at] ^ 0x55,)) + data[at + 1 :])
        assert error is None or "block at byte" in error
    assert not batches or codec != AvroCodec.SNAPPY, "only snappy has a checksum"
    packed = zlib.compress(plain_record(1), wbits=-15)
    for wrong in (b"", b"\x01", bytes(30), packed + b"12345", packed[:-2]):
        with pytest.raises(Damaged, match="cannot be unpacked"):
            read(handmade((1, wrong), codec=codec.encode()))
    lying = bytes.fromhex("ffffffff07") + b"x" + struct.pack(">I", 0)
    with pytest.raises(Damaged, match="cannot be unpacked"):
        read(handmade((1, lying), codec=codec.encode()))


def test_deflated_blocks_around_the_size_of_a_piece() -> None:
    """Whole blocks, each piece of a limited size; what fastavro leaves of zlib's checksum behind them is no damage."""
    for size in (1, INFLATED_BYTES - 1, INFLATED_BYTES, INFLATED_BYTES + 1, 3 * INFLATED_BYTES, PIECE_BYTES * 5):
        plain = random.Random(size).randbytes(size // 2) + bytes(size - size // 2)
        for tail in (b"", b"1", b"1234"):
            packed = zlib.compress(plain, wbits=-15) + tail
            pieces = list(plain_pieces(io.BytesIO(packed), AvroCodec.DEFLATE, AvroBlock(0, 1, 0, len(packed))))
            assert b"".join(piece for piece in pieces if isinstance(piece, bytes)) == plain
            assert all(0 < len(piece) <= INFLATED_BYTES for piece in pieces)
            assert len(pieces) == 1 or size > INFLATED_BYTES


def test_a_record_of_five_megabytes_and_blocks_of_others() -> None:
    """Larger than a piece: the window grows, in every codec, and becomes small again."""
    value = bytes(range(256)) * 20_000
    rows = [plain_record(i, rest=b"\x02" + piece(value if i == 5 else b"v") + b"\x02") for i in range(9)]
    for codec in AvroCodec:
        out = io.BytesIO()
        records = [
            {"topic": "t", "partition": 0, "offset": i, "timestamp": 1, "key": None, "headers": None} for i in range(9)
        ]
        values = [{"value": value if i == 5 else b"v"} for i in range(9)]
        schema = json.loads(schema_text(AvroSchema.SEED001))
        fastavro.writer(out, schema, [a | b for a, b in zip(records, values, strict=True)], codec=codec)
        found = rows_of(read(out.getvalue()))
        assert [len(r[3]) for r in found if isinstance(r[3], bytes)] == [len(value) if i == 5 else 1 for i in range(9)]
    assert rows_of(read(handmade((9, b"".join(rows))))) == found
