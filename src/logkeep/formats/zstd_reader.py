"""Unpacks adjacent zstd frames: logs by pyarrow (`zstd_frames.opened`), documents by Python's own zstd.

A document is small, and commands that only read documents answer at once: they load no pyarrow. Frames of both kinds
are checked before memory is allocated, and raise only Damaged.
"""

import sys
from collections.abc import Callable, Iterator
from itertools import chain

from logkeep.errors import Damaged
from logkeep.formats.zstd_frames import HEAD_BYTES, LARGEST_SHARED, frame_end, frame_head, most_content

FrameOpener = Callable[[memoryview, int, str], memoryview]
"""Takes one complete frame, the size of its content and a name for errors; returns the content."""


def unpacked_frames(chunks: Iterator[bytes], most: int, name: str, open_frame: FrameOpener) -> Iterator[memoryview]:
    """The content of each frame. Frames that would exceed `most` in total are refused."""
    rest = memoryview(b"")
    for chunk in chain(chunks, (b"",)):
        rest = memoryview(bytes(rest) + chunk) if rest else memoryview(chunk)
        while len(rest) >= (HEAD_BYTES if chunk else 1):
            head = frame_head(rest, name)
            if head.content_bytes > most:
                raise Damaged("frames hold more bytes than were written", subject=name)
            end = frame_end(rest, head, name)
            if end is None:
                break
            yield open_frame(rest[:end], head.content_bytes, name)
            rest, most = rest[end:], most - head.content_bytes
    if len(rest):
        raise Damaged("the last frame is truncated", subject=name)


def opened_document(frame: memoryview, content_bytes: int, subject: str) -> memoryview:
    """The plain bytes of one complete frame of a document, by Python's own zstd: no pyarrow is loaded."""
    if sys.version_info >= (3, 14):
        from compression import zstd  # noqa: PLC0415 - most commands unpack nothing
    else:
        from backports import zstd  # noqa: PLC0415 - as above

    if content_bytes > LARGEST_SHARED:
        raise Damaged("a frame is larger than a document may be", subject=subject)
    if content_bytes > most_content(frame):
        raise Damaged("a frame says that it holds more than its blocks can", subject=subject)
    unpacking = zstd.ZstdDecompressor()
    try:
        plain = unpacking.decompress(frame, content_bytes + 1)
    except zstd.ZstdError as error:
        raise Damaged("a frame cannot be unpacked", subject=subject) from error
    if len(plain) != content_bytes or not unpacking.eof:
        raise Damaged("a frame cannot be unpacked", subject=subject)
    return memoryview(plain)
