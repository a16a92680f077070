"""Kernel of the 128-bit hashes of record keys: two lanes with a secret seed, so that no producer can make two collide.

A lane multiplies and shifts after every four bytes, and after each byte that is left; the size goes in at the end.
Words of eight bytes would be weak: a difference in the highest bit passes a product unchanged, whatever the seed is.
"""

import numpy as np
import numpy.typing as npt

from logkeep.formats.jit import kernel
from logkeep.formats.kafka import record_kernels as k
from logkeep.formats.kafka.record_kernels import U64, Bytes, Ints, four

Hashes = npt.NDArray[np.uint64]
_FIRST, _SECOND = U64(0x9E3779B97F4A7C15), U64(0xC2B2AE3D27D4EB4F)
_LAST = U64(0xFF51AFD7ED558CCD)


@kernel(lambda _data, spans, *_: 10 * len(spans) + 5 * int(np.maximum(spans[:, k.KEY_SIZE], 0).sum(dtype=np.int64)))
def key_hashes(data: Bytes, spans: Ints, first_seed: np.uint64, second_seed: np.uint64, out: Hashes) -> int:
    """Fill two columns for every record; a null key has zeros. Returns how many keys are not inside `data`."""
    outside = 0
    for row in range(spans.shape[0]):
        start, size = np.int64(spans[row, k.KEY_AT]), np.int64(spans[row, k.KEY_SIZE])
        out[row, 0] = U64(0)
        out[row, 1] = U64(0)
        if size < 0:
            continue
        if start < 0 or size > data.shape[0] - start:
            outside += 1
            continue
        one, two = first_seed, second_seed
        at, end = U64(start), U64(start + size)
        while at < end:
            if end - at >= U64(4):
                word = four(data, at)
                at += U64(4)
            else:
                word = U64(data[at])
                at += U64(1)
            one = (one ^ word) * _FIRST
            one ^= one >> U64(29)
            two = (two ^ word) * _SECOND
            two ^= two >> U64(31)
        one = (one ^ U64(size)) * _LAST
        two = (two + U64(size)) * _LAST
        out[row, 0] = one ^ (one >> U64(32))
        out[row, 1] = two ^ (two >> U64(33))
    return outside
