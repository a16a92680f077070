"""The first bytes of a segment of a partition's log.

Numbers are little-endian. An SBE header is four numbers of 16 bits: length of the block after it, template, schema,
version. Later versions only append to a block.

    bytes   field
     0      version of the layout, 2; 0 in a file that was preallocated and never used
     1..8   SBE header (8, 4, 7, 2)
     9..16  CRC-32C of bytes 17..56
    17..24  SBE header (32, 3, 7, 2)
    25..32  id of the segment
    33..40  index of its first entry
    41..44  its size on disk
    45..52  index of its last entry; 0 as long as Zeebe appends to it
    53..56  where its last frame begins; 0 likewise
    57..    frames
"""

import re
import struct
from dataclasses import dataclass

import google_crc32c

from logkeep.errors import Damaged

DESCRIPTOR_BYTES = 57
_LAYOUT = 2
_HEAD = struct.Struct("<BHHHHq")
_BLOCK = struct.Struct("<HHHHqqiQI")
_HEAD_IDS = (8, 4, 7)
_BLOCK_IDS = (32, 3, 7)
_VERSIONS = (1, 2)
"""Of the schema; they differ in two bits, so no single flipped bit makes one of the other."""
_FILE = re.compile(r"raft-partition-partition-([1-9][0-9]{0,4})-([1-9][0-9]{0,17})\.log")


@dataclass(frozen=True)
class SegmentDescriptor:
    """What a segment says about itself."""

    segment_id: int
    first_index: int
    max_bytes: int
    last_index: int
    """0 as long as Zeebe appends to the segment."""
    last_frame_at: int


def read_descriptor(head: bytes) -> SegmentDescriptor | None:
    """None for a preallocated segment that was never used. Raises Damaged."""
    if len(head) < DESCRIPTOR_BYTES:
        raise Damaged(f"the segment ends after {len(head)} bytes, inside its descriptor")
    if not any(head[:DESCRIPTOR_BYTES]):
        return None
    layout, *ids, version, crc = _HEAD.unpack_from(head)
    if layout != _LAYOUT or tuple(ids) != _HEAD_IDS or version not in _VERSIONS:
        raise Damaged("the descriptor of the segment has an unknown layout")
    if google_crc32c.value(bytes(head[17:DESCRIPTOR_BYTES])) != crc:
        raise Damaged("the descriptor of the segment has another CRC-32C than it states")
    *ids, version, number, first, size, last, last_at = _BLOCK.unpack_from(head, 17)
    if tuple(ids) != _BLOCK_IDS or version not in _VERSIONS or number < 1 or first < 1 or size < DESCRIPTOR_BYTES:
        raise Damaged("the descriptor of the segment has impossible values")
    return SegmentDescriptor(number, first, size, last, last_at)


def write_descriptor(descriptor: SegmentDescriptor) -> bytes:
    """The bytes of a descriptor, as Zeebe 8.6 writes them."""
    block = _BLOCK.pack(
        *_BLOCK_IDS,
        _LAYOUT,
        descriptor.segment_id,
        descriptor.first_index,
        descriptor.max_bytes,
        descriptor.last_index,
        descriptor.last_frame_at,
    )
    return _HEAD.pack(_LAYOUT, *_HEAD_IDS, _LAYOUT, google_crc32c.value(block)) + block


def segment_name(partition: int, number: int) -> str:
    """The file name of a segment."""
    return f"raft-partition-partition-{partition}-{number}.log"


def named_segment(name: str) -> tuple[int, int] | None:
    """Partition and number of the segment that a file name says; None for other files."""
    found = _FILE.fullmatch(name)
    return (int(found[1]), int(found[2])) if found else None
