"""A broker over a real socket that speaks as much of the protocol as an attack needs, and then lies."""

import socket
import struct
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field

from logkeep.kafka.client.settings import ClientSettings, Endpoint, Protocol, Sasl

API_VERSIONS, SASL_HANDSHAKE, SASL_AUTHENTICATE, METADATA = 18, 17, 36, 3
_OFFERED = ((API_VERSIONS, 0, 3), (SASL_HANDSHAKE, 1, 1), (SASL_AUTHENTICATE, 2, 2), (METADATA, 12, 12), (1, 13, 13))


@dataclass(frozen=True)
class BrokerRequest:
    """One request: its API key, correlation id and all bytes after the correlation id."""

    key: int
    correlation: int
    rest: bytes


Answer = Callable[[BrokerRequest], bytes | None]
"""The bytes to send, length included; None for an answer as an honest broker's."""


@dataclass
class HostileBroker:
    port: int
    requests: list[BrokerRequest] = field(default_factory=list)

    @property
    def endpoint(self) -> Endpoint:
        return Endpoint("127.0.0.1", self.port)

    def settings(self, sasl: Sasl | None = None) -> ClientSettings:
        protocol: Protocol = "SASL_PLAINTEXT" if sasl else "PLAINTEXT"
        return ClientSettings((self.endpoint,), protocol=protocol, sasl=sasl, request_timeout_s=20)


def framed(correlation: int, body: bytes) -> bytes:
    return struct.pack(">ii", len(body) + 4, correlation) + body


def promised(correlation: int, size_bytes: int, sent_bytes: int = 0) -> bytes:
    """The beginning of a reply of `size_bytes`, of which so many come."""
    return struct.pack(">ii", size_bytes, correlation) + bytes(sent_bytes)


@contextmanager
def hostile_broker(answer: Answer) -> Iterator[HostileBroker]:
    """Answers each connection in a thread of its own; the connection stays open after a lie."""
    with socket.create_server(("127.0.0.1", 0)) as server:
        broker = HostileBroker(server.getsockname()[1])
        threading.Thread(target=_accept, args=(server, broker, answer), daemon=True).start()
        try:
            yield broker
        finally:
            server.shutdown(socket.SHUT_RDWR)


def _accept(server: socket.socket, broker: HostileBroker, answer: Answer) -> None:
    with suppress(OSError):
        while True:
            made, _ = server.accept()
            threading.Thread(target=_serve, args=(made, broker, answer), daemon=True).start()


def _serve(made: socket.socket, broker: HostileBroker, answer: Answer) -> None:
    with suppress(OSError), made, made.makefile("rb") as stream:
        while head := stream.read(4):
            body = stream.read(struct.unpack(">i", head)[0])
            key, _, correlation = struct.unpack_from(">hhi", body)
            request = BrokerRequest(key, correlation, body[8:])
            broker.requests.append(request)
            made.sendall(answer(request) or _honest(request))


def _honest(request: BrokerRequest) -> bytes:
    if request.key == API_VERSIONS:
        offered = b"".join(struct.pack(">hhhx", *one) for one in _OFFERED)
        return framed(request.correlation, struct.pack(">hB", 0, len(_OFFERED) + 1) + offered + bytes(5))
    if request.key == SASL_HANDSHAKE:
        name = b"SCRAM-SHA-256"
        return framed(request.correlation, struct.pack(">hih", 0, 1, len(name)) + name)
    raise OSError(f"no answer to {request.key}")


def authenticated(correlation: int, auth_bytes: bytes) -> bytes:
    """A SaslAuthenticate reply, version 2."""
    body = struct.pack(">xhB", 0, 0) + bytes((len(auth_bytes) + 1,)) + auth_bytes + bytes(9)
    return framed(correlation, body)
