"""The header of a log's last archived batch: what shows later whether the log is still the one that was archived.

Cluster id, topic id, leader epochs and offsets are the same in two pasts of one log: a broker whose disk was put back
writes other records under the same ones. The last archived batch is not the same: its CRC-32C covers its records.
"""

from typing import Self

import msgspec

from logkeep.formats.kafka.batches import APPEND_TIME, CONTROL, TRANSACTIONAL, Batches

KIND_BITS = APPEND_TIME | TRANSACTIONAL | CONTROL
"""Attributes that compaction keeps."""


class LastBatch(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True, omit_defaults=True):
    """All fields of one batch header, and its size in bytes with the header."""

    base_offset: int
    last_offset: int
    leader_epoch: int
    size: int
    crc: int
    records: int
    base_time_ms: int = -1
    max_time_ms: int = -1
    attributes: int = 0
    producer_id: int = -1
    producer_epoch: int = -1
    base_sequence: int = -1

    @classmethod
    def of(cls, batches: Batches, index: int = -1) -> Self:
        """One of these batches, by default the last."""
        header = batches.headers[index]
        same = ("leader_epoch", "crc", "records", "base_time_ms", "max_time_ms", "attributes")
        producer = ("producer_id", "producer_epoch", "base_sequence")
        return cls(
            base_offset=int(batches.base_offsets[index]),
            last_offset=int(batches.last_offsets[index]),
            size=int(batches.sizes[index]),
            **{name: int(header[name]) for name in (*same, *producer)},
        )

    @property
    def end(self) -> int:
        return self.last_offset + 1

    @property
    def kept_by_compaction(self) -> tuple[int, ...]:
        """The fields that are the same after the cleaner has rewritten the batch."""
        kind = self.attributes & KIND_BITS
        place = self.base_offset, self.last_offset, self.leader_epoch
        return (*place, self.producer_id, self.producer_epoch, self.base_sequence, kind)
