"""Reads a segment of Zeebe's log from its first byte to its last frame: every CRC, index, term and position.

`SegmentScan` yields blocks of frames whose CRC-32C is right, with rows of their records, and says at the end why it
stopped. It reads forward only, at most `BLOCK_BYTES` at once unless a frame is longer, and no frame may be longer than
`LARGEST_FRAME`. It never raises for what the bytes are, only what `read` raises.
"""

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from enum import StrEnum

import google_crc32c
import numpy as np

from logkeep.errors import Damaged
from logkeep.formats.zeebe import frame_kernels as kernels
from logkeep.formats.zeebe.frame_kernels import FRAME_HEAD, Bytes, Longs
from logkeep.formats.zeebe.segment_descriptor import DESCRIPTOR_BYTES, SegmentDescriptor, read_descriptor

BLOCK_BYTES = 4 << 20
LARGEST_FRAME = 64 << 20
_SMALLEST_FRAME = FRAME_HEAD + 28
_BEHIND = 64 << 10
"""Number of bytes after the last frame that are read, to find frames that were there."""

Read = Callable[[int], bytes]
"""The next bytes of the segment, at most `size`; fewer only at its end."""

_FRAMES = {
    kernels.BAD_START: "a frame begins with an unknown byte",
    kernels.BAD_HEADER: "a frame has an unknown header",
    kernels.BAD_LENGTH: "a frame has an impossible length",
}
_ENTRIES = {
    kernels.BAD_PAYLOAD: "the head of an entry is not as expected",
    kernels.BAD_INDEX: "the index of an entry does not follow the one before",
    kernels.BAD_ENTRY: "an entry is not as expected",
    kernels.BAD_TERM: "the term of an entry is lower than the one before",
    kernels.BAD_LOWEST: "an entry states another lowest position than its frame",
    kernels.BAD_RECORD: "a record is not as expected",
    kernels.BAD_METADATA: "the metadata of a record is not as expected",
    kernels.BAD_POSITION: "the position of a record does not follow the one before",
    kernels.FULL: "an entry has more records than fit into its bytes",
}


class ScanEnd(StrEnum):
    """Why a scan ended."""

    UNUSED = "unused"
    """Only zeros: the segment was preallocated and never used."""
    ZEROS = "zeros"
    """After the last frame are zeros."""
    WHOLE = "whole"
    """The segment ends with its last frame."""
    OLD_BYTES = "old-bytes"
    """After the last frame are bytes that are not a frame of this log."""
    CUT_OFF = "cut-off"
    """After the last frame is the next frame of this log, without its first byte."""
    TORN = "torn"
    """The segment ends inside a frame."""
    DAMAGED = "damaged"


@dataclass(frozen=True)
class SegmentBlock:
    """Frames whose CRC-32C and entries are right."""

    buffer: Bytes
    base: int
    """Where the buffer begins in the segment."""
    frames: Longs
    rows: Longs
    """Records: every one, or those that checks need."""


class SegmentScan:
    """One scan of one segment. `facts` continue from the segment before, where the caller passes them."""

    def __init__(self, read: Read, *, every: bool = False) -> None:
        self._read, self._every = read, every
        self.descriptor: SegmentDescriptor | None = None
        self.facts = np.full(kernels.FACTS, -1, np.int64)
        self.facts[kernels.RECORDS] = self.facts[kernels.ODD_FLAGS] = 0
        self.end = ScanEnd.DAMAGED
        self.reason = ""
        self.used_bytes = 0
        """Up to the end of the last good frame."""
        self.last_frame_at = 0
        self.read_bytes = 0

    def fact(self, which: int) -> int:
        return int(self.facts[which])

    def blocks(self) -> Iterator[SegmentBlock]:
        """All good frames in order."""
        head = self._more(DESCRIPTOR_BYTES)
        try:
            self.descriptor = read_descriptor(head)
        except Damaged as error:
            self.end, self.reason = ScanEnd.DAMAGED, error.what
            return
        if self.descriptor is None:
            self.end = ScanEnd.UNUSED if _zeros(self._more(_BEHIND)) else ScanEnd.DAMAGED
            self.reason = "its descriptor is missing, and it has data" if self.end is ScanEnd.DAMAGED else ""
            return
        self.facts[kernels.LAST_INDEX] = self.descriptor.first_index - 1
        self.facts[kernels.FIRST_INDEX] = self.descriptor.first_index
        self.used_bytes = DESCRIPTOR_BYTES
        yield from self._frames()

    def _frames(self) -> Iterator[SegmentBlock]:
        held, needed, ended = b"", BLOCK_BYTES, False
        while True:
            more = self._more(max(needed - len(held), BLOCK_BYTES - len(held), 1))
            ended, held = not more, held + more
            buffer, base = np.frombuffer(held, np.uint8), self.used_bytes
            rows = np.empty((len(held) // _SMALLEST_FRAME + 1, kernels.FRAME_COLUMNS), np.int64)
            status, at, needed, count = kernels.walk_frames(buffer, 0, len(held), LARGEST_FRAME, rows)
            block, wrong = self._checked(buffer, base, rows[:count])
            if len(block.frames):
                yield block
            if wrong:
                self.end, self.reason = ScanEnd.DAMAGED, wrong
                return
            held = held[at:]
            if status == kernels.MORE and not ended:
                continue
            self._stopped(status, held)
            return

    def _checked(self, buffer: Bytes, base: int, frames: Longs) -> tuple[SegmentBlock, str]:
        """The frames up to the first wrong one, and what is wrong with that."""
        good, wrong = _first_broken(buffer, frames), ""
        if good < len(frames):
            wrong = "a frame has another CRC-32C than it states"
        payload = int(frames[:good, kernels.PAYLOAD_SIZE].sum())
        rows = np.empty((payload // kernels.SMALLEST_RECORD + 1, kernels.RECORD_COLUMNS), np.int64)
        status, number, filled = kernels.walk_entries(buffer, frames[:good], self.facts, rows, int(self._every))
        if status != kernels.GOOD:
            good, wrong = number, _ENTRIES[status]
        if good:
            last = frames[good - 1]
            self.last_frame_at = base + int(last[kernels.FRAME_AT])
            self.used_bytes = base + int(last[kernels.PAYLOAD_AT] + last[kernels.PAYLOAD_SIZE])
        found = rows[:filled]
        inside = found[found[:, kernels.FRAME_END] <= self.used_bytes - base]
        return SegmentBlock(buffer, base, frames[:good], inside), wrong

    def _stopped(self, status: int, held: bytes) -> None:
        if status in _FRAMES:
            self.end, self.reason = ScanEnd.DAMAGED, _FRAMES[status]
        elif status == kernels.MORE:
            self.end = ScanEnd.TORN if held else ScanEnd.WHOLE
            self.reason = "it ends inside a frame" if held else ""
        else:
            self._behind(held + self._more(max(_BEHIND - len(held), 0)))

    def _behind(self, held: bytes) -> None:
        """What follows the zero that ends the frames. Zeebe cuts a log by writing this zero over a frame's first byte,
        and a flipped bit does the same."""
        self.end = ScanEnd.ZEROS if _zeros(held) else ScanEnd.OLD_BYTES
        if _zeros(held[:FRAME_HEAD]):
            return
        buffer = np.frombuffer(b"\x01" + held[1:], np.uint8)
        rows = np.empty((1, kernels.FRAME_COLUMNS), np.int64)
        *_, count = kernels.walk_frames(buffer, 0, len(buffer), LARGEST_FRAME, rows)
        index = int.from_bytes(held[FRAME_HEAD + 8 : FRAME_HEAD + 16], "little")
        if _first_broken(buffer, rows[:count]) and index == self.fact(kernels.LAST_INDEX) + 1:
            self.end = ScanEnd.CUT_OFF

    def _more(self, size: int) -> bytes:
        data = self._read(size) if size else b""
        self.read_bytes += len(data)
        return data


def _zeros(data: bytes) -> bool:
    return data.count(0) == len(data)


def _first_broken(buffer: Bytes, frames: Longs) -> int:
    """The number of frames before the first with a wrong CRC-32C."""
    crc_of = google_crc32c.value
    starts = frames[:, kernels.PAYLOAD_AT]
    ends = starts + frames[:, kernels.PAYLOAD_SIZE]
    for number, (start, end, crc) in enumerate(
        zip(starts.tolist(), ends.tolist(), frames[:, kernels.FRAME_CRC].tolist(), strict=True)
    ):
        if crc_of(buffer[start:end]) != crc:
            return number
    return len(frames)
