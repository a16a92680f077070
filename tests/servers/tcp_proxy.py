"""A TCP proxy that cuts every connection after a random number of bytes from the server; then a client comes again.

`with CuttingProxy(listen_port, target_port, chance) as proxy:` serves until the block ends; `proxy.cuts` counts.
"""

import contextlib
import socket
import threading
from collections.abc import Callable
from typing import Self

_CHUNK = 16_384
_POLL_S = 0.2


class CuttingProxy:
    """`budget()` says how many bytes the next connection may bring; None means as many as it likes."""

    def __init__(self, listen_port: int, target_port: int, budget: Callable[[], int | None]) -> None:
        self._target, self._budget = target_port, budget
        self._listener = socket.create_server(("127.0.0.1", listen_port))
        self._listener.settimeout(_POLL_S)
        self._stop = threading.Event()
        self._lock = threading.Lock()
        self._open: set[socket.socket] = set()
        self._threads = [threading.Thread(target=self._accept)]
        self.cuts = 0

    def __enter__(self) -> Self:
        self._threads[0].start()
        return self

    def __exit__(self, *_exc: object) -> None:
        self._stop.set()
        for each in list(self._open):
            _hang_up(each)
        while self._threads:
            self._threads.pop().join()
        self._listener.close()

    def _accept(self) -> None:
        while not self._stop.is_set():
            try:
                client, _ = self._listener.accept()
            except TimeoutError:
                continue
            try:
                server = socket.create_connection(("127.0.0.1", self._target), timeout=5)
            except OSError:
                client.close()
                continue
            server.settimeout(None)
            self._open |= {client, server}
            self._start(client, server, None)
            self._start(server, client, self._budget())

    def _start(self, source: socket.socket, sink: socket.socket, budget: int | None) -> None:
        thread = threading.Thread(target=self._pump, args=(source, sink, budget))
        self._threads.append(thread)
        thread.start()

    def _pump(self, source: socket.socket, sink: socket.socket, budget: int | None) -> None:
        left = budget
        with contextlib.suppress(OSError):
            while data := source.recv(_CHUNK if left is None else min(_CHUNK, left)):
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


def _hang_up(connection: socket.socket) -> None:
    with contextlib.suppress(OSError):
        connection.shutdown(socket.SHUT_RDWR)
