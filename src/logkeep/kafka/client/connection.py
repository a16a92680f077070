"""One blocking connection to one broker: frames, correlation ids, versions, several requests in flight.

`call` sends a request and waits for the reply. `send` and `receive` keep several requests in flight; a broker answers
in the order of the requests. `send_raw` and `receive_raw` do the same for Fetch and Produce, whose bytes must not be
copied: parts are passed to the kernel as they are, replies are read into a buffer of the caller. After any failure the
connection is closed: after half a reply nothing else can be trusted. Not for several threads at once.
"""

import collections
import socket
import ssl
import struct
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, NoReturn, Self

from logkeep.errors import ClusterTooOld, ClusterUnreachable, InvalidAnswer, LogkeepError
from logkeep.kafka.client.error_codes import OK, UNSUPPORTED_VERSION, failure
from logkeep.kafka.client.frames import Bytes, ReceiveBuffer, body_start, receive_some, send_all
from logkeep.kafka.client.listener import unlike_kafka
from logkeep.kafka.client.protocol import Shape, decode, encode, shape
from logkeep.kafka.client.reply_limits import BEFORE_AUTHENTICATION, fetch_limit, reply_limit
from logkeep.kafka.client.security.sasl import authenticate
from logkeep.kafka.client.security.tls import explain_tls, tls_context
from logkeep.kafka.client.settings import ClientSettings, Endpoint
from logkeep.kafka.client.tcp import dial, error_text
from logkeep.model.version import __version__

_API_VERSIONS = shape("ApiVersions")
_USUAL_FETCH_BYTES = 8 << 20
_TOGETHER = 16
"""Requests of `call_all` in flight: a broker answers them one after the other, but need not wait for the next."""
_RENEW_AT = 0.85
"""Part of the lifetime of an authentication: a broker closes the connection when it expires."""


@dataclass(frozen=True)
class _Flight:
    correlation: int
    what: Shape
    version: int

    @property
    def tagged(self) -> bool:
        """Flexible replies have tagged fields in their header; by definition that of ApiVersions never has."""
        return self.what is not _API_VERSIONS and self.what.flexible(self.version)

    @property
    def most_bytes(self) -> int:
        """The limit of the reply's size."""
        api = self.what.api
        return fetch_limit(_USUAL_FETCH_BYTES) if api == "Fetch" else reply_limit(api)


class Connection:
    """Made by `Connection.open`. Knows the API versions of its broker."""

    def __init__(self, endpoint: Endpoint, made: socket.socket, settings: ClientSettings) -> None:
        self.endpoint = endpoint
        self.closed = False
        self._socket = made
        self._client_id, self._protocol = settings.client_id, settings.protocol
        self._next = 0
        self._flights: collections.deque[_Flight] = collections.deque()
        self._most_bytes: collections.deque[int] = collections.deque()
        """Size limits of the replies that `receive_frame` will return, in the order of sending."""
        self._authenticated = False
        self._small = ReceiveBuffer()
        self._ranges: dict[int, tuple[int, int]] = {}
        self._renew_at = float("inf")

    @classmethod
    def open(
        cls,
        endpoint: Endpoint,
        settings: ClientSettings,
        *,
        context: ssl.SSLContext | None = None,
        clock: Callable[[], float] = time.monotonic,
    ) -> Self:
        """Connect, encrypt, negotiate, authenticate. With `context` the key stores are not read again."""
        if context is None and settings.tls:
            context = tls_context(settings)
        made = cls(endpoint, dial(endpoint, settings, context), settings)
        try:
            made._negotiate()
            if settings.sasl is not None:
                lifetime_s = authenticate(made.call, settings.sasl, str(endpoint), tls=settings.tls)
                made._renew_at = clock() + lifetime_s * _RENEW_AT if lifetime_s else float("inf")
            made._authenticated = True
        except BaseException:
            made.close()
            raise
        return made

    def __repr__(self) -> str:
        return f"Connection({self.endpoint}{', closed' if self.closed else ''})"

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_exc: object) -> None:
        self.close()

    def close(self) -> None:
        self.closed = True
        self._flights.clear()
        self._most_bytes.clear()
        self._socket.close()

    @property
    def in_flight(self) -> int:
        """Requests whose replies have not been received."""
        return len(self._flights)

    def needs_replacement(self, now: float) -> bool:
        """Whether to open another one instead: closed, or its authentication is about to expire."""
        return self.closed or now >= self._renew_at

    def speaks(self, api: str) -> bool:
        """Whether the broker and this release have a common version of the API."""
        return self._common(shape(api), None) is not None

    def version(self, api: str, *, at_most: int | None = None) -> int:
        """The highest common version. Raises `ClusterTooOld`."""
        what = shape(api)
        found = self._common(what, at_most)
        if found is not None:
            return found
        theirs = self._ranges.get(what.key)
        offer = f"the broker speaks versions {theirs[0]} to {theirs[1]}" if theirs else "the broker does not have it"
        ours = f"{what.lowest} to {what.highest if at_most is None else min(at_most, what.highest)}"
        raise ClusterTooOld(f"no common version of {api}: {offer}, logkeep {ours}", subject=str(self.endpoint))

    def call(self, api: str, fields: Mapping[str, Any] | None = None, *, at_most: int | None = None) -> Any:
        """One request and its reply; nothing else may be in flight."""
        if self._flights:
            raise LogkeepError("call while replies are due", subject=str(self.endpoint), remedy="report this")
        self.send(api, fields, at_most=at_most)
        return self.receive()

    def call_all(self, api: str, many: Sequence[Mapping[str, Any]]) -> list[Any]:
        """The replies to many requests of one kind, in their order; some are in flight at the same time."""
        if self._flights:
            raise LogkeepError("call while replies are due", subject=str(self.endpoint), remedy="report this")
        sent, replies = 0, list[Any]()
        while len(replies) < len(many):
            while sent < len(many) and sent - len(replies) < _TOGETHER:
                self.send(api, many[sent])
                sent += 1
            replies.append(self.receive())
        return replies

    def send(self, api: str, fields: Mapping[str, Any] | None = None, *, at_most: int | None = None) -> None:
        """Send a request; a later `receive` returns its reply, in the order of sending."""
        what, version = shape(api), self.version(api, at_most=at_most)
        correlation = self._next_correlation()
        self._transmit([encode(what, version, fields or {}, correlation, self._client_id)])
        self._flights.append(_Flight(correlation, what, version))

    def receive(self) -> Any:
        """The decoded reply to the oldest request in flight. Also for a raw request whose reply is small."""
        flight = self._oldest()
        body = self._receive_frame(self._small, flight)
        try:
            return decode(flight.what, flight.version, body)
        except LogkeepError as error:
            if flight.what is _API_VERSIONS and not self._authenticated:
                self._not_kafka(found=f": {error.what}")
            self.close()
            raise

    def send_raw(self, api: str, version: int, parts: Sequence[Bytes]) -> None:
        """Send a request whose body is ready in `parts`; length and header are added, nothing is copied."""
        what, correlation = shape(api), self._next_correlation()
        client = self._client_id.encode()
        header = struct.pack(f">hhih{len(client)}s", what.key, version, correlation, len(client), client)
        header += b"\0" if what.flexible(version) else b""
        length = len(header) + sum(map(len, parts))
        self._transmit([struct.pack(">i", length) + header, *parts])
        self._flights.append(_Flight(correlation, what, version))

    def receive_raw(self, buffer: ReceiveBuffer) -> memoryview:
        """The body of the oldest reply, in the caller's buffer: valid until that buffer is used again."""
        return self._receive_frame(buffer, self._oldest())

    def send_frame(self, frame: bytes, most_bytes: int) -> None:
        """Send a whole request with length and header, whose reply may have `most_bytes`.

        The caller matches replies to requests itself.
        """
        self._transmit([frame])
        self._most_bytes.append(most_bytes)

    def receive_frame(self, buffer: ReceiveBuffer) -> memoryview:
        """The next reply, starting with its correlation id, in the caller's buffer: valid until that is used again."""
        if not self._most_bytes:
            raise self._nothing_due()
        return self._next_frame(buffer, "a reply", self._most_bytes.popleft())

    def _negotiate(self) -> None:
        """Send ApiVersions 3 first; a broker that does not know it answers in version 0 with its versions."""
        self._ranges = {_API_VERSIONS.key: (0, 3)}
        fields = {"client_software_name": "logkeep", "client_software_version": __version__}
        reply = self.call("ApiVersions", fields)
        if reply.error_code == UNSUPPORTED_VERSION:
            reply = self.call("ApiVersions", {}, at_most=0)
        if reply.error_code != OK:
            raise failure(reply.error_code, subject=str(self.endpoint), doing="ApiVersions")
        self._ranges = {each.api_key: (each.min_version, each.max_version) for each in reply.api_keys}

    def _common(self, what: Shape, at_most: int | None) -> int | None:
        lowest, highest = self._ranges.get(what.key, (0, -1))
        best = min(highest, what.highest, what.highest if at_most is None else at_most)
        return best if best >= max(lowest, what.lowest) else None

    def _next_correlation(self) -> int:
        self._next = (self._next + 1) & 0x7FFFFFFF
        return self._next

    def _oldest(self) -> _Flight:
        if not self._flights:
            raise self._nothing_due()
        return self._flights[0]

    def _nothing_due(self) -> ClusterUnreachable:
        return ClusterUnreachable("no reply is due: the connection was lost before", subject=str(self.endpoint))

    def _transmit(self, parts: Sequence[Bytes]) -> None:
        if self.closed:
            raise ClusterUnreachable("the connection is closed", subject=str(self.endpoint))
        try:
            if isinstance(self._socket, ssl.SSLSocket):
                for part in parts:
                    self._socket.sendall(part)
            else:
                send_all(self._socket, parts)
        except OSError as error:
            self._lost(error, "sending")
        except BaseException:
            self.close()  # a signal in the middle of a frame: nothing can be sent after it
            raise

    def _next_frame(self, buffer: ReceiveBuffer, what: str, most_bytes: int) -> memoryview:
        try:
            first = bytes(self._fill(memoryview(bytearray(4))))
            (size,) = struct.unpack(">i", first)
            if size < 4:
                self._not_kafka(first)
            if size > (most_bytes if self._authenticated else min(most_bytes, BEFORE_AUTHENTICATION)):
                self._too_large(first, what)
            for part in buffer.parts_to_fill(size):
                self._fill(part)
            return buffer.view(size)
        except OSError as error:
            self._lost(error, f"waiting for {what}")
        except BaseException:
            self.close()
            raise

    def _receive_frame(self, buffer: ReceiveBuffer, flight: _Flight) -> memoryview:
        frame = self._next_frame(buffer, flight.what.api, flight.most_bytes)
        self._flights.popleft()
        (correlation,) = struct.unpack_from(">i", frame)
        if correlation != flight.correlation:
            self._not_kafka()
        try:
            return frame[body_start(frame, tagged=flight.tagged) :]
        except IndexError:
            self._not_kafka()

    def _fill(self, view: memoryview) -> memoryview:
        got, size = 0, len(view)
        while got < size:
            count = receive_some(self._socket, view[got:])
            if not count:
                raise ConnectionAbortedError(None, "the broker closed the connection")
            got += count
        return view

    def _too_large(self, first: bytes, what: str) -> NoReturn:
        """Read as a length, the first bytes of an HTTP or TLS server are a huge number: the likely cause at first."""
        announced = f"announces an answer of {int.from_bytes(first, signed=True)} bytes to {what}"
        if not self._authenticated:
            self._not_kafka(first, f": it {announced}")
        self.close()
        raise InvalidAnswer(f"the broker {announced}, more than such an answer can have", subject=str(self.endpoint))

    def _not_kafka(self, first: bytes = b"", found: str = "") -> NoReturn:
        self.close()
        if self._authenticated:
            raise InvalidAnswer("the broker's answer cannot be read", subject=str(self.endpoint))
        raise unlike_kafka(str(self.endpoint), first, self._protocol, found)

    def _lost(self, error: OSError, doing: str) -> NoReturn:
        self.close()
        if isinstance(error, ssl.SSLError) and not isinstance(error, ssl.SSLEOFError):
            # With TLS 1.3 a broker refuses the client certificate only after the handshake, as its first reply.
            raise explain_tls(error, str(self.endpoint)) from error
        raise ClusterUnreachable(
            f"connection lost while {doing}: {error_text(error)}", subject=str(self.endpoint)
        ) from error
