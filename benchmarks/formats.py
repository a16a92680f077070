"""How fast does one core write and read records as Avro, Parquet and kafka-backup-v1? Ratios to libraries, in one run.

    python -m benchmarks.formats [--megabytes 16] [--rounds 5]

Records have keys of 16 bytes, values of about 100 B and 1 kB, and no headers; they are Arrow columns, in batches of
8,192. Values are JSON: `fields` has many fields of random content, which deflate makes 2 to 4 times smaller; `text`
repeats the same words, which makes it 5 to 25 times smaller, so that unpacking costs hardly more than copying. CPU
seconds of this process, best of `--rounds`; the two sides of a ratio take turns. A ratio above 1 means that ours is
faster.

    avro null      against fastavro, which writes from dictionaries that are ready and reads into dictionaries
    avro deflate   against zlib alone on the same blocks, at the same level; `at most`: unpacking with ISA-L and copying
                   twice, into a window and into a column, without looking for records
    parquet        against pyarrow alone: the same table, written with the same settings; the same file, read
    v1             the writer of datasets into a directory against SHA-256 and a plain write of the same bytes
"""

import argparse
import hashlib
import io
import json
import random
import shutil
import tempfile
import time
import zlib
from collections.abc import Callable
from itertools import product
from pathlib import Path
from typing import Any

import fastavro
import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
from isal import isal_zlib

from logkeep.formats.datasets.arrow import SCHEMA
from logkeep.formats.datasets.avro.blocks import blocks, read_header
from logkeep.formats.datasets.avro.container import DEFLATE_LEVEL, AvroCodec
from logkeep.formats.datasets.avro.reader import AvroFile
from logkeep.formats.datasets.avro.schemas import AvroSchema, schema_text
from logkeep.formats.datasets.avro.writer import AvroFileWriter, AvroOptions
from logkeep.formats.datasets.parquet import ParquetFileWriter, ParquetRecords
from logkeep.formats.jit import compile_from_now_on
from logkeep.kafka.datasets.formats import DatasetOptions
from logkeep.kafka.datasets.kafka_backup_v1 import KafkaBackupV1
from logkeep.kafka.datasets.target import DatasetTarget
from logkeep.kafka.record.dataset_document import DatasetLog
from logkeep.store.local.store import LocalStore

_TOPIC = "orders"
_TOGETHER = 8192
_WINDOW_BYTES = 2 << 20
_FASTAVRO_RECORDS = 10_000
"""Of which its speed is measured: it takes long."""
_WORDS = [f"{number * 7919 % 99991:x}" for number in range(2000)]


def main() -> None:
    options = argparse.ArgumentParser(description=__doc__)
    options.add_argument("--megabytes", type=int, default=16)
    options.add_argument("--rounds", type=int, default=5)
    given = options.parse_args()
    compile_from_now_on()
    print(f"{'':32}{'M rec/s':>9}{'other':>9}{'ratio':>8}")
    for value, size in product((_fields, _text), (100, 1000)):
        batch = _records(value, size, given.megabytes * 1_000_000 // (size + 40))
        parts = [batch.slice(at, _TOGETHER) for at in range(0, batch.num_rows, _TOGETHER)]
        label = f"{value.__name__[1:]} {size}"
        _avro(label, parts, given.rounds)
        _deflate(label, parts, given.rounds)
        _parquet(label, parts, given.rounds)
        _v1(label, parts, given.rounds)


def _records(value: Callable[[random.Random, int], bytes], size: int, count: int) -> pa.RecordBatch:
    chance = random.Random(1)
    columns: list[Any] = [list(range(count)), [1_700_000_000_000 + i for i in range(count)], [0] * count]
    columns += [[b"%016d" % (i % 999) for i in range(count)], [value(chance, size) for _ in range(count)]]
    columns += [[[]] * count]
    arrays = [pa.array(column, field.type) for column, field in zip(columns, SCHEMA, strict=True)]
    return pa.RecordBatch.from_arrays(arrays, schema=SCHEMA)


def _fields(chance: random.Random, size: int) -> bytes:
    """Numbers, times, words and a few states, under names that all records have."""
    fields: dict[str, object] = {"id": chance.getrandbits(31), "state": chance.choice(("new", "paid", "sent"))}
    while len(text := json.dumps(fields)) < size - 20:
        number = len(fields)
        second = chance.getrandbits(24)
        fields[f"field{number}"] = (
            chance.choice(_WORDS) + " " + chance.choice(_WORDS),
            f"2026-11-{second % 28 + 1:02}T{second % 24:02}:{second % 60:02}:{second % 59:02}.{second % 1000:03}Z",
            round(chance.random() * 1000, 2),
            chance.getrandbits(28),
        )[number % 4]
    return text.encode()


def _text(chance: random.Random, size: int) -> bytes:
    text = b'{"id":%d,"name":"%x","note":"' % (chance.getrandbits(30), chance.getrandbits(64))
    return text + b"lorem ipsum " * ((size - len(text)) // 12)


def _avro_file(parts: list[pa.RecordBatch], codec: AvroCodec) -> bytes:
    writer = AvroFileWriter(_TOPIC, 0, 0, AvroOptions(codec=codec))
    return b"".join([writer.begin(), *map(writer.add, parts), writer.end()])


def _avro(label: str, parts: list[pa.RecordBatch], rounds: int) -> None:
    data = _avro_file(parts, AvroCodec.NULL)
    some = data if _count(parts) <= _FASTAVRO_RECORDS else _avro_file([parts[0]], AvroCodec.NULL)
    records: Any = list(fastavro.reader(io.BytesIO(some)))
    schema = fastavro.parse_schema(json.loads(schema_text(AvroSchema.FAITHFUL)))

    def their_write() -> None:
        fastavro.writer(io.BytesIO(), schema, records, codec="null")

    ours, theirs = _both(lambda: _avro_file(parts, AvroCodec.NULL), their_write, rounds)
    _row(f"avro null write {label}", _count(parts) / ours, len(records) / theirs)
    ours, theirs = _both(lambda: _read_avro(data), lambda: list(fastavro.reader(io.BytesIO(some))), rounds)
    _row(f"avro null read {label}", _count(parts) / ours, len(records) / theirs)


def _read_avro(data: bytes) -> int:
    return sum(batch.num_rows for batch in AvroFile(io.BytesIO(data)).records())


def _deflate(label: str, parts: list[pa.RecordBatch], rounds: int) -> None:
    data, plain = _avro_file(parts, AvroCodec.DEFLATE), _blocks(_avro_file(parts, AvroCodec.NULL))
    packed = _blocks(data)
    ours, theirs = _both(
        lambda: _avro_file(parts, AvroCodec.DEFLATE),
        lambda: [zlib.compress(block, DEFLATE_LEVEL, wbits=-15) for block in plain],
        rounds,
    )
    _row(f"avro deflate write {label}", _count(parts) / ours, _count(parts) / theirs)
    ours, theirs = _both(
        lambda: _read_avro(data), lambda: [zlib.decompress(block, wbits=-15) for block in packed], rounds
    )
    _row(f"avro deflate read {label}", _count(parts) / ours, _count(parts) / theirs)
    least, theirs = _both(
        lambda: _unpacked_and_copied(packed), lambda: [zlib.decompress(block, wbits=-15) for block in packed], rounds
    )
    _row(f"  at most {label}", _count(parts) / least, _count(parts) / theirs)


def _unpacked_and_copied(packed: list[bytes]) -> None:
    """What no reader can save that collects blocks and fills columns from them."""
    window, column = np.empty(_WINDOW_BYTES, np.uint8), np.empty(_WINDOW_BYTES, np.uint8)
    at = 0
    for block in packed:
        plain = isal_zlib.decompress(block, wbits=-15)
        if at + len(plain) > len(window):
            column[:at] = window[:at]
            at = 0
        window[at : at + len(plain)] = np.frombuffer(plain, np.uint8)
        at += len(plain)
    column[:at] = window[:at]


def _blocks(data: bytes) -> list[bytes]:
    header = read_header(io.BytesIO(data))
    return [data[b.data_at : b.data_at + b.size] for b in blocks(io.BytesIO(data), header, header.size)]


def _parquet_file(parts: list[pa.RecordBatch]) -> bytes:
    writer = ParquetFileWriter(_TOPIC, 0)
    return b"".join([writer.begin(), *map(writer.add, parts), writer.end()])


def _parquet(label: str, parts: list[pa.RecordBatch], rounds: int) -> None:
    data = _parquet_file(parts)
    table = pq.read_table(io.BytesIO(data), use_threads=False).combine_chunks()

    def their_write() -> None:
        pq.write_table(
            table,
            pa.BufferOutputStream(),
            compression="zstd",
            compression_level=1,
            use_dictionary=["topic", "partition", "timestampType"],
            write_page_index=True,
        )

    ours, theirs = _both(lambda: _parquet_file(parts), their_write, rounds)
    _row(f"parquet write {label}", _count(parts) / ours, _count(parts) / theirs)
    ours, theirs = _both(
        lambda: sum(batch.num_rows for batch in ParquetRecords(io.BytesIO(data)).records()),
        lambda: pq.read_table(io.BytesIO(data), use_threads=False),
        rounds,
    )
    _row(f"parquet read {label}", _count(parts) / ours, _count(parts) / theirs)


def _v1(label: str, parts: list[pa.RecordBatch], rounds: int) -> None:
    with tempfile.TemporaryDirectory() as folder:
        root = Path(folder, "dataset")
        _write_v1(root, parts)
        files = [path.read_bytes() for path in root.rglob("*") if path.is_file()]

        def plain() -> None:
            for number, data in enumerate(files):
                hashlib.sha256(data).digest()
                Path(folder, str(number)).write_bytes(data)

        ours, theirs = _both(lambda: _write_v1(root, parts), plain, rounds)
    _row(f"v1 write {label}", _count(parts) / ours, _count(parts) / theirs)


def _write_v1(root: Path, parts: list[pa.RecordBatch]) -> None:
    shutil.rmtree(root, ignore_errors=True)
    root.mkdir()
    writer = KafkaBackupV1().writer(
        DatasetTarget(LocalStore(root), root), DatasetLog(_TOPIC, 0), DatasetOptions(1 << 30)
    )
    for part in parts:
        writer.write(part)
    writer.finish()


def _count(parts: list[pa.RecordBatch]) -> int:
    return sum(part.num_rows for part in parts)


def _both(ours: Callable[[], object], theirs: Callable[[], object], rounds: int) -> tuple[float, float]:
    """The least CPU seconds of each; they take turns, so that a busy machine slows down both."""
    best = [float("inf")] * 2
    for _ in range(rounds + 1):
        for number, work in enumerate((ours, theirs)):
            began = time.process_time()
            work()
            best[number] = min(best[number], time.process_time() - began)
    return best[0], best[1]


def _row(name: str, ours: float, theirs: float) -> None:
    print(f"{name:32}{ours / 1e6:>9.2f}{theirs / 1e6:>9.2f}{ours / theirs:>8.2f}", flush=True)


if __name__ == "__main__":
    main()
