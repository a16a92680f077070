"""Assigns records to partitions by their key, as Kafka's default partitioner.

Records without a key are distributed by their source offset, 16 neighbours together:
`(source partition + offset // 16) mod partitions`. So a record's partition depends only on the record and its source
offset, in every task and attempt.
"""

from dataclasses import dataclass

import numpy as np

from logkeep.errors import Damaged
from logkeep.formats.kafka import record_kernels as k
from logkeep.formats.kafka.partitioner_kernels import NO_KEY, OUTSIDE, key_partitions
from logkeep.formats.kafka.record_kernels import Ints
from logkeep.formats.kafka.records import Flags, RecordColumns

TOGETHER = 16
"""Neighbouring offsets without a key that go to one partition: this keeps run maps short."""


def partitions_of(records: RecordColumns, partitions: int, source_partition: int) -> Ints:
    """The partition of each record, below `partitions`. Raises Damaged."""
    found = np.empty(len(records), np.int32)
    key_partitions(records.data, records.spans, partitions, found)
    if (found == OUTSIDE).any():
        raise Damaged("a key is not inside the bytes of its record")
    round_robin = (records.offsets // TOGETHER + source_partition) % partitions
    return np.where(found == NO_KEY, round_robin, found).astype(np.int32)


def partition_of_key(key: bytes, partitions: int) -> int:
    """The partition of one key, below `partitions`."""
    spans = np.zeros((1, k.SPAN_COLUMNS), np.int32)
    spans[0, k.KEY_SIZE] = len(key)
    found = np.empty(1, np.int32)
    key_partitions(np.frombuffer(key or b"\0", np.uint8), spans, partitions, found)
    return int(found[0])


@dataclass(frozen=True)
class Share:
    """The records of one archived partition that belong to one of `partitions` new ones."""

    partition: int
    partitions: int
    source_partition: int

    def of(self, records: RecordColumns) -> Flags:
        """Which of these records."""
        belongs: Flags = partitions_of(records, self.partitions, self.source_partition) == self.partition
        return belongs
