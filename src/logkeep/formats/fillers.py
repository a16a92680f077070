"""Batches of records that stand for nothing: they take up offsets, and no consumer is meant to see them.

A filler has the key `logkeep`, no value, no headers and no time (-1). The key is for topics that are compacted, which
take nothing without one. Batches are compressed with zstd and hold up to a million fillers: less than a byte each. The
bytes depend on the number alone.
"""

from collections.abc import Iterator
from functools import lru_cache

import numpy as np

from logkeep.formats import record_kernels as kernels
from logkeep.formats.encode import encode
from logkeep.formats.kafka_log import CODECS, HEADER, Batches
from logkeep.formats.records import RecordColumns
from logkeep.formats.stamping import Outgoing

MOST_RECORDS = 1_000_000
KEY = b"logkeep"
_BODY = bytes([2 * len(KEY)]) + KEY + b"\x01\x00"
"""The key with its length, the length of a value that is null, no headers."""
_NO_TIME = -1


def filler_batches(count: int, most: int = MOST_RECORDS) -> Iterator[Outgoing]:
    """So many fillers in batches of up to `most` records, one at a time. Stamp them as any others."""
    if not 0 < most <= MOST_RECORDS:
        raise ValueError(f"a batch of {most} fillers")
    while count > 0:
        records = min(count, most)
        yield _outgoing(_filler(records), records)
        count -= records


def _outgoing(batch: bytes, records: int) -> Outgoing:
    buffer = np.frombuffer(batch, np.uint8)
    one, none = np.array([records]), np.array([-1])
    return Outgoing(buffer, np.array([0]), np.array([len(batch)]), one, none, np.empty((0, 2), np.int64))


@lru_cache(maxsize=2)
def _filler(count: int) -> bytes:
    """A batch of so many; the last ones made are remembered."""
    spans = np.zeros((count, kernels.SPAN_COLUMNS), np.int32)
    spans[:, kernels.END_AT] = len(_BODY)
    header = np.zeros(1, HEADER)
    header["attributes"], header["length"] = CODECS.index("zstd"), 2**31 - 1  # as large as need be
    source = Batches(header, np.zeros(1, np.int64))
    times = np.full(count, _NO_TIME, np.int64)
    records = RecordColumns(np.frombuffer(_BODY, np.uint8), source, np.arange(count), times, spans)
    return encode(records, np.array([[0, count]])).buffer.tobytes()
