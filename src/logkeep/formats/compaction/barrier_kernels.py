"""Kernels of a fold: hashes of records, successors between kept cuts, the latest records at a cut, thinner batches.

Rows come sorted by key and offset; `begins` says where another key begins. Barriers are sorted by END. A record is
buried for all backups from `firsts[rank]` on; rank `len(firsts)` is not buried.
"""

import numpy as np
import numpy.typing as npt

from logkeep.formats.compare.digest_kernels import SEEDS, canonical_body, xxh64, xxh64_of_long
from logkeep.formats.jit import inlined, kernel
from logkeep.formats.kafka import record_kernels as k
from logkeep.formats.kafka.encode_kernels import copy
from logkeep.formats.kafka.record_kernels import U64, Bytes, Ints, Longs, Number, varint, varint32

Words = npt.NDArray[np.uint64]
Halves = npt.NDArray[np.uint32]
Bools = npt.NDArray[np.bool_]

TOMBSTONE, UNDECIDED, PROTECTED, OLD, BEYOND = 1, 2, 4, 8, 16
"""Flags of a row: no value; of a transaction that was undecided at a kept cut; stays in any case; a tombstone that is
old enough to go; at or after the end of the folded range."""
ID, START, END = range(3)
"""Columns of a barrier."""
_SEED = U64(SEEDS[0])
_MIX = U64(0x9E3779B97F4A7C15)


def _hashes_us(_data: Bytes, offsets: Longs, _times: Longs, spans: Ints, _out: Words) -> int:
    return 60 * len(offsets) + int((spans[:, k.END_AT].astype(np.int64) - spans[:, k.BODY_AT]).sum())


@kernel(_hashes_us)
def record_hashes(data: Bytes, offsets: Longs, times: Longs, spans: Ints, out: Words) -> int:
    """Of offset, time, key, value and headers of each record. Returns how many are not inside `data`."""
    outside = 0
    for row in range(offsets.shape[0]):
        start = np.int64(spans[row, k.BODY_AT])
        size = np.int64(spans[row, k.END_AT]) - start
        out[row] = U64(0)
        if start < 0 or size < 0 or size > data.shape[0] - start:
            outside += 1
            continue
        if spans[row, k.ODD]:
            plain = np.empty(size, np.uint8)
            body = xxh64(plain, 0, canonical_body(data, spans[row], plain), _SEED)
        else:
            body = xxh64(data, start, size, _SEED)
        out[row] = xxh64_of_long(offsets[row], xxh64_of_long(times[row], body))
    return outside


@inlined
def first_above(barriers: Longs, offset: Number) -> Number:
    """The first barrier whose end is above an offset."""
    low, high = 0, barriers.shape[0]
    while low < high:
        middle = (low + high) // 2
        if barriers[middle, END] > offset:
            high = middle
        else:
            low = middle + 1
    return low


@kernel(lambda begins, *_: 30 * len(begins))
def mark_kept(  # noqa: PLR0912 - compiled code; the branches are the cases of the rule
    begins: Bools,
    others: Halves,
    offsets: Longs,
    ranks: Longs,
    kinds: Bytes,
    barriers: Longs,
    firsts: Longs,
    oldest: Longs,
    drop_tombstones: int,
    kept: Bytes,
) -> int:
    """Fill `kept` with 1 for every record that must stay. `oldest[i]` is the least backup id among barriers from i on.

    A record goes if a later one of its key is seen by every kept backup that sees it, or if no kept backup sees it.
    Returns how many keys have a hash that another key has too: all their records stay.
    """
    collisions = 0
    end: Number = np.int64(begins.shape[0])
    while end > 0:
        start = end - 1
        while start > 0 and not begins[start]:
            start -= 1
        same = True
        for row in range(start + 1, end):
            same = same and others[row] == others[start]
        if not same:
            collisions += 1
            for row in range(start, end):
                kept[row] = 1
            end = start
            continue
        later: Number = np.int64(-1)
        for back in range(end - start):
            row = end - 1 - back
            offset = offsets[row]
            if kinds[row] & UNDECIDED:
                kept[row] = 1
                continue
            above = first_above(barriers, offset)
            hidden = ranks[row] < firsts.shape[0] and (
                above >= barriers.shape[0] or oldest[above] >= firsts[ranks[row]]
            )
            superseded = later >= 0 and ranks[later] >= ranks[row]
            if superseded and above < barriers.shape[0] and barriers[above, END] <= offsets[later]:
                superseded = False
            kept[row] = 1 if kinds[row] & PROTECTED or not (hidden or superseded) else 0
            if not kinds[row] & BEYOND:
                later = row
        if drop_tombstones:
            for row in range(start, end):
                if kept[row]:
                    if not (kinds[row] & OLD) or kinds[row] & (PROTECTED | UNDECIDED):
                        break
                    kept[row] = 0
        end = start
    return collisions


@inlined
def _count_record(content: np.uint64, barrier: Number, counts: Longs, sums: Words) -> None:
    counts[barrier] += 1
    sums[barrier, 0] += content
    turned = (content ^ (content >> U64(29))) * _MIX
    sums[barrier, 1] += turned ^ (turned >> U64(32))


@kernel(
    lambda begins, _offsets, _decided, _ranks, _kinds, _contents, barriers, *_: (20 + 5 * len(barriers)) * len(begins)
)
def add_latest(
    begins: Bools,
    offsets: Longs,
    decided: Longs,
    ranks: Longs,
    kinds: Bytes,
    contents: Words,
    barriers: Longs,
    firsts: Longs,
    values_only: int,
    counts: Longs,
    sums: Words,
) -> int:
    """Add the latest record of every key, as each backup sees it, to the count and the two sums of its barrier.

    A backup sees a record of its cut whose transaction was committed below the cut (`decided`), and that is not buried.
    With `values_only` a tombstone is no record, and neither is what it deletes. Returns how many records were added.
    """
    added = 0
    end: Number = np.int64(begins.shape[0])
    while end > 0:
        start = end - 1
        while start > 0 and not begins[start]:
            start -= 1
        top = end - 1
        for back in range(barriers.shape[0]):
            barrier = barriers.shape[0] - 1 - back
            while top >= start and offsets[top] >= barriers[barrier, END]:
                top -= 1
            row = top
            while row >= start and not (
                barriers[barrier, START] <= offsets[row]
                and decided[row] < barriers[barrier, END]
                and (ranks[row] >= firsts.shape[0] or barriers[barrier, ID] < firsts[ranks[row]])
            ):
                row -= 1
            if row >= start and not (values_only and kinds[row] & TOMBSTONE):
                _count_record(contents[row], barrier, counts, sums)
                added += 1
        end = start
    return added


@kernel(lambda ordinals, _bits: 2 * len(ordinals))
def clear_bits(ordinals: Longs, bits: Bytes) -> int:
    """Clear these bits, the first of a byte being its highest one. Returns how many are outside."""
    outside = 0
    for index in range(ordinals.shape[0]):
        at = ordinals[index]
        if at < 0 or at >> 3 >= bits.shape[0]:
            outside += 1
            continue
        bits[at >> 3] &= np.uint8(255 ^ (128 >> (at & 7)))
    return outside


@kernel(lambda _data, _starts, _ends, _counts, kept, *_: 40 * len(kept))
def thin_sections(
    data: Bytes, starts: Longs, ends: Longs, counts: Longs, kept: Bools, out: Bytes, out_ends: Longs, latest: Longs
) -> int:
    """Copy the kept records of each batch, back to back. Fills in where each batch ends, and its largest time delta.

    Records are copied with their own bytes. Returns the batch that cannot be read, or -1.
    """
    at: Number = np.int64(0)
    record = 0
    for batch in range(starts.shape[0]):
        here: Number = starts[batch]
        end = ends[batch]
        most: Number = np.int64(-(2**63))
        for _ in range(counts[batch]):
            size, begin = varint32(data, here, end)
            if begin < 0 or size < 1 or size > end - begin:
                return batch
            stop = begin + size
            if kept[record]:
                delta, after = varint(data, begin + 1, stop, 63, 1)
                if after < 0 or stop - here > out.shape[0] - at:
                    return batch
                most = max(most, delta)
                copy(data, U64(here), U64(stop - here), out, U64(at))
                at += stop - here
            record += 1
            here = stop
        if here != end:
            return batch
        out_ends[batch], latest[batch] = at, most
    return -1
