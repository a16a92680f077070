"""Kernel that groups the records of a log by key, without sorting them: a table of keys with open addressing.

A key is distinguished by both lanes of its hash. Its place in the table comes from the second lane: rows may have been
divided by the first one.
"""

import numpy as np
import numpy.typing as npt

from logkeep.formats.jit import kernel
from logkeep.formats.kafka.record_kernels import U64, Bytes, Ints, Longs

Words = npt.NDArray[np.uint64]
LATEST, LATEST_KIND, LATEST_LIVE = range(3)
"""Columns of a key: the offset of its latest record, the flags of that record, and the offset of its latest live record
(-1: it has none)."""
KEY_COLUMNS = 3
LIVE, TOMBSTONE, TRANSACTIONAL = 1, 2, 4
"""Flags of a record."""


@kernel(lambda hashes, *_: 4 * len(hashes))
def group_records(
    hashes: Words, checks: Words, offsets: Longs, kinds: Bytes, table: Ints, names: Words, keys: Longs, key_of: Ints
) -> int:
    """Give every record the number of its key. Returns how many keys there are; -1 if the table is too small.

    `table` is filled with -1; its size is a power of two above the number of records. `names` and `keys` have room for
    one row per record.
    """
    size = table.shape[0]
    if size <= hashes.shape[0] or size & (size - 1):
        return -1
    mask = U64(size - 1)
    found = 0
    for row in range(hashes.shape[0]):
        one, two = hashes[row], checks[row]
        at = two & mask
        number = table[at]
        while number >= 0 and not (names[number, 0] == one and names[number, 1] == two):
            at = (at + U64(1)) & mask
            number = table[at]
        offset = offsets[row]
        if number < 0:
            number = np.int32(found)
            table[at] = number
            names[number, 0], names[number, 1] = one, two
            keys[number, LATEST], keys[number, LATEST_KIND] = offset, kinds[row]
            keys[number, LATEST_LIVE] = -1
            found += 1
        elif offset > keys[number, LATEST]:
            keys[number, LATEST], keys[number, LATEST_KIND] = offset, kinds[row]
        if kinds[row] & LIVE and offset > keys[number, LATEST_LIVE]:
            keys[number, LATEST_LIVE] = offset
        key_of[row] = number
    return found
