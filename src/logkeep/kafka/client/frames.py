"""Frames of the protocol: sending parts in one system call, receiving into buffers, finding the body of a reply."""

import socket
import ssl
from collections.abc import Iterator, Sequence
from contextlib import suppress
from functools import lru_cache

Bytes = bytes | bytearray | memoryview
_MOST_PARTS = 512
_AFTER_CORRELATION = 4
_WORTH_WAKING_BYTES = 1 << 20
_FIRST_GROWTH_BYTES = 256 * 1024


class ReceiveBuffer:
    """Memory for one reply at a time: the next receive overwrites the last view.

    It grows with the bytes that arrived, not to the length that a server promises.
    """

    def __init__(self, size_bytes: int = 64 * 1024) -> None:
        self._memory = bytearray(size_bytes)

    def parts_to_fill(self, size_bytes: int) -> Iterator[memoryview]:
        """Parts of the memory to fill one after the other, until they are `size_bytes` together."""
        filled = 0
        while filled < size_bytes:
            if filled == len(self._memory):
                self._grow(min(size_bytes, max(2 * filled, _FIRST_GROWTH_BYTES)))
            end = min(size_bytes, len(self._memory))
            yield memoryview(self._memory)[filled:end]
            filled = end

    def view(self, size_bytes: int) -> memoryview:
        """The bytes that `parts_to_fill` was filled with."""
        return memoryview(self._memory)[:size_bytes]

    def _grow(self, size_bytes: int) -> None:
        larger = bytearray(size_bytes)  # a new one: views of the old one stay valid
        larger[: len(self._memory)] = self._memory
        self._memory = larger


def send_all(made: socket.socket, parts: Sequence[Bytes]) -> None:
    """Send as many parts as the kernel takes in one call, and the rest part by part."""
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
    """Receive some bytes; returns their number, or 0 at the end of the stream. Raises TimeoutError if nothing came.

    For a large reply the kernel wakes this thread only when many bytes are there: a thousand small wake-ups per second
    would each take the interpreter from the thread that works on the last reply. Fewer bytes within the timeout are
    progress as well.
    """
    if isinstance(made, ssl.SSLSocket):
        return made.recv_into(into)  # the kernel counts encrypted bytes
    made.setsockopt(socket.SOL_SOCKET, socket.SO_RCVLOWAT, min(len(into), _WORTH_WAKING_BYTES))
    try:
        return made.recv_into(into)
    except TimeoutError:
        with suppress(BlockingIOError):
            return _receive_available(made, into)
        raise


def _receive_available(made: socket.socket, into: memoryview) -> int:
    """Receive what is there already. Raises BlockingIOError if that is nothing."""
    timeout_s = made.gettimeout()
    made.setblocking(False)
    try:
        return made.recv_into(into)
    finally:
        made.settimeout(timeout_s)


def body_start(frame: memoryview, *, tagged: bool) -> int:
    """The body follows the correlation id and, in a flexible reply, the tagged fields of the header."""
    return _skip_tags(frame) if tagged else _AFTER_CORRELATION


@lru_cache(4096)
def encode_varint(number: int) -> bytes:
    """Cached: batches have few different sizes."""
    encoded = bytearray()
    while number > 127:
        encoded.append(number & 127 | 128)
        number >>= 7
    encoded.append(number)
    return bytes(encoded)


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
