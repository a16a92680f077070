"""The header of a log's last archived batch: what shows later whether the log is still the one that was archived.

Two pasts of one log have the same cluster id, topic id, leader epochs and offsets: a broker that was started with an
earlier copy of its disk writes other records under the same ones. The last archived batch differs, because its CRC-32C
covers its records.
"""

import msgspec


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

    @property
    def end(self) -> int:
        return self.last_offset + 1

    @property
    def kept_by_compaction(self) -> tuple[int, ...]:
        """The fields that are the same after the cleaner has rewritten the batch."""
        from logkeep.formats.kafka.batches import APPEND_TIME, CONTROL, TRANSACTIONAL  # noqa: PLC0415 - imports numpy

        kind = self.attributes & (APPEND_TIME | TRANSACTIONAL | CONTROL)
        place = self.base_offset, self.last_offset, self.leader_epoch
        return (*place, self.producer_id, self.producer_epoch, self.base_sequence, kind)
