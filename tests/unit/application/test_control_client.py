"""The client of an application's control socket, when something else answers there."""

import socket
import threading
from contextlib import suppress
from pathlib import Path

import pytest

from logkeep.application import control_client
from logkeep.application.control import reachable
from logkeep.application.control_client import ControlClient
from logkeep.errors import ClusterUnreachable


def test_an_answer_without_end_is_not_read(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Who owns the data directory can put any socket there."""
    monkeypatch.setattr(control_client, "_MOST_ANSWER_BYTES", 1 << 20)
    sent = 0

    def answer() -> None:
        nonlocal sent
        made, _ = listener.accept()
        with made, suppress(ConnectionError):
            while True:
                sent += made.send(b" " * (64 << 10))

    with socket.socket(socket.AF_UNIX) as listener, reachable(tmp_path) as address:
        listener.bind(address)
        listener.listen()
        server = threading.Thread(target=answer)
        server.start()
        with pytest.raises(ClusterUnreachable):
            ControlClient(tmp_path).facts()
        server.join(60)
    assert 1 << 20 <= sent < 8 << 20
