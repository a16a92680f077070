"""The partition to which Kafka's default partitioner assigns one key."""

import numpy as np

from logkeep.formats.kafka import record_kernels as k
from logkeep.formats.kafka.partitioner_kernels import key_partitions


def partition_of_key(key: bytes, partitions: int) -> int:
    """Below `partitions`."""
    spans = np.zeros((1, k.SPAN_COLUMNS), np.int32)
    spans[0, k.KEY_SIZE] = len(key)
    found = np.empty(1, np.int32)
    data = np.frombuffer(key or b"\0", np.uint8)
    key_partitions(data, spans, partitions, found)
    return int(found[0])
