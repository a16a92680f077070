"""Throws bytes at the readers of kafka-backup-v1 and of OSO archives; prints how many could be read, and the memory.

Run with NUMBA_BOUNDSCHECK=1: an index out of bounds then raises, where it would read foreign memory otherwise. Memory
is measured after some archives of every kind were read: libraries and kernels are loaded then.
"""

import json
import random
import resource
import struct
import sys
import zlib
from collections.abc import Iterator

from logkeep.errors import LogkeepError
from logkeep.formats.jit import compile_from_now_on
from logkeep.kafka.importing.recognise import open_dataset
from logkeep.kafka.importing.survey_task import survey_partition
from logkeep.kafka.importing.values import DatasetSurveyUnit
from logkeep.store.memory import MemoryStore
from tests.support.datasets import oso_files, v1_files
from tests.support.datasets.v1_files import HandRecord

_LIMITS = (-(2**63), -2, -1, 0, 1, 2**28, 2**31 - 1, 2**31, 2**62, 2**63 - 1)
_WARM = 60
Files = dict[str, bytes]


def _records(chance: random.Random) -> list[HandRecord]:
    def some() -> bytes | None:
        return chance.choice((None, b"", chance.randbytes(chance.randrange(40))))

    offset, made = chance.randrange(50), []
    for _ in range(chance.randrange(1, 30)):
        offset += chance.choice((1, 1, 1, 5, 2**33))
        headers = [(some() or b"", some()) for _ in range(chance.choice((0, 0, 1, 4)))]
        kind = chance.choice((0, 0, 1, -1, -2))
        made.append(HandRecord(offset, some(), some(), chance.randrange(-1, 2**42), kind, headers))
    return made


def _v1(chance: random.Random) -> Files:
    records = _records(chance)
    middle = chance.randrange(len(records) + 1)
    parts = {p[0].offset: p for p in (records[:middle], records[middle:]) if p}
    files = {f"t/{v1_files.segment_name(0, s)}_{n}": d for s, p in parts.items() for n, d in _pair(p, chance)}
    files["t/index_partition_000"] = v1_files.partition_index_bytes(0, [(s, s) for s in parts])
    return {**files, "t/consumer_offsets_partition_000": b'{"g": 5}'}


def _pair(records: list[HandRecord], chance: random.Random) -> Iterator[tuple[str, bytes]]:
    torn = {chance.randrange(len(records)): chance.randbytes(chance.randrange(30))} if chance.random() < 0.3 else {}
    data, index = v1_files.segment_files(records, torn)
    yield "records", data
    if chance.random() < 0.9:
        yield "index", index


def _oso(chance: random.Random) -> Files:
    records = [HandRecord(r.offset, r.key, r.value, r.time, 0, r.headers) for r in _records(chance)]
    codec = chance.choice(("none", "none", "zstd", "lz4"))
    archived = [*map(oso_files.with_own_headers, records)] if chance.random() < 0.5 else records
    name = f"topics/t/partition=0/segment-{records[0].offset:020d}.bin"
    plain = sum(len(oso_files.record_bytes(r)) for r in archived)
    segment = {"key": f"b/{name}", "start_offset": records[0].offset, "end_offset": records[-1].offset}
    partition = {"partition_id": 0, "segments": [{**segment, "uncompressed_size": plain}], "gaps": []}
    manifest = {"backup_id": "b", "topics": [{"name": "t", "partitions": [partition]}]}
    return {"manifest.json": json.dumps(manifest).encode(), name: oso_files.segment_bytes(archived, codec)}


def _mutated(chance: random.Random, data: bytes) -> bytes:
    changed = bytearray(data)
    for _ in range(chance.choice((1, 1, 1, 2, 4))):
        at, kind = chance.randrange(len(changed) + 1), chance.randrange(5)
        if kind == 0:
            changed[at : at + 1] = bytes((chance.choice((0, 1, 127, 128, 255)),))
        elif kind == 1:
            changed[at : at + chance.randrange(9)] = chance.randbytes(chance.randrange(9))
        elif kind == 2:
            del changed[at:]
        elif kind == 3:
            number = chance.choice((*_LIMITS, len(data) - at))
            form = chance.choice((">q", "<q", ">i", "<i"))
            width = struct.calcsize(form)
            changed[at : at + width] = struct.pack(
                form, number if width == 8 else max(min(number, 2**31 - 1), -(2**31))
            )
        elif changed:
            changed[at % len(changed)] ^= 1 << chance.randrange(8)
    return bytes(changed)


def _spoiled(chance: random.Random, files: Files) -> Files:
    """One file changed. A segment of OSO gets a right checksum again half of the time: it gets to the records."""
    name = chance.choice(sorted(files))
    data = _mutated(chance, files[name])
    if data[:4] == b"KBAK" and len(data) > 48 and chance.random() < 0.7:
        data = data[:-8] + struct.pack("<I", zlib.crc32(data[:-8])) + b"BKAE"
    return {**files, name: data}


def can_read(files: Files) -> bool:
    """Whether all of it could be read; errors on purpose are fine."""
    store = MemoryStore()
    for name, data in files.items():
        store.put_new(name, data)
    try:
        for partition in open_dataset(store).partitions:
            survey_partition(DatasetSurveyUnit(partition), lambda _: None)
    except LogkeepError:
        return False
    return True


def fuzz(count: int, chance: random.Random) -> int:
    made = (_v1, _oso)
    return sum(can_read(_spoiled(chance, made[number % 2](chance))) for number in range(count))


def main(count: int, seed: int) -> None:
    chance = random.Random(seed)
    compile_from_now_on()
    fuzz(_WARM, chance)
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    readable = fuzz(count, chance)
    print(readable, (resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before) >> 10)


if __name__ == "__main__":
    main(int(sys.argv[1]), int(sys.argv[2]))
