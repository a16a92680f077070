"""How fast does a stream reach the disk? LocalStore.open_new beside a plain buffered file and bare O_DIRECT.

    python benchmarks/store_stream.py [DIRECTORY] [MIB]

Each way writes the same bytes in 4 MiB pieces and ends with fsync; rounds are interleaved and the medians compared, so
that what the disk does meanwhile hits all alike. Prints MB/s, CPU seconds, and ratios against the buffered file.
"""

import mmap
import os
import shutil
import statistics
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path

from logkeep.store.local.store import LocalStore

_PIECE_BYTES = 4 << 20
_ROUNDS = 3


def buffered(directory: Path, piece: mmap.mmap, count: int) -> None:
    with (directory / "buffered").open("wb", buffering=0) as file:
        for _ in range(count):
            file.write(piece)
        os.fsync(file.fileno())


def direct(directory: Path, piece: mmap.mmap, count: int) -> None:
    descriptor = os.open(directory / "direct", os.O_WRONLY | os.O_CREAT | os.O_TRUNC | os.O_DIRECT, 0o600)
    for _ in range(count):
        os.write(descriptor, piece)
    os.fsync(descriptor)
    os.close(descriptor)


def store_aligned(directory: Path, piece: mmap.mmap, count: int) -> None:
    _stream(directory, memoryview(piece), count)


def store_copied(directory: Path, piece: mmap.mmap, count: int) -> None:
    _stream(directory, bytes(piece), count)


def _stream(directory: Path, data: memoryview | bytes, count: int) -> None:
    writer = LocalStore(directory).open_new("stream", len(data) * count)
    for _ in range(count):
        writer.write(data)
    writer.close()


def measured(
    way: Callable[[Path, mmap.mmap, int], None], base: Path, piece: mmap.mmap, count: int
) -> tuple[float, float]:
    directory = Path(tempfile.mkdtemp(dir=base))
    os.sync()
    wall, cpu = time.perf_counter(), time.process_time()
    way(directory, piece, count)
    result = time.perf_counter() - wall, time.process_time() - cpu
    shutil.rmtree(directory)
    return result


def main() -> None:
    base = Path(sys.argv[1] if len(sys.argv) > 1 else ".")
    count = int(sys.argv[2] if len(sys.argv) > 2 else 1024) * (1 << 20) // _PIECE_BYTES
    piece = mmap.mmap(-1, _PIECE_BYTES)
    piece[:] = os.urandom(_PIECE_BYTES)
    ways = (buffered, direct, store_aligned, store_copied)
    times: dict[str, list[tuple[float, float]]] = {way.__name__: [] for way in ways}
    for _ in range(_ROUNDS):
        for way in ways:
            times[way.__name__].append(measured(way, base, piece, count))
    wall = {name: statistics.median(t[0] for t in rounds) for name, rounds in times.items()}
    cpu = {name: statistics.median(t[1] for t in rounds) for name, rounds in times.items()}
    print(f"{count * _PIECE_BYTES >> 20} MiB, median of {_ROUNDS}")
    for name in times:
        rate, ratio = count * _PIECE_BYTES / wall[name] / 1e6, wall["buffered"] / wall[name]
        print(f"{name:14} {rate:7.0f} MB/s  {ratio:5.2f}x buffered  {cpu[name]:5.2f} CPU s")


if __name__ == "__main__":
    main()
