"""Clients that send nothing, against a server process as `app serve` starts it."""

import http.client
import socket
import subprocess
import sys
from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path

import pytest

_SERVER = """
import sys
from pathlib import Path
from logkeep.application.http.routes import http_application
from logkeep.application.http.server import ServingOptions, serve

serve(http_application([]), ServingOptions("127.0.0.1", 0, Path(sys.argv[1])), lambda url: print(url, flush=True))
"""


@pytest.fixture
def port(tmp_path: Path) -> Iterator[int]:
    command = [sys.executable, "-c", _SERVER, str(tmp_path / "token")]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None
        yield int(process.stdout.readline().rpartition(":")[2])
        process.terminate()


def _status(port: int) -> int:
    connection = http.client.HTTPConnection("127.0.0.1", port, timeout=60)
    connection.request("GET", "/openapi.json")
    status = connection.getresponse().status
    connection.close()
    return status


@pytest.mark.parametrize("begun", [b"", b"GET /openapi.json HT", b"GET / HTTP/1.1\r\nHost: x\r\n\r\n"])
def test_clients_without_a_request_keep_no_others_out(port: int, begun: bytes) -> None:
    with ExitStack() as opened:
        for _ in range(130):
            idle = opened.enter_context(socket.create_connection(("127.0.0.1", port)))
            idle.sendall(begun)
        assert [_status(port) for _ in range(5)] == [200] * 5
