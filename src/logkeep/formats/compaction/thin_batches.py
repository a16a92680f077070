"""Batches without some of their records, as Kafka's cleaner writes them.

Base offset, last offset delta, leader epoch, producer fields, codec and base time stay, so that the records that stay
are copied with their own bytes. Length, count, largest time and CRC-32C are new. A batch with all its records is
copied byte for byte; one without any is left out.
"""

from collections.abc import Iterator

import google_crc32c
import numpy as np
import numpy.typing as npt

from logkeep.errors import Damaged
from logkeep.formats.compaction.barrier_kernels import thin_sections
from logkeep.formats.kafka.batches import (
    APPEND_TIME,
    CODEC_MASK,
    CRC_FROM,
    HEADER_BYTES,
    OVERHEAD_BYTES,
    Batches,
    Bytes,
    Longs,
)
from logkeep.formats.kafka.compression import Sections, Unreadable, pack, sections
from logkeep.formats.kafka.producer_stamp import header_bytes

Flags = npt.NDArray[np.bool_]


def thinned(buffer: Bytes, batches: Batches, chosen: Flags, kept: Flags) -> bytes:
    """The `chosen` batches, back to back, with the `kept` records only. `kept` has one flag per record of all batches.

    Raises Damaged for a batch that cannot be read.
    """
    counts = batches.headers["records"].astype(np.int64)
    left = kept_per_batch(counts, kept)
    whole = chosen & (left == counts)
    part = chosen & ~whole & (left > 0)
    wanted = Batches(batches.headers[part], batches.positions[part])
    thin = _thin(buffer, wanted, kept[np.repeat(part, counts)])
    view, ends = memoryview(buffer), batches.positions + batches.sizes
    rows = zip(whole.tolist(), part.tolist(), batches.positions.tolist(), ends.tolist(), strict=True)
    return b"".join(
        view[start:end] if copied else next(thin) for copied, thin_one, start, end in rows if copied or thin_one
    )


def kept_per_batch(counts: Longs, kept: Flags) -> Longs:
    """How many records of each batch stay; `counts` is how many it has."""
    before = np.concatenate(([0], np.cumsum(kept, dtype=np.int64)))
    ends = np.cumsum(counts)
    left: Longs = before[ends] - before[ends - counts]
    return left


def _thin(buffer: Bytes, batches: Batches, kept: Flags) -> Iterator[bytes]:
    """Each batch with the records that stay."""
    first = 0
    for part in sections(buffer, batches) if len(batches) else ():
        if isinstance(part, Unreadable):
            raise Damaged(f"the batch at offset {part.batches.base_offsets[0]}: {part.reason}")
        records = int(part.batches.headers["records"].sum(dtype=np.int64))
        yield from _rewritten(part, kept[first : first + records])
        first += records


def _rewritten(part: Sections, kept: Flags) -> Iterator[bytes]:
    counts = part.batches.headers["records"].astype(np.int64)
    out = np.empty(int((part.ends - part.starts).sum()), np.uint8)
    ends, latest = np.empty(len(counts), np.int64), np.empty(len(counts), np.int64)
    wrong = thin_sections(part.data, part.starts, part.ends, counts, kept, out, ends, latest)
    if wrong >= 0:
        raise Damaged(f"the records of the batch at offset {part.batches.base_offsets[wrong]} cannot be read")
    headers = part.batches.headers.copy()
    headers["records"] = kept_per_batch(counts, kept)
    own_times = (headers["attributes"] & APPEND_TIME) == 0
    headers["max_time_ms"] = np.where(own_times, headers["base_time_ms"] + latest, headers["max_time_ms"])
    starts = np.concatenate(([0], ends[:-1]))
    codecs = (headers["attributes"] & CODEC_MASK).tolist()
    rows = zip(codecs, starts.tolist(), ends.tolist(), strict=True)
    packed = [pack(codec, out[start:end]) for codec, start, end in rows]
    headers["length"] = [HEADER_BYTES - OVERHEAD_BYTES + len(each) for each in packed]
    heads = header_bytes(headers)
    crc_of, extended = google_crc32c.value, google_crc32c.extend
    headers["crc"] = [extended(crc_of(head), each) for head, each in zip(heads[:, CRC_FROM:], packed, strict=True)]
    yield from (b"".join((head.data, each.data)) for head, each in zip(heads, packed, strict=True))
