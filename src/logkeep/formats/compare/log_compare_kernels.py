"""Kernels that compare two logs: bytes of batches, then records with the same offset."""

import numpy as np

from logkeep.formats.compare.digest_kernels import U64, canonical_body
from logkeep.formats.jit import inlined, inlined_or, kernel
from logkeep.formats.kafka import record_kernels as k
from logkeep.formats.kafka.record_kernels import Bytes, Ints, Longs, Number, eight

NOT_THERE, OTHER, SAME = range(3)


def _equal_slices(left: Bytes, at: Number, right: Bytes, there: Number, size: Number) -> bool:
    return bool(np.array_equal(left[at : at + size], right[there : there + size]))


@inlined_or(_equal_slices)
def _same_bytes(left: Bytes, at: Number, right: Bytes, there: Number, size: Number) -> bool:
    """Whether `size` bytes, which both must have, are the same."""
    a, b, end = U64(at), U64(there), U64(at + size)
    while end - a >= U64(8):
        if eight(left, a) != eight(right, b):
            return False
        a += U64(8)
        b += U64(8)
    while a < end:
        if left[a] != right[b]:
            return False
        a += U64(1)
        b += U64(1)
    return True


@kernel(lambda _left, starts, *_: 5 * len(starts))
def same_batches(left: Bytes, starts: Longs, right: Bytes, there: Longs, sizes: Longs, same: Bytes) -> None:
    """For each pair of batches of one size, given by where they begin, whether they are the same. -1: there is none."""
    for index in range(starts.shape[0]):
        found = there[index] >= 0
        same[index] = 1 if found and _same_bytes(left, starts[index], right, there[index], sizes[index]) else 0


@inlined
def _same_body(left: Bytes, a: Ints, right: Bytes, b: Ints) -> bool:
    """Whether key, value and headers are the same."""
    size = np.int64(a[k.END_AT]) - np.int64(a[k.BODY_AT])
    other = np.int64(b[k.END_AT]) - np.int64(b[k.BODY_AT])
    if not a[k.ODD] and not b[k.ODD]:
        return size == other and _same_bytes(left, np.int64(a[k.BODY_AT]), right, np.int64(b[k.BODY_AT]), size)
    one, two = np.empty(size, np.uint8), np.empty(other, np.uint8)
    size, other = canonical_body(left, a, one), canonical_body(right, b, two)
    return size == other and _same_bytes(one, np.int64(0), two, np.int64(0), size)


@kernel(lambda _live, offsets, _times, _spans, _archived, there, *_: 10 * (len(offsets) + len(there)))
def match(
    live: Bytes, offsets: Longs, times: Longs, spans: Ints,
    archived: Bytes, there: Longs, there_times: Longs, there_spans: Ints, found: Bytes,
) -> None:  # fmt: skip
    """For each live record, whether one with its offset is archived, and is the same. Both in order of offset.

    `found` is only changed for offsets that are among these archived records: the rest may be among others.
    """
    other = 0
    for row in range(offsets.shape[0]):
        while other < there.shape[0] and there[other] < offsets[row]:
            other += 1
        if other == there.shape[0]:
            return
        if there[other] == offsets[row]:
            same = there_times[other] == times[row] and _same_body(live, spans[row], archived, there_spans[other])
            found[row] = SAME if same else OTHER
