"""Servers that send one byte after the other for ever: clients over HTTP give up after the time of a whole answer."""

import socket
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from itertools import cycle

import pytest

from logkeep.checkpoint.zeebe.take.management import Management
from logkeep.errors import ClusterUnreachable
from logkeep.kafka.registry.client import RegistryClient
from logkeep.kafka.registry.settings import RegistrySettings, registry_address

_HEAD = b"HTTP/1.1 200 OK\r\nContent-Type: application/json\r\n"
_LONG_S = 60


@contextmanager
def _dripping(head: bytes) -> Iterator[tuple[str, threading.Event]]:
    """Its URL, and the event that is set if it sent bytes for as long as a patient client reads them."""
    patient, over = threading.Event(), threading.Event()

    def drip(made: socket.socket) -> None:
        with made, suppress(OSError):
            made.recv(1 << 16)
            made.sendall(head)
            for byte, _ in zip(cycle(b"1,"), range(_LONG_S * 20), strict=False):
                made.sendall(bytes([byte]))
                if over.wait(0.05):
                    return
            patient.set()

    def accept() -> None:
        with suppress(OSError):
            while True:
                threading.Thread(target=drip, args=(server.accept()[0],), daemon=True).start()

    with socket.create_server(("127.0.0.1", 0)) as server:
        threading.Thread(target=accept, daemon=True).start()
        try:
            yield f"http://127.0.0.1:{server.getsockname()[1]}", patient
        finally:
            over.set()
            server.shutdown(socket.SHUT_RDWR)


def _registry(url: str) -> None:
    with RegistryClient(RegistrySettings(registry_address(url), timeout_s=_LONG_S, total_s=0.3)) as client:
        client.get("/subjects")


def _zeebe(url: str) -> None:
    Management(url, timeout_s=_LONG_S, total_s=0.3).backups()


@pytest.mark.parametrize("asked", [_registry, _zeebe])
@pytest.mark.parametrize("head", [b"", _HEAD + b"X: ", _HEAD + b"\r\n["], ids=["status", "header", "body"])
def test_an_answer_that_comes_too_slowly_is_not_waited_for(asked: Callable[[str], None], head: bytes) -> None:
    with _dripping(head) as (url, patient):
        with pytest.raises(ClusterUnreachable):
            asked(url)
        assert not patient.is_set()
