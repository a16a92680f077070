"""What does `--compression zstd` cost, and what does it save? Against the same writer without it.

    python -m benchmarks.compression [--megabytes 256] [--rounds 3]

Logs made in memory, three kinds: JSON records that producers left uncompressed, the same compressed by producers with
lz4, and half of each. Each is written through the product's own `SegmentWriter` (CRC-32C of every batch, SHA-256,
frames, index) into a store that throws everything away, so that no disk is measured. Best of `--rounds`, the two
writers in turns, CPU seconds of this process. Read the ratios: the machine is shared.
"""

import argparse
import random
import struct
import time
from collections.abc import Callable, Iterator

import google_crc32c
import pyarrow as pa

from logkeep.formats.kafka.batches import walk
from logkeep.formats.zstd_frames import LEVEL
from logkeep.model.segments import Codec, Collection, LogName, Segment
from logkeep.repository.chain.commits import SourceRef
from logkeep.repository.segments.writer import SegmentLimits, SegmentWriter
from logkeep.store.base import ObjectWriter
from logkeep.store.memory import MemoryStore
from logkeep.store.wrapper import DelegatingStore

_LOG = LogName(Collection.TOPICS, "orders", "00" * 16, 0)
_REPLY_BYTES = 8 << 20
_RECORDS = 200
_LZ4 = 3


class _Nowhere:
    """A stream that only counts."""

    def __init__(self) -> None:
        self._size = 0

    def write(self, data: memoryview | bytes) -> None:
        self._size += len(data)

    def close(self) -> int:
        return self._size

    def abort(self) -> None: ...


class _Nothing(DelegatingStore):
    def open_new(self, name: str, size_hint: int = 0) -> ObjectWriter:
        return _Nowhere()


def _record(number: int, chance: random.Random) -> bytes:
    return b'{"order": %d, "customer": "c-%08x", "state": "%s", "amount": "%d.%02d", "currency": "EUR", "at": %d}' % (
        number,
        chance.getrandbits(32),
        chance.choice((b"new", b"paid", b"sent")),
        chance.randrange(1000),
        chance.randrange(100),
        1_700_000_000_000 + number * 7,
    )


def _batch(base: int, payload: bytes, codec: int) -> bytes:
    checked = struct.pack(">hiqqqhii", codec, _RECORDS - 1, 0, 0, -1, -1, -1, _RECORDS) + payload
    return struct.pack(">qiibI", base, 9 + len(checked), 0, 2, google_crc32c.value(checked)) + checked


def _log(size_bytes: int, lz4: Callable[[int], bool]) -> bytes:
    """Batches of 200 records; `lz4` says which of them a producer had compressed."""
    chance, batches, total, number = random.Random(7), [], 0, 0
    while total < size_bytes:
        payload = b"".join(_record(number * _RECORDS + i, chance) for i in range(_RECORDS))
        packed = lz4(number)
        content = pa.Codec("lz4").compress(payload, asbytes=True) if packed else payload
        batches.append(_batch(number * _RECORDS, content, _LZ4 if packed else 0))
        total += len(batches[-1])
        number += 1
    return b"".join(batches)


def _replies(log: bytes) -> Iterator[memoryview]:
    rest = memoryview(log)
    while rest:
        end = walk(rest[:_REPLY_BYTES]).batches.end
        yield rest[:end]
        rest = rest[end:]


def _write(log: bytes, codec: Codec) -> tuple[float, Segment]:
    place = SourceRef(_Nothing(MemoryStore()), "benchmark", "prod")
    writer = SegmentWriter(place, _LOG, 0, SegmentLimits(1 << 40, 1 << 40), 0, lambda: "0" * 16, codec)
    cpu_s = time.process_time()
    for reply in _replies(log):
        writer.write(reply, walk(reply).batches)
    writer.finish(0)
    return time.process_time() - cpu_s, writer.segments[0]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--megabytes", type=int, default=256)
    parser.add_argument("--rounds", type=int, default=3)
    arguments = parser.parse_args()
    kinds: dict[str, Callable[[int], bool]] = {
        "left uncompressed": lambda _: False,
        "compressed by producers (lz4)": lambda _: True,
        "half of the batches each": lambda number: number % 2 == 0,
    }
    print(f"{arguments.megabytes} MB of each kind, zstd level {LEVEL}")
    print(f"{'batches':32}{'stored / plain':>16}{'CPU / none':>12}{'none s/GB':>11}{'zstd s/GB':>11}")
    for name, lz4 in kinds.items():
        log = _log(arguments.megabytes * 1_000_000, lz4)
        rounds = [(_write(log, Codec.NONE), _write(log, Codec.ZSTD)) for _ in range(arguments.rounds)]
        plain_s = min(none[0] for none, _ in rounds) / len(log) * 1e9
        packed_s = min(zstd[0] for _, zstd in rounds) / len(log) * 1e9
        segment = rounds[0][1][1]
        share = segment.stored_bytes / segment.plain_bytes
        print(f"{name:32}{share:16.3f}{packed_s / plain_s:12.2f}{plain_s:11.2f}{packed_s:11.2f}")


if __name__ == "__main__":
    main()
