"""Batches that are ready to be sent but for their producer, and the stamp that makes them somebody's.

The fields outside of the records are written in columns: one gather and one scatter for all batches of a buffer, then
the CRC-32C of each. Stamping again replaces the earlier stamp.
"""

from dataclasses import dataclass

import google_crc32c
import numpy as np

from logkeep.formats.kafka_log import (
    APPEND_TIME,
    CONTROL,
    CRC_FROM,
    DELETE_HORIZON,
    HEADER,
    HEADER_BYTES,
    TRANSACTIONAL,
    Headers,
    Longs,
)
from logkeep.formats.record_kernels import Bytes

_SEQUENCES = 1 << 31
"""After the last sequence number comes 0."""
_BROKERS_OWN = APPEND_TIME | TRANSACTIONAL | CONTROL | DELETE_HORIZON
_COLUMNS = np.arange(HEADER_BYTES)
_CRC_BYTES = np.arange(17, CRC_FROM)


@dataclass(frozen=True)
class Outgoing:
    """Batches back to back in a buffer of their own, one column entry each."""

    buffer: Bytes
    """Writable, nobody else's."""
    positions: Longs
    """Where each begins."""
    sizes: Longs
    """Whole, in bytes."""
    records: Longs
    first_offsets: Longs
    """The source offset of each batch's first record; -1 where there is none (fillers)."""
    runs: Longs
    """Rows of (source offset, n): the source offsets of all records in their order, merged where they follow."""
    source: int = 0
    """Where several archived logs go into one partition: which of them these are from."""

    def __len__(self) -> int:
        return len(self.positions)

    @property
    def total_records(self) -> int:
        return int(self.records.sum())

    def batch(self, index: int) -> memoryview:
        """The bytes of one batch, where they lie."""
        start = int(self.positions[index])
        return self.buffer[start : start + int(self.sizes[index])].data


def stamp(
    outgoing: Outgoing, producer_id: int, epoch: int, first_sequence: int, *, transactional: bool = False
) -> None:
    """Write all that a broker must find in a batch of this producer; the first record has `first_sequence`.

    A producer id of -1 is nobody: then there are no sequence numbers either.
    """
    if not len(outgoing):
        return
    places = outgoing.positions[:, None] + _COLUMNS
    headers = outgoing.buffer[places].view(HEADER).reshape(-1)
    _fill(headers, outgoing.records, producer_id, epoch, first_sequence)
    headers["attributes"] &= ~np.int16(_BROKERS_OWN)
    if transactional:
        headers["attributes"] |= np.int16(TRANSACTIONAL)
    outgoing.buffer[places] = header_bytes(headers)
    crcs = np.array(_crcs(outgoing), ">u4").view(np.uint8).reshape(-1, 4)
    outgoing.buffer[outgoing.positions[:, None] + _CRC_BYTES] = crcs


def header_bytes(headers: Headers) -> Bytes:
    """One row of bytes per header."""
    return headers.view(np.uint8).reshape(-1, HEADER_BYTES)


def _fill(headers: Headers, records: Longs, producer_id: int, epoch: int, first_sequence: int) -> None:
    headers["base_offset"], headers["leader_epoch"] = 0, -1
    headers["producer_id"], headers["producer_epoch"] = producer_id, epoch
    before = np.cumsum(records) - records
    headers["base_sequence"] = -1 if producer_id < 0 else (first_sequence + before) % _SEQUENCES


def _crcs(outgoing: Outgoing) -> list[int]:
    crc_of, buffer = google_crc32c.value, outgoing.buffer
    starts, ends = outgoing.positions.tolist(), (outgoing.positions + outgoing.sizes).tolist()
    return [crc_of(buffer[start + CRC_FROM : end]) for start, end in zip(starts, ends, strict=True)]
