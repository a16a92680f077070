"""No number in stored bytes makes a reader use more memory than those bytes can need.

Every four bytes of an object of each format are replaced by a large number, big-endian, little-endian and as a varint,
so every length, size and count becomes large once. Checksums that a reader checks first are set right again. The peak
of allocated bytes stays below a fixed amount of working memory: the objects are some hundred bytes.
"""

import gzip
import io
import struct
import tracemalloc
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from typing import BinaryIO, cast

import pyarrow as pa
import pytest

from logkeep.errors import Damaged, FormatTooNew
from logkeep.formats.columns import checksum
from logkeep.formats.jit import compile_from_now_on
from logkeep.formats.kafka import batch_index, plain_records, records
from logkeep.formats.kafka.batches import CODEC_MASK, walk
from logkeep.formats.run_map import file_format as run_maps
from logkeep.formats.run_map.runs import RunMapBuilder
from logkeep.formats.zookeeper import compression, transactions
from logkeep.formats.zookeeper.names import SnapshotPacking
from logkeep.formats.zookeeper.snapshot import SnapshotReader
from logkeep.formats.zookeeper.snapshot_writer import exact_snapshot
from logkeep.formats.zookeeper.transactions import Acl, Create, CreateSession, Transaction
from logkeep.formats.zookeeper.txnlog import scan
from logkeep.formats.zstd_frames import frame_end, frame_head, opened, packed_frame
from logkeep.zookeeper.model.tree import new_tree, rows_of
from tests.support.kafka.slow_batches import PACKERS
from tests.support.kafka.slow_records import Slow, batch_of
from tests.support.zookeeper import encoding
from tests.support.zookeeper.snappy_frames import snapped

WORKING_BYTES = 24 << 20
"""Windows and columns of fixed size."""
LARGE = (struct.pack(">i", 0x0FFF_FFF0), struct.pack("<i", 0x0FFF_FFF0), b"\xf0\xff\xff\x7f")
"""Just below 256 MiB, where many limits are: big-endian, little-endian, and as a varint."""
RECORDS = [Slow(delta, delta, b"key-%d" % delta, b"v" * 20, ((b"h", b"x"),)) for delta in range(2)]


@contextmanager
def _counted(usual: pa.MemoryPool) -> Iterator[Callable[[], int]]:
    """The most bytes at a time, of Python, numpy and Arrow."""
    arrow = pa.proxy_memory_pool(usual)
    pa.set_memory_pool(arrow)
    tracemalloc.start()
    try:
        yield lambda: tracemalloc.get_traced_memory()[1] + (arrow.max_memory() or 0)
    finally:
        tracemalloc.stop()
        pa.set_memory_pool(usual)


def _forged(data: bytes) -> Iterator[bytes]:
    for at in range(len(data) - 3):
        for pattern in LARGE:
            yield data[:at] + pattern + data[at + 4 :]


def _decoded(data: bytes) -> None:
    batches = walk(data).batches
    for _ in records.decode(data, batches):
        continue


def _plain(data: bytes) -> None:
    headers = walk(data).batches.headers
    for attributes, count in zip(headers["attributes"].tolist(), headers["records"].tolist(), strict=True):
        for _ in plain_records.records_of(data, 0, attributes & CODEC_MASK, count):
            continue


def _with_checksum(data: bytes) -> bytes:
    """Of a batch index or a run map."""
    (count,) = struct.unpack_from("<I", data, 8)
    return data[:12] + struct.pack("<I", checksum(data[:8], count, data[16:])) + data[16:]


def _index() -> bytes:
    log = b"".join(batch_of(base, RECORDS) for base in range(0, 40, 4))
    return batch_index.encode(batch_index.index_of(walk(log).batches))


def _run_map() -> bytes:
    builder = RunMapBuilder(0, 100, 7)
    for at in range(0, 100, 10):
        builder.append(at, 5)
    return run_maps.bundle({run_maps.Route("orders", 0, "orders-2", 1): run_maps.encode(builder.finish())})


def _frame(data: bytes) -> None:
    view = memoryview(data)
    head = frame_head(view, "a frame")
    end = frame_end(view, head, "a frame")
    if end is not None:
        opened(view[:end], head.content_bytes, "a frame")


def _tree() -> bytes:
    tree = new_tree(with_config=False)
    tree.apply(Transaction(7, 1, 3, 1_700_000_000_000, -10, CreateSession(30_000), None))
    acls = (Acl(31, b"digest", b"shop:abc"),)
    tree.apply(Transaction(7, 1, 4, 1_700_000_000_000, 1, Create(b"/lock", b"x" * 20, acls, True, 1), None))
    found, rows = rows_of(tree)
    return b"".join(exact_snapshot(tree.sessions, found, list(rows), zxid=4, digest=tree.digest))


def _snapshot(packing: SnapshotPacking) -> Callable[[bytes], None]:
    def read(data: bytes) -> None:
        with compression.opened(cast("BinaryIO", io.BytesIO(data)), packing) as plain:
            reader = SnapshotReader(plain)
            reader.sessions()
            reader.acls()
            for _ in reader.nodes():
                continue
            reader.ending()

    return read


def _scanned(data: bytes) -> None:
    scan(cast("BinaryIO", io.BytesIO(data)), chunk_bytes=64 << 10)


BATCHES = {
    name: batch_of(0, RECORDS, PACKERS[codec](b"".join(r.encode() for r in RECORDS)), attributes=codec)
    for codec, name in enumerate(("plain", "gzip", "snappy", "lz4", "zstd"))
}
BATCHES["framed snappy"] = batch_of(0, RECORDS, snapped(b"".join(r.encode() for r in RECORDS)), attributes=2)
CREATED = Transaction(7, 1, 4, 5, 1, Create(b"/a", b"data", (Acl(31, b"world", b"anyone"),), False, 1), None)
OBJECTS: dict[str, tuple[bytes, Callable[[bytes], object]]] = {
    **{f"records, {name}": (data, _decoded) for name, data in BATCHES.items()},
    **{f"records of internal topics, {name}": (data, _plain) for name, data in BATCHES.items()},
    "batch index": (_index(), lambda data: batch_index.decode(_with_checksum(data))),
    "run maps": (_run_map(), lambda data: run_maps.decode_all(_with_checksum(data))),
    "zstd frame": (packed_frame(memoryview(batch_of(0, RECORDS))), _frame),
    "transaction": (encoding.body(CREATED), transactions.decode),
    "transaction log": (encoding.log_of([encoding.set_data(zxid) for zxid in (1, 2)], 64), _scanned),
    "snapshot": (_tree(), _snapshot(SnapshotPacking.PLAIN)),
    "snapshot, gzip": (gzip.compress(_tree()), _snapshot(SnapshotPacking.GZIP)),
    "snapshot, snappy": (snapped(_tree()), _snapshot(SnapshotPacking.SNAPPY)),
}


@pytest.mark.parametrize("name", OBJECTS)
def test_large_numbers_use_no_more_memory_than_the_bytes_need(name: str) -> None:
    compile_from_now_on()
    data, read = OBJECTS[name]
    read(data)  # as it is, it can be read; and what is compiled or loaded late is there
    usual = pa.default_memory_pool()
    for forged in _forged(data):
        with _counted(usual) as most:
            with suppress(Damaged, FormatTooNew):
                read(forged)
            assert most() < WORKING_BYTES, forged.hex()


def test_what_compresses_best_is_still_read() -> None:
    """The ratio that is the limit for a block of snappy is its own."""
    plain, codec = Slow(0, 0, b"k", bytes(1 << 20)).encode(), 2
    data = batch_of(0, [Slow()], PACKERS[codec](plain), attributes=codec)
    assert len(data) * 20 < len(plain)
    (found,) = records.decode(data, walk(data).batches)
    assert isinstance(found, records.RecordColumns)
    (same,) = plain_records.records_of(data, 0, codec, 1)
    assert found.value(0) == same.value == bytes(1 << 20)
