"""A TCP proxy in front of a store that can be switched off: open connections break, new ones are refused."""

import contextlib
import socket
import threading
from typing import Self

from logkeep.embedded.ports import free_ports

_CHUNK = 1 << 16


class StoreSwitch:
    def __init__(self, endpoint: str) -> None:
        self._target = int(endpoint.rpartition(":")[2])
        (self._port,) = free_ports(1)
        self.endpoint = f"http://127.0.0.1:{self._port}"
        self._listener: socket.socket | None = None
        self._open = set[socket.socket]()
        self._lock = threading.Lock()

    def __enter__(self) -> Self:
        self.on()
        return self

    def __exit__(self, *_exc: object) -> None:
        self.off()

    def on(self) -> None:
        if self._listener is not None:
            return
        listener = socket.create_server(("127.0.0.1", self._port))
        self._listener = listener
        threading.Thread(target=self._accept, args=(listener,), daemon=True).start()

    def off(self) -> None:
        listener, self._listener = self._listener, None
        if listener is not None:
            with contextlib.suppress(OSError):
                listener.shutdown(socket.SHUT_RDWR)
            listener.close()
        with self._lock:
            for each in self._open:
                with contextlib.suppress(OSError):
                    each.shutdown(socket.SHUT_RDWR)
                each.close()
            self._open.clear()

    def _accept(self, listener: socket.socket) -> None:
        while True:
            try:
                client, _ = listener.accept()
                server = socket.create_connection(("127.0.0.1", self._target))
            except OSError:
                return
            with self._lock:
                self._open |= {client, server}
            for source, target in ((client, server), (server, client)):
                threading.Thread(target=_pump, args=(source, target), daemon=True).start()


def _pump(source: socket.socket, target: socket.socket) -> None:
    with contextlib.suppress(OSError):
        while data := source.recv(_CHUNK):
            target.sendall(data)
    for each in (source, target):
        with contextlib.suppress(OSError):
            each.shutdown(socket.SHUT_RDWR)
