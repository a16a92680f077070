"""Outgoing batches, and the producer fields that are written into their headers before sending ("stamping").

Only headers are written, in separate memory: the records of archived batches are never copied. Fields are written in
columns, for all batches at once, then the CRC-32C of each: for archived batches it is computed from the old one.
Stamping again replaces the earlier stamp.
"""

from dataclasses import dataclass
from functools import cached_property
from typing import NamedTuple

import google_crc32c
import numpy as np

from logkeep.formats.kafka.batches import (
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
from logkeep.formats.kafka.header_crc import changed_crc
from logkeep.formats.kafka.record_kernels import Bytes

_SEQUENCES = 1 << 31
"""After the last sequence number comes 0."""
_BROKERS_OWN = APPEND_TIME | TRANSACTIONAL | CONTROL | DELETE_HORIZON
_COLUMNS = np.arange(HEADER_BYTES)


class ReadyBatch(NamedTuple):
    """A batch in two parts that are sent one after the other."""

    head: bytes
    rest: memoryview
    size_bytes: int
    """Of both."""


@dataclass(frozen=True)
class Outgoing:
    """Batches in a buffer, one column entry each."""

    buffer: Bytes
    """Must not change while they are needed; it is not written to."""
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
    """If several archived logs go into one partition: the index of theirs."""
    has_crc: bool = False
    """Whether the headers in the buffer have the right CRC-32C, as archived batches do."""

    def __len__(self) -> int:
        return len(self.positions)

    @property
    def total_records(self) -> int:
        return int(self.records.sum())

    @cached_property
    def heads(self) -> Bytes:
        """One row for each batch: its header, writable and its own."""
        return self.first_heads()

    def first_heads(self) -> Bytes:
        """The same, as they are in the buffer."""
        found: Bytes = np.ascontiguousarray(self.buffer[self.positions[:, None] + _COLUMNS])
        return found

    def ready(self) -> list[ReadyBatch]:
        """All batches with their current headers; records are not copied."""
        heads, plain = self.heads.tobytes(), self.buffer.data
        columns = (self.positions + HEADER_BYTES).tolist(), (self.positions + self.sizes).tolist(), self.sizes.tolist()
        each_head = range(0, len(heads), HEADER_BYTES)
        return [
            ReadyBatch(heads[head : head + HEADER_BYTES], plain[start:end], size)
            for head, start, end, size in zip(each_head, *columns, strict=True)
        ]

    def batch(self, index: int) -> bytes:
        """One batch in one piece."""
        start, end = int(self.positions[index]), int(self.positions[index] + self.sizes[index])
        return b"".join((self.heads[index].data, self.buffer[start + HEADER_BYTES : end].data))


def stamp(
    outgoing: Outgoing, producer_id: int, epoch: int, first_sequence: int, *, transactional: bool = False
) -> None:
    """Write the fields of this producer into all headers; the first record has `first_sequence`.

    A producer id of -1 is no producer: then there are no sequence numbers either.
    """
    if not len(outgoing):
        return
    headers = outgoing.heads.view(HEADER).reshape(-1)
    _fill(headers, outgoing.records, producer_id, epoch, first_sequence)
    headers["attributes"] &= ~np.int16(_BROKERS_OWN)
    if transactional:
        headers["attributes"] |= np.int16(TRANSACTIONAL)
    headers["crc"] = _crcs_from_old(outgoing) if outgoing.has_crc else _crcs(outgoing)


def header_bytes(headers: Headers) -> Bytes:
    """One row of bytes per header."""
    return headers.view(np.uint8).reshape(-1, HEADER_BYTES)


def _fill(headers: Headers, records: Longs, producer_id: int, epoch: int, first_sequence: int) -> None:
    headers["base_offset"], headers["leader_epoch"] = 0, -1
    headers["producer_id"], headers["producer_epoch"] = producer_id, epoch
    before = np.cumsum(records) - records
    headers["base_sequence"] = -1 if producer_id < 0 else (first_sequence + before) % _SEQUENCES


def _crcs_from_old(outgoing: Outgoing) -> list[int]:
    old = outgoing.first_heads()
    crcs, following = old.view(HEADER).reshape(-1)["crc"].tolist(), (outgoing.sizes - HEADER_BYTES).tolist()
    rows = zip(crcs, old[:, CRC_FROM:], outgoing.heads[:, CRC_FROM:], following, strict=True)
    return [changed_crc(*row) for row in rows]


def _crcs(outgoing: Outgoing) -> list[int]:
    crc_of, extended, buffer = google_crc32c.value, google_crc32c.extend, outgoing.buffer
    heads = [crc_of(head) for head in outgoing.heads[:, CRC_FROM:]]
    starts, ends = (outgoing.positions + HEADER_BYTES).tolist(), (outgoing.positions + outgoing.sizes).tolist()
    return [extended(head, buffer[start:end]) for head, start, end in zip(heads, starts, ends, strict=True)]
