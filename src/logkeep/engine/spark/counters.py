"""Progress of the workers: each task sends the driver a few UDP datagrams a second with its byte count.

Spark reports nothing about a task before it ends. A lost datagram is harmless (the next one carries the total), and so
is a driver that cannot be reached. A random token keeps foreign datagrams out. The attempt is part of a datagram, so
a repeated unit is not counted twice. A unit that failed for good is reported here too: the driver learns of it
before the other units end.
"""

import socket
import struct
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass

from logkeep.engine.outcomes import UnitFailed, decode, encode

_HEADER = struct.Struct("!16sIIQ")
_INTERVAL_S = 0.3
_MAX_DATAGRAM = 60_000


@dataclass(frozen=True)
class CounterAddress:
    """Where the driver listens, and the token it listens for."""

    host: str
    port: int
    token: bytes


class CounterSender:
    """The worker's end, for one attempt at one unit."""

    def __init__(self, address: CounterAddress, unit: int, attempt: int, clock: Callable[[], float]) -> None:
        self._token = address.token
        self._unit = unit
        self._attempt = attempt
        self._clock = clock
        self._done_bytes = 0
        self._next_s = 0.0
        self._socket = _udp_socket()
        with suppress(OSError):
            self._socket.connect((address.host, address.port))  # once: the host name is resolved only once

    def __call__(self, more_bytes: int) -> None:
        self._done_bytes += more_bytes
        now_s = self._clock()
        if now_s >= self._next_s:
            self._next_s = now_s + _INTERVAL_S
            self._send(b"")

    def close(self, failed: UnitFailed | None = None) -> None:
        """Send the last count, and the failure if the unit failed."""
        self._send(encode(failed) if failed else b"")
        self._socket.close()

    def _send(self, body: bytes) -> None:
        # No route, a full queue, an unknown name: the work does not depend on progress.
        with suppress(OSError):
            self._socket.send(_HEADER.pack(self._token, self._unit, self._attempt, self._done_bytes) + body)


class CounterReceiver:
    """The driver's end; `drain` never waits."""

    def __init__(self, host: str, token: bytes, *, bind: str) -> None:
        self._socket = _udp_socket()
        self._socket.bind((bind, 0))
        self.address = CounterAddress(host, self._socket.getsockname()[1], token)
        self._units: dict[int, tuple[int, int]] = {}
        self.failed: UnitFailed | None = None

    def drain(self) -> int:
        """Read what has arrived; return the bytes done by the newest attempt of every unit, summed."""
        while (datagram := self._receive()) is not None:
            self._take(datagram)
        return sum(done_bytes for _attempt, done_bytes in self._units.values())

    def close(self) -> None:
        self._socket.close()

    def _receive(self) -> bytes | None:
        try:
            return self._socket.recv(_MAX_DATAGRAM)
        except BlockingIOError:
            return None

    def _take(self, datagram: bytes) -> None:
        if len(datagram) < _HEADER.size:
            return
        token, unit, attempt, done_bytes = _HEADER.unpack_from(datagram)
        if token != self.address.token:
            return
        # Pairs compare the attempt first: datagrams of an earlier attempt, or that arrive out of order, lose.
        self._units[unit] = max(self._units.get(unit, (0, 0)), (attempt, done_bytes))
        if body := datagram[_HEADER.size :]:
            outcome = decode(body)
            self.failed = outcome if isinstance(outcome, UnitFailed) else self.failed


def _udp_socket() -> socket.socket:
    udp = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
    udp.setblocking(False)
    return udp
