"""Frames: how parts leave in one call of the kernel, where replies land, and where their bodies begin."""

import socket
import ssl
from collections.abc import Sequence
from contextlib import suppress

Bytes = bytes | bytearray | memoryview
_MOST_PARTS = 512
_AFTER_CORRELATION = 4
_WORTH_WAKING_BYTES = 1 << 20


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
        if sent == sum(map(len, some)):
            continue
        for part in some:
            if sent < len(part):
                made.sendall(memoryview(part)[sent:])
            sent = max(0, sent - len(part))


def receive_some(made: socket.socket, into: memoryview) -> int:
    """Some of the bytes that are missing, or 0 at the end of the stream. Raises TimeoutError when nothing came.

    Of a large reply the kernel is told to wake us only when much of it is there: a thousand small wakings per second
    would each take the interpreter from the thread that works on the last reply. Bytes that come so slowly that a
    timeout is over before there are enough of them are progress all the same.
    """
    if isinstance(made, ssl.SSLSocket):
        return made.recv_into(into)  # what is ready there is not what the kernel counts
    made.setsockopt(socket.SOL_SOCKET, socket.SO_RCVLOWAT, min(len(into), _WORTH_WAKING_BYTES))
    try:
        return made.recv_into(into)
    except TimeoutError:
        with suppress(BlockingIOError):
            return _at_once(made, into)
        raise


def _at_once(made: socket.socket, into: memoryview) -> int:
    """What is there already. Raises BlockingIOError when that is nothing."""
    timeout_s = made.gettimeout()
    made.setblocking(False)
    try:
        return made.recv_into(into)
    finally:
        made.settimeout(timeout_s)


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
