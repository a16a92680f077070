"""How fast does one core read, digest and write records? Against SHA-256 of the same bytes and kafka-python.

    python -m benchmarks.record_kernels [--megabytes 32] [--rounds 5]

Batches are written by kafka-python (keys of 16 bytes, JSON-like values, no headers), uncompressed and with zstd.
Read in pieces of 8 MiB as `verify` does. CPU seconds, best of `--rounds`, all in one process. `decode` has the
CRC-32C in it; kafka-python is spared its own, which is not compiled, and has no zstd without a further library. The
first lines tell what starting costs: import, compiling into an empty cache, loading from a filled one.

The second table is about sending: `encode` and `arrow` are those steps alone, of records that are decoded;
`as it is` and `anew` are `outgoing` and `stamp` over whole logs, copied or decoded and encoded, CRC-32C included.
"""

import argparse
import hashlib
import os
import random
import struct
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from functools import partial
from typing import Any

import google_crc32c
import numpy as np
import pyarrow as pa
from kafka.record.default_records import DefaultRecordBatch, DefaultRecordBatchBuilder

from logkeep.formats.compare.digest import digest_of
from logkeep.formats.datasets.arrow import arrow_records
from logkeep.formats.kafka.batches import APPEND_TIME, Batches, BatchStretch, first_broken, walk
from logkeep.formats.kafka.encode import encode
from logkeep.formats.kafka.record_view import View
from logkeep.formats.kafka.records import RecordColumns, decode
from logkeep.formats.kafka.restore.send_batches import Outgoing, outgoing, stamp

_PIECE_BYTES = 8 << 20
_ZSTD = 4
_START = """
import time
began, cpu = time.perf_counter(), time.process_time()
from logkeep.formats.warm import warm
imported, imported_cpu = time.perf_counter(), time.process_time()
warm()
print(f"{imported - began:.1f} s import + {time.perf_counter() - imported:.1f} s first call "
      f"({time.process_time() - cpu:.1f} CPU s)")
"""


def main() -> None:
    arguments = argparse.ArgumentParser(description=__doc__)
    arguments.add_argument("--megabytes", type=int, default=32)
    arguments.add_argument("--rounds", type=int, default=5)
    chosen = arguments.parse_args()
    _starts()
    print(f"{'':22}{'decode':>10}{'digest':>10}{'both':>10}{'sha256':>10}{'kafka-py':>10}   million records per CPU s")
    for size in (100, 1000):
        for batch_bytes in (235_000, 16_000):
            plain = list(written_batches(size, batch_bytes, chosen.megabytes << 20))
            _measure(f"{size} B, {batch_bytes // 1000} kB", plain, chosen.rounds)
            _measure(f"{size} B, {batch_bytes // 1000} kB, zstd", [_packed(b) for b in plain], chosen.rounds)
    print(f"{'':22}{'encode':>10}{'arrow':>10}{'as it is':>10}{'anew':>10}   million records per CPU s, (MB per CPU s)")
    for size in (100, 1000):
        for batch_bytes in (235_000, 16_000):
            plain = list(written_batches(size, batch_bytes, chosen.megabytes << 20))
            measure_sending(f"{size} B, {batch_bytes // 1000} kB", plain, chosen.rounds)
            measure_sending(f"{size} B, {batch_bytes // 1000} kB, zstd", [_packed(b) for b in plain], chosen.rounds)


def _starts() -> None:
    """In processes of their own."""
    with tempfile.TemporaryDirectory() as cache:
        for name in ("empty cache", "filled cache"):
            environ = {**os.environ, "LOGKEEP_CACHE_DIR": cache}
            done = subprocess.run(
                [sys.executable, "-c", _START], env=environ, check=True, capture_output=True, text=True
            )
            print(f"start, {name}: {done.stdout.strip()}")


def written_batches(size: int, batch_bytes: int, total: int) -> Iterator[bytes]:
    chance, base = random.Random(1), 0
    while total > 0:
        builder: Any = DefaultRecordBatchBuilder(2, 0, 0, -1, -1, -1, batch_bytes)
        count = 0
        while builder.append(
            count, 1_700_000_000_000 + base + count, b"%016d" % (count % 999), _value(chance, size), []
        ):
            count += 1
        made = bytes(builder.build())
        yield struct.pack(">q", base) + made[8:]
        base, total = base + count, total - len(made)


def _value(chance: random.Random, size: int) -> bytes:
    text = b'{"id":%d,"name":"%x","note":"' % (chance.getrandbits(30), chance.getrandbits(64))
    return text + b"lorem ipsum " * ((size - len(text)) // 12)


def _packed(batch: bytes) -> bytes:
    """The same batch with its records in one zstd frame."""
    block: bytes = pa.Codec("zstd").compress(batch[61:], asbytes=True)
    body = struct.pack(">h", _ZSTD) + batch[23:61] + block
    return (
        batch[:8]
        + struct.pack(">i", 9 + len(body))
        + batch[12:17]
        + struct.pack(">I", google_crc32c.value(body))
        + body
    )


def _measure(label: str, batches: list[bytes], rounds: int) -> None:
    pieces = list(_pieces(batches))
    records = sum(int(found.headers["records"].sum()) for _, found in pieces)
    decoding = _best(lambda: _decode(pieces, digest=False), rounds)
    both = _best(lambda: _decode(pieces, digest=True), rounds)
    hashing = _best(lambda: [hashlib.sha256(piece).digest() for piece, _ in pieces], rounds)
    packed = label.endswith("zstd")
    peer = None if packed else _best(lambda: _kafka_python(batches), 1)
    times = (decoding, max(both - decoding, 1e-9), both, hashing, peer)
    columns = "".join(f"{records / each / 1e6:>10.2f}" if each else f"{'-':>10}" for each in times)
    beside = f"   {decoding / peer:.3f} of kafka-python's time," if peer else "  "
    print(f"{label:22}{columns}{beside} decode and digest {hashing / both:.2f} x sha256")


def measure_sending(label: str, batches: list[bytes], rounds: int) -> None:
    pieces = [BatchStretch(piece, found) for piece, found in _pieces(batches)]
    appended = [BatchStretch(p.buffer, _with_append_time(p.batches)) for p in pieces]
    records = sum(int(p.batches.headers["records"].sum()) for p in pieces)
    size = sum(len(batch) for batch in batches)
    steps = [_least(partial(_apart, pieces, work), rounds) for work in (_encode, arrow_records)]
    steps += [_best(partial(_send, some), rounds) for some in (pieces, appended)]
    columns = "".join(f"{records / each / 1e6:>10.2f}" for each in steps)
    print(f"{label:22}{columns}   ({', '.join(f'{size / each / 1e6:,.0f}' for each in steps)})")


def _with_append_time(batches: Batches) -> Batches:
    """So that each of them has to be encoded anew."""
    headers = batches.headers.copy()
    headers["attributes"] |= APPEND_TIME
    return Batches(headers, batches.positions)


def _apart(pieces: list[BatchStretch], work: Callable[[RecordColumns], object]) -> float:
    """CPU seconds of one step alone."""
    spent = 0.0
    for piece in pieces:
        for part in decode(piece.buffer, piece.batches):
            assert isinstance(part, RecordColumns)
            began = time.process_time()
            work(part)
            spent += time.process_time() - began
    return spent


def _encode(records: RecordColumns) -> None:
    borders = np.flatnonzero(np.diff(records.batch)) + 1
    encode(records, np.column_stack((np.r_[0, borders], np.r_[borders, len(records)])))


def _send(pieces: list[BatchStretch]) -> None:
    sequence = 0
    for part in outgoing(pieces, View(0, 1 << 62)):
        assert isinstance(part, Outgoing)
        stamp(part, 1, 0, sequence)
        sequence += part.total_records


def _least(measured: Callable[[], float], rounds: int) -> float:
    return min(measured() for _ in range(rounds + 1))


def _pieces(batches: list[bytes]) -> Iterator[tuple[bytes, Batches]]:
    joined = b"".join(batches)
    at = 0
    while at < len(joined):
        found = walk(joined[at : at + _PIECE_BYTES]).batches
        yield joined[at : at + found.end], found
        at += found.end


def _decode(pieces: list[tuple[bytes, Batches]], *, digest: bool) -> None:
    for piece, batches in pieces:
        assert first_broken(piece, batches) is None
        for part in decode(piece, batches):
            assert isinstance(part, RecordColumns)
            if digest:
                digest_of(part)


def _kafka_python(batches: list[bytes]) -> None:
    for batch in batches:
        reader: Any = DefaultRecordBatch(batch)
        for _ in reader:
            pass


def _best(work: Callable[[], object], rounds: int) -> float:
    times = []
    for _ in range(rounds + 1):
        began = time.process_time()
        work()
        times.append(time.process_time() - began)
    return min(times)


if __name__ == "__main__":
    main()
