"""Columns of numbers as they are stored: deflated behind a head, with a CRC-32C over both. Nothing is believed."""

import struct
import zlib

import google_crc32c

from logkeep.errors import Damaged

_MAX_RATIO = 1100
"""zlib cannot shrink anything more than 1,032 times: a size beyond that is a lie, found before memory is taken."""


def checksum(mark: bytes, count: int, body: bytes) -> int:
    """Over the mark that a file begins with, the number of its rows, and its body."""
    head = mark + struct.pack("<I", count)
    return int(google_crc32c.extend(google_crc32c.value(head), body))


def inflate(body: bytes, size: int, what: str, subject: str) -> bytes:
    """Exactly `size` bytes, or Damaged: never more memory than a body of this length can stand for."""
    if size > len(body) * _MAX_RATIO:
        raise Damaged(f"the {what} promises more than it can hold", subject=subject)
    stream = zlib.decompressobj()
    try:
        plain = stream.decompress(body, size + 1)
    except zlib.error as error:
        raise Damaged(f"the {what} cannot be unpacked", subject=subject) from error
    if len(plain) != size or not stream.eof or stream.unused_data:
        raise Damaged(f"the {what} has another size than it says", subject=subject)
    return plain
