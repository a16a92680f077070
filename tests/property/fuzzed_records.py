"""Throws bytes at the kernels until a number is reached; prints how many batches could be read and how many were sent.

The third number is by how many MiB the process grew on the way.

Run with NUMBA_BOUNDSCHECK=1: an index out of bounds then raises, where it would read foreign memory otherwise.
"""

import random
import resource
import sys

from logkeep.errors import Damaged
from logkeep.formats.compare.digest import digest_of
from logkeep.formats.compare.log_compare import LogComparison
from logkeep.formats.datasets.arrow import arrow_records
from logkeep.formats.kafka.batches import Batches, BatchStretch, walk
from logkeep.formats.kafka.record_view import View, visible_records
from logkeep.formats.kafka.records import RecordColumns, decode
from logkeep.formats.kafka.restore.send_batches import Outgoing, outgoing, stamp
from logkeep.formats.kafka.transactions import SettledTransactions, Settling
from logkeep.formats.warm import warm
from tests.support.kafka.slow_batches import PACKERS
from tests.support.kafka.slow_records import Slow, batch_of, varint


def _plain(chance: random.Random) -> tuple[bytes, int]:
    """Records, most of them broken, and how many there were."""
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
    plain = bytearray(b"".join(r.encode() for r in records))
    return _mutated(chance, plain, chance.choice((0, 0, 0, 1, 1, 2, 4))), len(records)


def _mutated(chance: random.Random, data: bytearray, times: int) -> bytes:
    for _ in range(times):
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


def _log(chance: random.Random) -> bytes:
    """Eight batches. Now and then packed bytes are broken too, and headers, which nobody checks but `walk`."""
    log, base = b"", 0
    for _ in range(8):
        plain, count = _plain(chance)
        delta = count - 1 + chance.choice((0, 0, 0, 2))
        codec = chance.randrange(5) if chance.random() < 0.2 else 0
        block = PACKERS[codec](plain)
        if codec and chance.random() < 0.2:
            block = _mutated(chance, bytearray(block), 1)
        fields = {"attributes": chance.choice((0, 0, 0x10, 0x30, 8)) | codec, "delta": delta}
        fields |= {"count": max(0, count + chance.choice((0,) * 30 + (-1, 1))), "producer": chance.randrange(3)}
        log += batch_of(base, [], block, **fields)
        base += delta + 1 + chance.choice((0, 0, 3))
    return _mutated(chance, bytearray(log), 1) if chance.random() < 0.2 else log


def fuzz(count: int, seed: int) -> tuple[int, int]:
    """How many batches were readable, and how many were sent."""
    chance, readable, sent = random.Random(seed), 0, 0
    for _ in range(count // 8):
        log = _log(chance)
        batches = walk(log).batches
        readable += _read(log, batches)
        sent += _send(chance, BatchStretch(log, batches))
    return readable, sent


def _read(log: bytes, batches: Batches) -> int:
    readable = 0
    for part in decode(log, batches):
        if isinstance(part, RecordColumns):
            digest_of(part)
            arrow_records(part).validate(full=True)
            readable += len(set(part.batch.tolist()))
    Settling().take(log, batches)
    other = BatchStretch(log[:-1] + b"\0", batches)
    LogComparison().compare(BatchStretch(log, batches), other, 0, 100)
    return readable


def _send(chance: random.Random, stretch: BatchStretch) -> int:
    """Every batch that is sent must be one for `walk`, too."""
    sent, start = 0, chance.choice((0, chance.randrange(20)))
    view = View(
        start, start + chance.randrange(60), chance.choice((None, SettledTransactions((), ()))), chance.random() < 0.5
    )
    try:
        for part in outgoing([stretch], view, chance.choice((1, 300, 1 << 20))):
            if isinstance(part, Outgoing):
                stamp(part, 1, 1, sent)
                assert all(len(walk(part.batch(i)).batches) == 1 for i in range(len(part)))
                assert part.total_records == int(part.runs[:, 1].sum())
                sent += len(part)
        sum(len(part) for part in visible_records([stretch], view))
    except Damaged:
        pass
    return sent


def _peak_mib() -> int:
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss >> 10


if __name__ == "__main__":
    warm()
    before = _peak_mib()
    print(*fuzz(int(sys.argv[1]), int(sys.argv[2])), _peak_mib() - before)
