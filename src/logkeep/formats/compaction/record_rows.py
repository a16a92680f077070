"""Records as rows of hashes: of their keys, by which they are grouped, and of all of them, by which they are compared.

The hash of a key has 128 bits in two lanes with secret seeds, and a second hash with another one. A record without a
key is a key of its own.
"""

from typing import Final

import numpy as np

from logkeep.errors import Damaged
from logkeep.formats.compaction.barrier_kernels import record_hashes
from logkeep.formats.compaction.barriers import ROW, Rows
from logkeep.formats.kafka.key_hash_kernels import key_hashes
from logkeep.formats.kafka.record_kernels import KEY_SIZE
from logkeep.formats.kafka.records import RecordColumns

Seeds = tuple[int, int, int]
HASH_BITS: Final = 128
_UNKEYED_CHECK: Final = np.uint64(0xA5A5_5A5A_C3C3_3C3C)
_SPREAD: Final = np.uint64(0x9E3779B97F4A7C15)


def hashed_rows(records: RecordColumns, seeds: Seeds, hash_bits: int = HASH_BITS) -> Rows:
    """One row for each record, with its hashes and offset. Raises Damaged."""
    one, two, three = (np.uint64(seed) for seed in seeds)
    rows = np.zeros(len(records), ROW)
    hashes, content = np.empty((len(records), 2), np.uint64), np.empty(len(records), np.uint64)
    outside = key_hashes(records.data, records.spans, three, one, hashes)
    rows["other"] = hashes[:, 0] >> np.uint64(32)
    outside += key_hashes(records.data, records.spans, one, two, hashes)
    outside += record_hashes(records.data, records.offsets, records.times_ms, records.spans, content)
    if outside:
        raise Damaged("a record is not inside the bytes of its batch")
    low, high = _masks(hash_bits)
    rows["hash"], rows["check"], rows["content"] = hashes[:, 0] & low, hashes[:, 1] & high, content
    rows["offset"] = records.offsets
    unkeyed = records.spans[:, KEY_SIZE] < 0
    own = records.offsets[unkeyed].astype(np.uint64)
    rows["hash"][unkeyed], rows["check"][unkeyed], rows["other"][unkeyed] = own * _SPREAD, own ^ _UNKEYED_CHECK, 0
    return rows


def _masks(bits: int) -> tuple[np.uint64, np.uint64]:
    mask = (1 << bits) - 1
    return np.uint64(mask & (2**64 - 1)), np.uint64(mask >> 64)
