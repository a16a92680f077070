"""How fast does a stream reach an S3 server? ObjectStore.open_new beside a plain boto3 upload of as many bytes.

    python -m benchmarks.s3_stream [MIB] [OBJECTS]

A real server (SeaweedFS) on this host, which shares its cores; so read the ratios. Each way sends the same bytes in as
many objects; rounds are interleaved and the medians compared. `boto3` is `upload_fileobj` as it comes: parts of 8 MiB,
ten threads. `stream` is the store's stream alone, `hashed` with the SHA-256 that a backup computes of each piece, and
`pieces` the same in the small pieces that a backup of many partitions writes.
"""

import hashlib
import io
import os
import statistics
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path

from logkeep.model.time import random_token
from logkeep.store.access import open_store
from tests.support.servers.s3 import S3Server, seaweed

_PIECE_BYTES = 4 << 20
_SMALL_BYTES = 256 << 10
_ROUNDS = 3
BUCKET = "bench"


class _Repeated(io.RawIOBase):
    """A file of so many times the same piece, for boto3."""

    def __init__(self, piece: bytes, size_bytes: int) -> None:
        self._piece, self._left = memoryview(piece), size_bytes

    def readable(self) -> bool:
        return True

    def readinto(self, buffer: "memoryview | bytearray") -> int:  # type: ignore[override]  # the only caller passes one
        count = min(len(buffer), self._left, len(self._piece))
        memoryview(buffer)[:count] = self._piece[:count]
        self._left -= count
        return count


def boto3_upload(server: S3Server, piece: bytes, size_bytes: int) -> None:
    client = server.client()
    client.upload_fileobj(_Repeated(piece, size_bytes), BUCKET, f"plain-{random_token()}")
    client.close()


def stream(server: S3Server, piece: bytes, size_bytes: int) -> None:
    _written(server, memoryview(bytearray(piece)), size_bytes, hashed=False)


def hashed(server: S3Server, piece: bytes, size_bytes: int) -> None:
    _written(server, memoryview(bytearray(piece)), size_bytes, hashed=True)


def pieces(server: S3Server, piece: bytes, size_bytes: int) -> None:
    _written(server, memoryview(bytearray(piece))[:_SMALL_BYTES], size_bytes, hashed=True)


def _written(server: S3Server, piece: memoryview, size_bytes: int, *, hashed: bool) -> None:
    store = open_store(server.url(BUCKET, "p"))
    writer, digest = store.open_new(f"stream-{random_token()}", size_bytes), hashlib.sha256()
    for _ in range(size_bytes // len(piece)):
        if hashed:
            digest.update(piece)
        writer.write(piece)
    writer.close()


Way = Callable[[S3Server, bytes, int], None]


def measured(way: Way, server: S3Server, piece: bytes, size_bytes: int, objects: int) -> tuple[float, float]:
    os.sync()
    wall, cpu = time.perf_counter(), time.process_time()
    for _ in range(objects):
        way(server, piece, size_bytes // objects)
    result = time.perf_counter() - wall, time.process_time() - cpu
    store = open_store(server.url(BUCKET))
    for info in store.list(""):
        store.delete(info.name)
    return result


def main() -> None:
    mib = int(sys.argv[1] if len(sys.argv) > 1 else 512)
    objects = int(sys.argv[2] if len(sys.argv) > 2 else 4)
    piece, ways = os.urandom(_PIECE_BYTES), (boto3_upload, stream, hashed, pieces)
    times: dict[str, list[tuple[float, float]]] = {way.__name__: [] for way in ways}
    with tempfile.TemporaryDirectory() as directory, seaweed(Path(directory)) as server:
        server.make_bucket(BUCKET)
        for _ in range(_ROUNDS):
            for way in ways:
                times[way.__name__].append(measured(way, server, piece, mib << 20, objects))
    wall = {name: statistics.median(t[0] for t in rounds) for name, rounds in times.items()}
    cpu = {name: statistics.median(t[1] for t in rounds) for name, rounds in times.items()}
    print(f"{mib} MiB in {objects} objects, median of {_ROUNDS}")
    for name in times:
        rate, ratio = (mib << 20) / wall[name] / 1e6, wall["boto3_upload"] / wall[name]
        print(f"{name:14} {rate:7.0f} MB/s  {ratio:5.2f}x boto3  {cpu[name]:5.2f} CPU s")


if __name__ == "__main__":
    main()
