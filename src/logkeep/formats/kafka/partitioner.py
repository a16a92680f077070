"""Which partition of a topic a record belongs to: by its key, as Kafka's default partitioner decides.

A null key has no partition of its own; producers spread such records as it suits them. Here they go round by their
place in the source, some neighbours together: `(source partition + offset // 16) mod partitions`. So a record's
partition follows from the record and its place alone, whoever asks, and from wherever the log is read.
"""

from dataclasses import dataclass

import numpy as np

from logkeep.errors import Damaged
from logkeep.formats.kafka.partitioner_kernels import NO_KEY, OUTSIDE, key_partitions
from logkeep.formats.kafka.record_kernels import Ints
from logkeep.formats.kafka.records import Flags, RecordColumns

TOGETHER = 16
"""So many neighbouring offsets without a key go to one partition: a map of where they went stays short."""


def partitions_of(records: RecordColumns, partitions: int, source_partition: int) -> Ints:
    """For each record the partition, of so many, that it belongs to. Every record has one, or Damaged is raised."""
    found = np.empty(len(records), np.int32)
    key_partitions(records.data, records.spans, partitions, found)
    if (found == OUTSIDE).any():
        raise Damaged("a key does not lie in the bytes of its record")
    round_robin = (records.offsets // TOGETHER + source_partition) % partitions
    return np.where(found == NO_KEY, round_robin, found).astype(np.int32)


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
