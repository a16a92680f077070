"""Encodes records as batches of version 2: the inverse of `records.decode`.

Groups of rows become batches. Offsets inside a batch count from 0 without holes and times are those of the columns,
so consumers see the same times as in the source (append times too). Keys, values and headers are copied byte
for byte. Each batch has the codec of the batch its first record came from. Headers lack what `producer_stamp.stamp`
writes: CRC, producer, sequence.
"""

from dataclasses import dataclass

import numpy as np

from logkeep.formats.kafka import encode_kernels as kernels
from logkeep.formats.kafka import record_kernels as spans
from logkeep.formats.kafka.batches import CODEC_MASK, HEADER, HEADER_BYTES, OVERHEAD_BYTES, Headers, Longs
from logkeep.formats.kafka.compression import pack
from logkeep.formats.kafka.producer_stamp import header_bytes
from logkeep.formats.kafka.record_kernels import Bytes, Ints
from logkeep.formats.kafka.records import Flags, RecordColumns

_COLUMNS = np.arange(HEADER_BYTES)
_LEAST_SLACK_BYTES, _SLACK_SHIFT = 1024, 5
"""How much larger a batch may become (another compressor, longer time deltas): at least this, or a 32nd."""


@dataclass(frozen=True)
class Encoded:
    """Batches back to back, in order of their rows."""

    buffer: Bytes
    sizes: Longs
    groups: Longs
    """Of each batch, the first row and the one after the last."""


def encode(records: RecordColumns, groups: Longs) -> Encoded:
    """A batch for each group of rows. Groups are not empty, in order, and do not overlap.

    A batch much larger than the one that its records came from could be more than the target accepts. It is
    halved, and its halves likewise; a single record is not split.
    """
    made = _encoded(records, groups)
    while (large := _too_large(records, made)).any():
        made = _encoded(records, _halved(made.groups, large))
    return made


def _encoded(records: RecordColumns, groups: Longs) -> Encoded:
    out = np.empty(_room(records, groups), np.uint8)
    ends, latest = np.empty(len(groups), np.int64), np.empty(len(groups), np.int64)
    kernels.encode_groups(records.data, records.times_ms, records.spans, groups, HEADER_BYTES, out, ends, latest)
    sizes = np.diff(ends, prepend=0)
    codecs = records.batches.headers["attributes"][_sources(records, groups)] & CODEC_MASK
    if codecs.any():
        out, sizes = _packed(out, ends - sizes, ends, codecs.tolist())
    out = out[: int(sizes.sum())]
    positions = np.cumsum(sizes) - sizes
    out[positions[:, None] + _COLUMNS] = header_bytes(_headers(records, groups, sizes, codecs, latest))
    return Encoded(out, sizes, groups)


def _room(records: RecordColumns, groups: Longs) -> int:
    """What the batches need at most, as long as nothing is compressed."""
    if not len(groups):
        return 0
    rows = records.spans[int(groups[0, kernels.FIRST]) : int(groups[-1, kernels.AFTER])]
    bodies = int((rows[:, spans.END_AT] - rows[:, spans.BODY_AT]).sum(dtype=np.int64))
    return bodies + len(rows) * kernels.MOST_BEFORE_BODY + len(groups) * HEADER_BYTES


def _sources(records: RecordColumns, groups: Longs) -> Ints:
    """The batch that each group came from."""
    return records.batch[groups[:, kernels.FIRST]]


def _packed(plain: Bytes, starts: Longs, ends: Longs, codecs: list[int]) -> tuple[Bytes, Longs]:
    """The same batches with compressed sections; their headers are still empty."""
    free = bytes(HEADER_BYTES)
    borders = zip(codecs, (starts + HEADER_BYTES).tolist(), ends.tolist(), strict=True)
    blocks = [pack(codec, plain[start:end]) for codec, start, end in borders]
    joined = bytearray().join(piece for block in blocks for piece in (free, block.data))
    return np.frombuffer(joined, np.uint8), np.array([HEADER_BYTES + len(block) for block in blocks], np.int64)


def _headers(records: RecordColumns, groups: Longs, sizes: Longs, codecs: Longs, latest: Longs) -> Headers:
    headers = np.zeros(len(groups), HEADER)
    counts = groups[:, kernels.AFTER] - groups[:, kernels.FIRST]
    headers["length"], headers["leader_epoch"], headers["magic"] = sizes - OVERHEAD_BYTES, -1, 2
    headers["attributes"], headers["records"], headers["last_offset_delta"] = codecs, counts, counts - 1
    headers["base_time_ms"], headers["max_time_ms"] = records.times_ms[groups[:, kernels.FIRST]], latest
    headers["producer_id"], headers["producer_epoch"], headers["base_sequence"] = -1, -1, -1
    return headers


def _too_large(records: RecordColumns, made: Encoded) -> Flags:
    source = records.batches.sizes[_sources(records, made.groups)]
    several = made.groups[:, kernels.AFTER] - made.groups[:, kernels.FIRST] > 1
    large: Flags = several & (made.sizes > source + np.maximum(_LEAST_SLACK_BYTES, source >> _SLACK_SHIFT))
    return large


def _halved(groups: Longs, which: Flags) -> Longs:
    """Two groups in place of each of those."""
    middles = (groups[which, kernels.FIRST] + groups[which, kernels.AFTER]) // 2
    firsts = np.sort(np.concatenate((groups[:, kernels.FIRST], middles)))
    afters = np.sort(np.concatenate((groups[:, kernels.AFTER], middles)))
    return np.column_stack((firsts, afters))
