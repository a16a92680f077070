"""Kernels of Kafka's default partitioner: murmur2 of many keys, and their partitions.

The hash is the 32-bit MurmurHash 2 that Apache's clients use, with their seed. The partition of
a key is its hash without the sign bit, also of an empty key; a null key has none.
"""

import numpy as np

from logkeep.formats.jit import inlined, kernel
from logkeep.formats.kafka import record_kernels as k
from logkeep.formats.kafka.record_kernels import U64, Bytes, Ints

NO_KEY, OUTSIDE = -1, -2
_SEED, _MULTIPLIER, _MASK, _POSITIVE = U64(0x9747B28C), U64(0x5BD1E995), U64(0xFFFFFFFF), U64(0x7FFFFFFF)


@inlined
def murmur2(data: Bytes, start: np.uint64, size: np.uint64) -> np.uint64:
    """Of bytes that are there. Numbers have 64 bits here; what leaves the lower 32 is cut off at once."""
    found = (_SEED ^ size) & _MASK
    at, words = start, size >> U64(2)
    for _ in range(words):
        word = (
            U64(data[at])
            | (U64(data[at + U64(1)]) << U64(8))
            | (U64(data[at + U64(2)]) << U64(16))
            | (U64(data[at + U64(3)]) << U64(24))
        )
        word = (word * _MULTIPLIER) & _MASK
        word = ((word ^ (word >> U64(24))) * _MULTIPLIER) & _MASK
        found = ((found * _MULTIPLIER) & _MASK) ^ word
        at += U64(4)
    left = size & U64(3)
    if left:
        rest = U64(0)
        for index in range(left):
            rest |= U64(data[at + U64(index)]) << (U64(8) * U64(index))
        found = ((found ^ rest) * _MULTIPLIER) & _MASK
    found = ((found ^ (found >> U64(13))) * _MULTIPLIER) & _MASK
    return found ^ (found >> U64(15))


@kernel(lambda _data, spans, *_: 30 * len(spans) + int(np.maximum(spans[:, k.KEY_SIZE], 0).sum(dtype=np.int64)))
def key_partitions(data: Bytes, spans: Ints, partitions: int, out: Ints) -> None:
    """For each record the partition of its key: NO_KEY where it is null, OUTSIDE where it is not inside `data`."""
    for row in range(spans.shape[0]):
        start, size = np.int64(spans[row, k.KEY_AT]), np.int64(spans[row, k.KEY_SIZE])
        if size < 0:
            out[row] = NO_KEY
        elif start < 0 or size > data.shape[0] - start:
            out[row] = OUTSIDE
        else:
            out[row] = np.int32((murmur2(data, U64(start), U64(size)) & _POSITIVE) % U64(partitions))
