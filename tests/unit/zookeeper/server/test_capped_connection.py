"""A hostile ZooKeeper server over a real socket: lengths of replies that kazoo would believe."""

import socket
import struct
import threading
import tracemalloc
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress

import pytest

from logkeep.errors import ClusterError, ClusterUnreachable
from logkeep.zookeeper.server.capped_connection import BEFORE_SESSION
from logkeep.zookeeper.server.client import session

_CLOSE = -11
_STAT = bytes(68)
_HANG_UP = b"hang up"


def _connected() -> bytes:
    """Protocol version, timeout, session id, password, not read-only."""
    body = struct.pack(">iiqi16sx", 0, 10_000, 7, 16, bytes(16))
    return struct.pack(">i", len(body)) + body


def _reply(xid: int, body: bytes) -> bytes:
    return struct.pack(">iiqi", 16 + len(body), xid, 5, 0) + body


@contextmanager
def _server(first: bytes, answer: Callable[[int], bytes]) -> Iterator[str]:
    """Sends `first` to a client that connects, then an answer for the number of each request."""
    with socket.create_server(("127.0.0.1", 0)) as server:
        threading.Thread(target=_accept, args=(server, first, answer), daemon=True).start()
        yield f"127.0.0.1:{server.getsockname()[1]}"
        server.shutdown(socket.SHUT_RDWR)


def _accept(server: socket.socket, first: bytes, answer: Callable[[int], bytes]) -> None:
    with suppress(OSError):
        while True:
            made, _ = server.accept()
            threading.Thread(target=_serve, args=(made, first, answer), daemon=True).start()


def _serve(made: socket.socket, first: bytes, answer: Callable[[int], bytes]) -> None:
    with suppress(OSError), made, made.makefile("rb") as stream:
        connect = stream.read(4)
        stream.read(struct.unpack(">i", connect)[0])
        made.sendall(first)
        while head := stream.read(4):
            xid, kind = struct.unpack_from(">ii", stream.read(struct.unpack(">i", head)[0]))
            sent = _reply(xid, b"") if kind == _CLOSE else answer(xid)
            made.sendall(sent.removesuffix(_HANG_UP))
            if sent.endswith(_HANG_UP):
                return


def test_an_honest_server_is_asked_as_ever() -> None:
    with _server(_connected(), lambda xid: _reply(xid, _STAT)) as host, session(host, 10) as opened:
        assert opened.zxid() == 5


@pytest.mark.parametrize("size", [BEFORE_SESSION + 1, 2**31 - 1, -1])
def test_before_the_session_only_small_replies_are_accepted(size: int) -> None:
    tracemalloc.start()
    try:
        refused = pytest.raises(ClusterUnreachable, match=f"announced a reply of {size} bytes")
        with _server(struct.pack(">i", size) + bytes(100), lambda _: b"") as host, refused, session(host, 0.5):
            pass
        assert tracemalloc.get_traced_memory()[1] < 4 << 20
    finally:
        tracemalloc.stop()


@pytest.mark.parametrize("size", [(1 << 20) + 1, 2**31 - 1, -5])
def test_a_reply_above_the_limit_ends_the_request(size: int) -> None:
    lying = _server(_connected(), lambda _: struct.pack(">i", size) + bytes(100))
    refused = pytest.raises(ClusterError, match=f"announced a reply of {size} bytes, and at most 1048576")
    with lying as host, refused, session(host, 10, largest_reply=1 << 20) as opened:
        opened.zxid()


def test_memory_grows_with_what_arrives() -> None:
    """A reply of 60 MiB is allowed; only the beginning of it comes before the server closes the connection."""
    tracemalloc.start()
    try:
        lying = _server(_connected(), lambda _: struct.pack(">i", 60 << 20) + bytes(1 << 20) + _HANG_UP)
        with lying as host, pytest.raises(ClusterError), session(host, 10) as opened:
            opened.zxid()
        assert tracemalloc.get_traced_memory()[1] < 16 << 20
    finally:
        tracemalloc.stop()
