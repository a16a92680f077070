"""A TCP proxy that cuts every connection after a random number of bytes from the server; then a client comes again.

`with CuttingProxy(listen_port, target_port, chance) as proxy:` serves until the block ends; `proxy.cuts` counts. What
either side sends can be held back at a chosen point, so that a test acts while its client is in the middle of it; what
the server sends can be listened to.
"""

import contextlib
import socket
import threading
from collections.abc import Callable
from typing import Self

_CHUNK = 16_384
_POLL_S = 0.2


class Gate:
    """Lets everything pass until it is told to close behind so many more bytes; then nothing, until it is opened."""

    def __init__(self) -> None:
        self._change = threading.Condition()
        self._left: int | None = None

    @property
    def closed(self) -> bool:
        """Whether all that was allowed has passed."""
        return self._left is not None and self._left <= 0

    @property
    def left(self) -> int:
        """How much may still pass before it closes."""
        return self._left or 0

    def close_after(self, size_bytes: int) -> None:
        with self._change:
            self._left = size_bytes

    def open(self) -> None:
        with self._change:
            self._left = None
            self._change.notify_all()

    def passing(self, size_bytes: int) -> None:
        """Wait until so many bytes may pass."""
        with self._change:
            self._change.wait_for(lambda: not self.closed)
            if self._left is not None:
                self._left -= size_bytes


Listener = Callable[[bytes], None]


class CuttingProxy:
    """`budget()` says how many bytes the next connection may bring; None means as many as it likes.

    `gate` holds back what the server sends, `sending` what clients send. `listener()` makes an ear for one connection,
    which hears every byte of the server before it is passed on.
    """

    def __init__(
        self,
        listen_port: int,
        target_port: int,
        budget: Callable[[], int | None],
        gate: Gate | None = None,
        listener: Callable[[], Listener] | None = None,
        sending: Gate | None = None,
    ) -> None:
        self._target, self._budget = target_port, budget
        self._gate, self._sending, self._listener_for = gate or Gate(), sending or Gate(), listener or (lambda: _deaf)
        self._listener = socket.create_server(("127.0.0.1", listen_port))
        self._listener.settimeout(_POLL_S)
        self._stop = threading.Event()
        self._lock = threading.Lock()
        self._open: set[socket.socket] = set()
        self._threads = [threading.Thread(target=self._accept)]
        self.cuts = 0
        self.accepted = 0

    def __enter__(self) -> Self:
        self._threads[0].start()
        return self

    def __exit__(self, *_exc: object) -> None:
        self._stop.set()
        self._gate.open()
        self._sending.open()
        self.hang_up()
        while self._threads:
            self._threads.pop().join()
        self._listener.close()

    @property
    def connections(self) -> int:
        """How many ends of connections are open; none of a client that is gone once all that it sent is passed on."""
        return len(self._open)

    def hang_up(self) -> None:
        """Cut all connections there are."""
        for each in list(self._open):
            _hang_up(each)

    def _accept(self) -> None:
        while not self._stop.is_set():
            try:
                client, _ = self._listener.accept()
            except TimeoutError:
                continue
            self.accepted += 1
            try:
                server = socket.create_connection(("127.0.0.1", self._target), timeout=5)
            except OSError:
                client.close()
                continue
            server.settimeout(None)
            self._open |= {client, server}
            self._start(client, server, None, lambda data: self._sending.passing(len(data)))
            self._start(server, client, self._budget(), self._ear())

    def _ear(self) -> Listener:
        listener = self._listener_for()

        def heard(data: bytes) -> None:
            self._gate.passing(len(data))
            listener(data)

        return heard

    def _start(self, source: socket.socket, sink: socket.socket, budget: int | None, heard: Listener) -> None:
        thread = threading.Thread(target=self._pump, args=(source, sink, budget, heard))
        self._threads.append(thread)
        thread.start()

    def _pump(self, source: socket.socket, sink: socket.socket, budget: int | None, heard: Listener) -> None:
        left = budget
        with contextlib.suppress(OSError):
            while data := source.recv(_CHUNK if left is None else min(_CHUNK, left)):
                heard(data)
                sink.sendall(data)
                if left is not None:
                    left -= len(data)
                    if left <= 0:
                        with self._lock:
                            self.cuts += 1
                        break
        _hang_up(source)
        _hang_up(sink)
        source.close()
        self._open.discard(source)


def _deaf(data: bytes) -> None:
    """Nobody listens."""


def _hang_up(connection: socket.socket) -> None:
    with contextlib.suppress(OSError):
        connection.shutdown(socket.SHUT_RDWR)
