"""A log of Zeebe again, with other indexes and positions: as many frames and records as a real one, and larger."""

import io
import struct

import google_crc32c

from logkeep.formats.zeebe import frame_kernels as kernels
from logkeep.formats.zeebe.segment_scan import SegmentScan


def renumbered(data: bytes, index: int, position: int) -> tuple[list[bytes], int, int]:
    """The frames of a segment from this index and position on, and the next of both. Checkpoints get another type."""
    scan = SegmentScan(io.BytesIO(data).read, every=True)
    made = list[bytes]()
    for block in scan.blocks():
        held = bytearray(block.buffer.tobytes())
        for row in block.rows:
            at = int(row[kernels.VALUE_AT])
            _renumber(held, at, int(row[kernels.POSITION]), position + int(row[kernels.POSITION]) - 1)
        for frame in block.frames:
            begin, size = int(frame[kernels.PAYLOAD_AT]), int(frame[kernels.PAYLOAD_SIZE])
            payload = bytearray(held[begin : begin + size])
            struct.pack_into("<Q", payload, 8, index)
            lowest = struct.unpack_from("<q", payload, 16)[0]
            if lowest >= 0:
                struct.pack_into("<q", payload, 16, position + lowest - 1)
                entry = 28 + 17 + 8
                first, last = struct.unpack_from("<QQ", payload, entry)
                struct.pack_into("<QQ", payload, entry, position + first - 1, position + last - 1)
            crc = google_crc32c.value(bytes(payload))
            made.append(struct.pack("<BHHHHqi", 1, 12, 1, 7, 2, crc, size) + payload)
            index += 1
    return made, index, position + scan.fact(kernels.LAST_POSITION)


def _renumber(held: bytearray, value_at: int, old: int, new: int) -> None:
    """The record before this value: its position is found by going back over its metadata."""
    for at in range(value_at - 77, max(value_at - 4096, 0), -1):
        size, found = struct.unpack_from("<i", held, at + 48)[0], struct.unpack_from("<q", held, at + 16)[0]
        if found == old and at + 52 + size == value_at:
            struct.pack_into("<q", held, at + 16, new)
            if held[at + 52 + 23] == 254:
                held[at + 52 + 23] = 253
            return
    raise ValueError(f"no record at position {old}")
