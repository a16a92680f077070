"""The smallest possible client of a real ZooKeeper: requests in jute over a socket, many on their way at once.

It knows what the usual Python client does not: containers, nodes with a time to live, data that is null, and multis of
all of them. It shares no code with the product.
"""

import socket
import struct
from collections.abc import Sequence
from typing import NamedTuple, Self

_TIMEOUT_S = 60.0
_PING, _AUTH = -2, -4
_END_OF_MULTI = struct.pack(">i?i", -1, True, -1)
EPHEMERAL, SEQUENTIAL = 1, 2
Acl = tuple[int, str, str]
OPEN: tuple[Acl, ...] = ((31, "world", "anyone"),)


class Op(NamedTuple):
    """A request without its number; `operations` counts what it asks for."""

    kind: int
    payload: bytes
    operations: int = 1


class Reply(NamedTuple):
    zxid: int
    error: int
    payload: bytes


def text(value: str) -> bytes:
    encoded = value.encode()
    return struct.pack(">i", len(encoded)) + encoded


def data(value: bytes | None) -> bytes:
    return struct.pack(">i", -1) if value is None else struct.pack(">i", len(value)) + value


def acl_list(acls: Sequence[Acl]) -> bytes:
    return struct.pack(">i", len(acls)) + b"".join(struct.pack(">i", p) + text(s) + text(i) for p, s, i in acls)


def create(path: str, value: bytes | None, acls: Sequence[Acl] = OPEN, flags: int = 0, *, kind: int = 1) -> Op:
    """`kind` 15 is create2, which 3.4 does not know."""
    return Op(kind, text(path) + data(value) + acl_list(acls) + struct.pack(">i", flags))


def create_container(path: str, value: bytes | None) -> Op:
    return Op(19, create(path, value, flags=4).payload)


def create_ttl(path: str, value: bytes | None, ttl_ms: int) -> Op:
    return Op(21, create(path, value, flags=5).payload + struct.pack(">q", ttl_ms))


def delete(path: str, version: int = -1) -> Op:
    return Op(2, text(path) + struct.pack(">i", version))


def set_data(path: str, value: bytes | None, version: int = -1) -> Op:
    return Op(5, text(path) + data(value) + struct.pack(">i", version))


def set_acl(path: str, acls: Sequence[Acl], version: int = -1) -> Op:
    return Op(7, text(path) + acl_list(acls) + struct.pack(">i", version))


def check(path: str, version: int) -> Op:
    return Op(13, text(path) + struct.pack(">i", version))


def multi(*parts: Op) -> Op:
    pieces = (struct.pack(">i?i", part.kind, False, -1) + part.payload for part in parts)
    return Op(14, b"".join(pieces) + _END_OF_MULTI, len(parts))


def reconfig(joining: str = "", leaving: str = "") -> Op:
    """A null string is what the server takes for nothing said."""
    pieces = (text(each) if each else struct.pack(">i", -1) for each in (joining, leaving, ""))
    return Op(16, b"".join(pieces) + struct.pack(">q", -1))


class RawSession:
    """One session on one connection. Used by one thread."""

    def __init__(self, host: str, *, timeout_ms: int = 40_000, password: str | None = None) -> None:
        """`password` of the super user, who may do everything.

        The client sends nothing by itself: a session ends where a test does something else for as long as `timeout_ms`,
        by default the most that a server grants.
        """
        name, port = host.rsplit(":", 1)
        self._socket = socket.create_connection((name, int(port)), timeout=_TIMEOUT_S)
        try:
            self._socket.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
            self._socket.sendall(_framed(struct.pack(">iqiq", 0, 0, timeout_ms, 0) + data(bytes(16)) + b"\0"))
            _, self.timeout_ms, self.session = struct.unpack_from(">iiq", self._frame())
            _refuse_if(self.session == 0, "the server accepts no session")
            if password is not None:
                self._add_auth(f"super:{password}")
        except BaseException:
            self._socket.close()
            raise

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_exc: object) -> None:
        self.close()

    def send(self, ops: Sequence[Op]) -> None:
        """All at once; `receive` as many replies before the next."""
        packed = (_framed(struct.pack(">ii", number, op.kind) + op.payload) for number, op in enumerate(ops, 1))
        self._socket.sendall(b"".join(packed))

    def receive(self, count: int) -> list[Reply]:
        """In the order of the requests, as ZooKeeper promises."""
        replies: list[Reply] = []
        while len(replies) < count:
            frame = self._frame()
            number, zxid, error = struct.unpack_from(">iqi", frame)
            if number > 0:
                assert number == len(replies) + 1, "a reply is missing"
                replies.append(Reply(zxid, error, frame[16:]))
        return replies

    def do(self, *ops: Op) -> list[Reply]:
        self.send(ops)
        return self.receive(len(ops))

    def must(self, *ops: Op) -> None:
        errors = {reply.error for reply in self.do(*ops)} - {0}
        assert not errors, f"refused with {errors}"

    def ping(self) -> None:
        self._socket.sendall(_framed(struct.pack(">ii", _PING, 11)))
        while struct.unpack_from(">i", self._frame())[0] != _PING:
            pass

    def close(self) -> None:
        """End the session and what belongs to it; `abandon` leaves that to the server's patience."""
        try:
            self.do(Op(-11, b""))
        except OSError:
            pass
        finally:
            self._socket.close()

    def abandon(self) -> None:
        self._socket.close()

    def _add_auth(self, credential: str) -> None:
        self._socket.sendall(_framed(struct.pack(">iii", _AUTH, 100, 0) + text("digest") + data(credential.encode())))
        assert struct.unpack_from(">iqi", self._frame())[2] == 0, "the super user is not accepted"

    def _frame(self) -> bytes:
        (size,) = struct.unpack(">i", self._bytes(4))
        return self._bytes(size)

    def _bytes(self, size: int) -> bytes:
        found = bytearray()
        while len(found) < size:
            piece = self._socket.recv(size - len(found))
            _refuse_if(not piece, "the server hung up")
            found += piece
        return bytes(found)


def _framed(payload: bytes) -> bytes:
    return struct.pack(">i", len(payload)) + payload


def _refuse_if(bad: bool, what: str) -> None:
    if bad:
        raise ConnectionError(what)
