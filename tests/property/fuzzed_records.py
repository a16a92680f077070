"""Throws bytes at the kernels until a number is reached, and prints how many could be read.

Run with NUMBA_BOUNDSCHECK=1: an index out of bounds then raises, where it would read foreign memory otherwise.
"""

import random
import sys

from logkeep.formats.compare import Compared, Stretch
from logkeep.formats.digest import digest_of
from logkeep.formats.kafka_log import Batches, walk
from logkeep.formats.records import Records, decode
from logkeep.formats.transactions import Settling
from tests.kafka.slow_records import Slow, batch_of, gzipped, varint


def _plain(chance: random.Random) -> bytes:
    records = [
        Slow(
            i,
            i,
            chance.randbytes(chance.randrange(9)),
            chance.randbytes(chance.randrange(40)),
            ((b"h", None), (b"", b"x")),
        )
        for i in range(chance.randrange(1, 5))
    ]
    data = bytearray(b"".join(r.encode() for r in records))
    for _ in range(chance.randrange(5)):
        at = chance.randrange(len(data) + 1)
        kind = chance.randrange(5)
        if kind == 0:
            data[at : at + 1] = bytes([chance.choice((0, 1, 127, 128, 255))])
        elif kind == 1:
            data[at : at + chance.randrange(4)] = chance.randbytes(chance.randrange(4))
        elif kind == 2:
            del data[at:]
        elif kind == 3:
            data[at : at + 1] = varint(chance.choice((-2, -1, 2**31 - 1, -(2**31), 2**62, len(data), len(data) - at)))
        elif data:
            data[at % len(data)] ^= 1 << chance.randrange(8)
    return bytes(data)


def fuzz(count: int, seed: int) -> int:
    """How many batches were readable."""
    chance, readable = random.Random(seed), 0
    for _ in range(count // 8):
        log, base = b"", 0
        for _ in range(8):
            plain, delta, packed = _plain(chance), chance.randrange(4, 9), chance.random() < 0.1
            fields = {"attributes": chance.choice((0, 0, 0x10, 0x30, 8)) | packed, "delta": delta}
            fields |= {"count": chance.randrange(1, 5), "producer": chance.randrange(3)}
            log += batch_of(base, [], gzipped(plain) if packed else plain, **fields)
            base += delta + 1
        batches = walk(log).batches
        readable += _use(log, batches)
    return readable


def _use(log: bytes, batches: Batches) -> int:
    readable = 0
    for part in decode(log, batches):
        if isinstance(part, Records):
            digest_of(part)
            readable += len(set(part.batch.tolist()))
    Settling().take(log, batches)
    other = Stretch(log[:-1] + b"\0", batches)
    Compared().compare(Stretch(log, batches), other, 0, 100)
    return readable


if __name__ == "__main__":
    print(fuzz(int(sys.argv[1]), int(sys.argv[2])))
