"""What the cluster record keeps of batches in memory: the traits of all, the header of the last. Pure.

The values are in `log_traits` and `last_batch`, which a reader of the record loads without numpy.
"""

import numpy as np

from logkeep.formats.kafka.batches import CODEC_MASK, CODECS, TRANSACTIONAL, Batches
from logkeep.kafka.logs.last_batch import LastBatch
from logkeep.kafka.logs.log_traits import LogTraits


def traits_of(batches: Batches) -> LogTraits:
    attributes = batches.headers["attributes"].astype(np.int64)
    codecs = np.flatnonzero(np.bincount(attributes & CODEC_MASK)).tolist()
    return LogTraits(
        largest_batch_bytes=int(batches.sizes.max(initial=0)),
        codecs=tuple(sorted(CODECS[c] if c < len(CODECS) else str(c) for c in codecs)),
        transactional=bool((attributes & TRANSACTIONAL).any()),
    )


def last_batch_of(batches: Batches, index: int = -1) -> LastBatch:
    """One of these batches, by default the last."""
    header = batches.headers[index]
    same = ("leader_epoch", "crc", "records", "base_time_ms", "max_time_ms", "attributes")
    producer = ("producer_id", "producer_epoch", "base_sequence")
    return LastBatch(
        base_offset=int(batches.base_offsets[index]),
        last_offset=int(batches.last_offsets[index]),
        size=int(batches.sizes[index]),
        **{name: int(header[name]) for name in (*same, *producer)},
    )
