"""Throws bytes at the readers of Avro and Parquet files; prints how many files could be read and how much memory grew.

Run with NUMBA_BOUNDSCHECK=1: an index out of bounds then raises, where it would read foreign memory otherwise. Memory
is measured after some files of every kind were read: libraries and kernels are loaded then.
"""

import io
import json
import random
import resource
import sys
import zlib
from collections.abc import Callable

import fastavro
import pyarrow as pa

from logkeep.errors import Damaged, FormatTooNew, UsageError
from logkeep.formats.datasets import parquet
from logkeep.formats.datasets.avro import writer as avro_writer
from logkeep.formats.datasets.avro.container import MAGIC, AvroCodec, number, piece
from logkeep.formats.datasets.avro.reader import AvroFile
from logkeep.formats.datasets.avro.schemas import AvroSchema, schema_text
from logkeep.formats.datasets.avro.writer import AvroFileWriter, AvroOptions
from logkeep.formats.datasets.parquet import ParquetFileWriter, ParquetRecords
from tests.support.kafka.arrow_samples import PARTITION, TOPIC, rows_of, sample

_LIMITS = (-(2**63), -2, -1, 0, 1, 2**28, 2**31 - 1, 2**31, 2**32, 2**62, 2**63 - 1)
_BOMB_BYTES = 128 << 20
SYNC = bytes(16)


def _avro(chance: random.Random) -> tuple[bytes, bytes]:
    """A file, and its first bytes up to the first block."""
    options = AvroOptions(chance.choice(list(AvroSchema)), chance.choice((AvroCodec.NULL, *AvroCodec)))
    writer = AvroFileWriter(TOPIC, PARTITION, 0, options)
    head = writer.begin()
    return head + writer.add(sample(chance.randrange(6), chance.randrange(50))) + writer.end(), head


def _fastavro(chance: random.Random) -> tuple[bytes, bytes]:
    out, schema = io.BytesIO(), json.loads(schema_text(AvroSchema.SEED001))
    rows = rows_of([sample(4, chance.randrange(50), plain=True)])
    records = [
        {"topic": TOPIC, "partition": PARTITION, "offset": r[0], "timestamp": r[4], "key": r[2], "value": r[3]}
        | {"headers": {k.decode(): v for k, v in r[5]} or None}
        for r in rows
    ]
    fastavro.writer(out, schema, records, codec=chance.choice(list(AvroCodec)))
    return out.getvalue(), b""


def _parquet(chance: random.Random) -> tuple[bytes, bytes]:
    writer = ParquetFileWriter(TOPIC, PARTITION)
    return writer.begin() + writer.add(sample(chance.randrange(8), chance.randrange(50))) + writer.end(), b""


def _mutated(chance: random.Random, data: bytes, begin: int) -> bytes:
    """Most changes are behind the header: what is wrong there is found at once."""
    changed = bytearray(data)
    for _ in range(chance.choice((0, 1, 1, 1, 2, 4))):
        at = chance.randrange(begin if chance.random() < 0.9 else 0, len(changed) + 1) if len(changed) > begin else 0
        kind = chance.randrange(5)
        if kind == 0:
            changed[at : at + 1] = bytes((chance.choice((0, 1, 127, 128, 255)),))
        elif kind == 1:
            changed[at : at + chance.randrange(9)] = chance.randbytes(chance.randrange(9))
        elif kind == 2:
            del changed[at:]
        elif kind == 3:
            changed[at : at + 1] = number(chance.choice((*_LIMITS, len(data) - at)))
        elif changed:
            changed[at % len(changed)] ^= 1 << chance.randrange(8)
    return bytes(changed)


def _resealed(chance: random.Random, data: bytes, head: bytes) -> bytes:
    """A file with one null block of changed records whose size and marker are right: it gets as far as the kernels."""
    if not head or b"avro.codec\x08null" not in head or len(data) < len(head) + 20:
        return data
    sync, rest = head[-16:], data[len(head) :]
    at = 1 + next(i for i, byte in enumerate(rest[1:]) if byte < 128) + 1
    return head + rest[:1] + piece(_mutated(chance, rest[at:-16], 0)) + sync


def fuzz(reader: str, count: int, seed: int) -> int:
    """How many files could be read by this reader."""
    chance, readable = random.Random(seed), 0
    for _ in range(count):
        data, head = chance.choice(_MAKERS[reader])(chance)
        change = _resealed(chance, data, head) if chance.random() < 0.5 else data
        readable += can_read(_mutated(chance, change, len(head)) if change is data else change)
    return readable


_MAKERS = {"avro": (_avro, _avro, _avro, _fastavro), "parquet": (_parquet,)}


def can_read(data: bytes) -> bool:
    opened = ParquetRecords if data[:4] == parquet.MAGIC else AvroFile
    try:
        for batch in opened(io.BytesIO(data)).records():
            batch.validate(full=True)
    except (Damaged, UsageError, FormatTooNew):
        return False
    return True


def bombs() -> list[bytes]:
    """Few bytes that unpack to very many."""
    zeros = bytes(_BOMB_BYTES)
    begin = piece(b"t") + number(0) + number(1) + number(1) + b"\x02"
    packers: dict[str, Callable[[bytes], bytes]] = {
        "deflate": lambda data: zlib.compress(data, wbits=-15),
        "zstandard": lambda data: pa.Codec("zstd").compress(data, asbytes=True),
        "snappy": lambda data: number(4 * len(data))[:5] + bytes(404),
    }
    found = []
    for codec, pack in packers.items():
        metadata = {"avro.schema": schema_text(AvroSchema.SEED001), "avro.codec": codec}
        head = MAGIC + number(2) + b"".join(piece(k.encode()) + piece(v.encode()) for k, v in metadata.items())
        # Records without end, a value that claims 2 GiB, and bytes after the last record.
        for count, plain in ((2**40, zeros), (1, begin + number(2**31 - 1) + zeros), (1, begin + b"\x02v\x02" + zeros)):
            found.append(head + b"\x00" + SYNC + number(count) + piece(pack(plain)) + SYNC)
    return found


def peak_mib() -> int:
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss >> 10


if __name__ == "__main__":
    avro_writer.BLOCK_BYTES = 600
    fuzz(sys.argv[1], 60, 1)
    before = peak_mib()
    readable = fuzz(sys.argv[1], int(sys.argv[2]), int(sys.argv[3]))
    print(readable, peak_mib() - before)
