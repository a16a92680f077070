"""Avro files as they are written: bytes made by hand, the schema of the seed, cuts, and what a schema cannot hold."""

import hashlib
import io
import json
from collections.abc import Iterable
from itertools import pairwise
from typing import Any

import fastavro
import pyarrow as pa
import pytest

from logkeep.formats.datasets.arrow import SCHEMA
from logkeep.formats.datasets.avro import writer as avro_writer
from logkeep.formats.datasets.avro.container import AvroCodec
from logkeep.formats.datasets.avro.schemas import AvroSchema
from logkeep.formats.datasets.avro.writer import AvroFileWriter, AvroLoss, AvroOptions
from tests.support.kafka.arrow_samples import PARTITION, TOPIC, header_rows, rows_of, sample

SEED = """
{ "namespace": "ch.tbd.kafka.backuprestore.model.avro", "type": "record", "name": "AvroKafkaRecord",
  "fields" : [
    {"name": "topic", "type": "string"},
    {"name": "partition", "type": "int"},
    {"name": "offset", "type": "long"},
    {"name": "timestamp", "type": "long"},
    {"name": "key", "type": [ "bytes", "null" ], "default": "null" },
    {"name": "value", "type": "bytes"},
    {"name": "headers", "type": [ {"type": "map", "values": "bytes"}, "null" ], "default": null}
  ] }
"""
EVERY = [AvroOptions(schema, codec) for schema in AvroSchema for codec in AvroCodec]


def written(
    batches: Iterable[pa.RecordBatch], options: AvroOptions, first: int = 10**10
) -> tuple[bytes, AvroFileWriter]:
    writer = AvroFileWriter(TOPIC, PARTITION, first, options)
    return b"".join([writer.begin(), *map(writer.add, batches), writer.end()]), writer


def one(headers: list[tuple[bytes, bytes | None]], value: bytes | None = b"v", kind: int = 0) -> pa.RecordBatch:
    row = {"offset": 0, "timestamp": 5, "timestamp_type": kind, "key": b"k", "value": value}
    return pa.RecordBatch.from_pylist([{**row, "headers": header_rows(headers)}], SCHEMA)


def test_the_bytes_of_a_file() -> None:
    """Header, one block of one record, both schemas. Made by hand from Avro's specification."""
    record = one([(b"a", None), (b"a", b"x"), (b"\xff", b"")])
    sync = hashlib.sha256(b"t\x000\x007").digest()[:16]
    prefix = "02 74" + "00" + "00" + "0a" + "00 02 6b"  # topic t, partition 0, offset 0, time 5, key k
    in_map = "00 02 02 61 02 78 00"  # map, 1 entry: a=x, end
    ordered = "00 06 02 61 02 02 61 00 02 78 02 ff 00 00 00"  # list, 3 entries: a null, a=x, ff empty, end
    faithful = bytes.fromhex(f"{prefix} 00 02 76 {in_map} 00 {ordered}")
    seed = bytes.fromhex(f"{prefix} 02 76 00 04 02 61 02 78 06 ef bf bd 00 00")
    for schema, label, body in ((AvroSchema.FAITHFUL, b"faithful-1", faithful), (AvroSchema.SEED001, b"seed001", seed)):
        writer = AvroFileWriter("t", 0, 7, AvroOptions(schema, AvroCodec.NULL))
        head = writer.begin()
        text = head[head.index(b"{") : head.rindex(b"}") + 1]
        size = bytes((len(text) * 2 & 127 | 128, len(text) * 2 >> 7))
        entries = b"\x16avro.schema" + size + text + b"\x14avro.codec\x08null\x1clogkeep.format"
        assert head == b"Obj\x01\x06" + entries + bytes((2 * len(label),)) + label + b"\x00" + sync
        assert writer.add(record) == b""
        assert writer.end() == b"\x02" + bytes((2 * len(body),)) + body + sync


def test_blocks_without_a_codec_are_not_copied() -> None:
    row = {"timestamp": 5, "timestamp_type": 0, "key": b"k", "value": bytes(avro_writer.BLOCK_BYTES), "headers": []}
    batch = pa.RecordBatch.from_pylist([{**row, "offset": i} for i in range(5)], SCHEMA)
    options = AvroOptions(codec=AvroCodec.NULL)
    pieces = list(AvroFileWriter("t", 0, 0, options).pieces(batch))
    views = [piece for piece in pieces if isinstance(piece, memoryview)]
    assert len(views) == 5
    assert len({id(view.obj) for view in views}) == 1, "they are parts of one buffer"
    assert b"".join(pieces) == AvroFileWriter("t", 0, 0, options).add(batch)


@pytest.mark.parametrize("codec", AvroCodec)
def test_the_schema_of_the_seed_is_the_schema_of_the_file(codec: AvroCodec) -> None:
    data, _ = written([sample(3)], AvroOptions(AvroSchema.SEED001, codec))
    metadata = fastavro.reader(io.BytesIO(data)).metadata
    assert json.loads(metadata["avro.schema"]) == json.loads(SEED)
    assert metadata["avro.codec"] == codec
    assert metadata["logkeep.format"] == "seed001"


@pytest.mark.parametrize("options", EVERY, ids=str)
def test_fastavro_reads_every_field(options: AvroOptions) -> None:
    batch = sample(700)
    found: Any = list(fastavro.reader(io.BytesIO(written([batch], options)[0])))
    assert {(record["topic"], record["partition"]) for record in found} == {(TOPIC, PARTITION)}
    rows = rows_of([batch])
    assert [(r["offset"], r["timestamp"], r["key"]) for r in found] == [(r[0], r[4], r[2]) for r in rows]
    if options.schema == AvroSchema.FAITHFUL:
        assert [r["value"] for r in found] == [r[3] for r in rows]
        assert [r["timestampType"] for r in found] == [r[1] for r in rows]
        ordered = [[(h["key"], h["value"]) for h in r["orderedHeaders"] or ()] for r in found]
        assert ordered == [r[5] for r in rows]
        assert all(r["orderedHeaders"] is None for r, row in zip(found, rows, strict=True) if not row[5])
    else:
        assert [r["value"] for r in found] == [r[3] or b"" for r in rows]
    assert [r["headers"] for r in found] == [_as_map(list(r[5]), options.schema) for r in rows]


def _as_map(headers: list[tuple[bytes, bytes | None]], schema: AvroSchema) -> dict[str, bytes] | None:
    last = {key.decode(errors="replace") if schema == AvroSchema.SEED001 else key: value for key, value in headers}
    if schema == AvroSchema.SEED001:
        return {str(key): value or b"" for key, value in last.items()} or None
    text = {key.decode(): value for key, value in last.items() if isinstance(key, bytes) and _is_text(key)}
    return {key: value for key, value in text.items() if value is not None} or None


def _is_text(data: bytes) -> bool:
    try:
        data.decode()
    except UnicodeDecodeError:
        return False
    return True


def test_the_seeds_schema_reads_the_faithful_one_as_long_as_no_value_is_null() -> None:
    batch = sample(300, plain=True)
    data, _ = written([batch], AvroOptions())
    found: Any = list(fastavro.reader(io.BytesIO(data), reader_schema=json.loads(SEED)))
    assert [(r["offset"], r["value"]) for r in found] == [(r[0], r[3]) for r in rows_of([batch])]
    assert set(found[0]) == {"topic", "partition", "offset", "timestamp", "key", "value", "headers"}
    tombstone, _ = written([one([], value=None)], AvroOptions())
    with pytest.raises(fastavro._read_common.SchemaResolutionError):
        list(fastavro.reader(io.BytesIO(tombstone), reader_schema=json.loads(SEED)))


@pytest.mark.parametrize("options", EVERY, ids=str)
def test_bytes_do_not_depend_on_how_records_arrive(options: AvroOptions, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(avro_writer, "BLOCK_BYTES", 2000)
    batch = sample(200)
    whole, writer = written([batch], options)
    cuts = [0, 0, 1, 2, 50, 51, 120, 200]
    parts, other = written((batch.slice(a, b - a) for a, b in pairwise(cuts)), options)
    assert parts == whole
    assert other.losses == writer.losses
    blocks: Any = list(fastavro.block_reader(io.BytesIO(whole)))
    assert len(blocks) > 10
    if options.codec == AvroCodec.NULL:
        assert all(block.bytes_.getbuffer().nbytes >= 2000 for block in blocks[:-1])


def test_losses_are_counted_by_kind() -> None:
    headers: list[tuple[bytes, bytes | None]] = [
        (b"a", None),
        (b"a", b"x"),
        (b"b", None),
        (b"\xff", b"y"),
        (b"\xfe", None),
    ]
    plain = one([(b"a", b"x"), (b"b", b"")])
    batch = pa.Table.from_batches([one(headers, None, 1), plain, one(headers)]).combine_chunks().to_batches()[0]
    _, writer = written([batch], AvroOptions(AvroSchema.SEED001))
    assert writer.losses == {
        AvroLoss.NULL_VALUES: 1,
        AvroLoss.REPEATED_HEADERS: 2,
        AvroLoss.NULL_HEADERS: 2,
        AvroLoss.HEADER_NAMES: 2,
        AvroLoss.APPEND_TIMES: 1,
    }
    assert not written([batch], AvroOptions())[1].losses
    assert not written([sample(100, plain=True)], AvroOptions(AvroSchema.SEED001))[1].losses


def test_records_with_very_many_headers() -> None:
    """Comparing each name with each would take hours here."""
    headers: list[tuple[bytes, bytes | None]] = [(b"h%d" % (i % 50_000), b"%d" % i) for i in range(100_000)]
    data, _ = written([one([(b"x", b"y")]), one(headers).slice(0)], AvroOptions(AvroSchema.SEED001))
    found: Any = list(fastavro.reader(io.BytesIO(data)))
    assert len(found[1]["headers"]) == 50_000
    assert found[1]["headers"]["h0"] == b"50000"


def test_no_records_are_a_file_too() -> None:
    data, _ = written([sample(0)], AvroOptions())
    assert list(fastavro.reader(io.BytesIO(data))) == []
