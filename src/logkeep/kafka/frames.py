"""Frames: how parts leave in one call of the kernel, where replies land, and where their bodies begin."""

import socket
from collections.abc import Sequence

Bytes = bytes | bytearray | memoryview
_MOST_PARTS = 512
_AFTER_CORRELATION = 4


class ReceiveBuffer:
    """Memory for one reply after the other. The last view is overwritten by the next receive into this buffer."""

    def __init__(self, size_bytes: int = 64 * 1024) -> None:
        self._memory = bytearray(size_bytes)

    def view(self, size_bytes: int) -> memoryview:
        if len(self._memory) < size_bytes:
            self._memory = bytearray(size_bytes)  # a new one: views of the old stay valid for whoever holds them
        return memoryview(self._memory)[:size_bytes]


def send_all(made: socket.socket, parts: Sequence[Bytes]) -> None:
    """As many parts as the kernel takes in one call; what it did not take follows part by part."""
    for at in range(0, len(parts), _MOST_PARTS):
        some = parts[at : at + _MOST_PARTS]
        sent = made.sendmsg(some)
        for part in some:
            if sent < len(part):
                made.sendall(memoryview(part)[sent:])
            sent = max(0, sent - len(part))


def body_start(frame: memoryview, *, tagged: bool) -> int:
    """The body follows the correlation id and, in a flexible reply, the tagged fields of the header."""
    return _skip_tags(frame) if tagged else _AFTER_CORRELATION


def _skip_tags(frame: memoryview) -> int:
    count, at = _varint(frame, _AFTER_CORRELATION)
    for _ in range(count):
        _, at = _varint(frame, at)
        size, at = _varint(frame, at)
        at += size
    return at


def _varint(frame: memoryview, at: int) -> tuple[int, int]:
    value = shift = 0
    while frame[at] & 0x80 and shift < 28:
        value |= (frame[at] & 0x7F) << shift
        at, shift = at + 1, shift + 7
    return value | frame[at] << shift, at + 1
