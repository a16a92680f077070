"""Stored columns of numbers: a head, then compressed data, with a CRC-32C over both. All of it is checked."""

import struct
import zlib

import google_crc32c

from logkeep.errors import Damaged

_MAX_RATIO = 1100
"""zlib compresses at most 1,032 times: a larger size is false, and is found before memory is allocated."""


def checksum(mark: bytes, count: int, body: bytes) -> int:
    """Of a file's magic bytes, its number of rows and its body."""
    head = mark + struct.pack("<I", count)
    return int(google_crc32c.extend(google_crc32c.value(head), body))


def inflate(body: bytes, size: int, what: str, subject: str) -> bytes:
    """Decompress to exactly `size` bytes. Raises Damaged, and allocates no more than the body can hold."""
    if size > len(body) * _MAX_RATIO:
        raise Damaged(f"the {what} claims more data than it can hold", subject=subject)
    stream = zlib.decompressobj()
    try:
        plain = stream.decompress(body, size + 1)
    except zlib.error as error:
        raise Damaged(f"the {what} cannot be unpacked", subject=subject) from error
    if len(plain) != size or not stream.eof or stream.unused_data:
        raise Damaged(f"the {what} has another size than it claims", subject=subject)
    return plain
