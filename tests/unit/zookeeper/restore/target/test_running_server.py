"""Whether a server runs, asked of an address: nobody is there only where the host itself says so."""

import socket
from pathlib import Path

import pytest

from logkeep.errors import ClusterUnreachable
from logkeep.zookeeper.restore.target import running_server
from logkeep.zookeeper.restore.target.directories import ServerDirectories
from logkeep.zookeeper.restore.target.running_server import ask_server, find_running_servers
from logkeep.zookeeper.server.four_letter import ServerState


def test_a_port_that_nobody_listens_on(tmp_path: Path) -> None:
    assert ask_server("127.0.0.1:1") is None
    seen = find_running_servers([ServerDirectories(tmp_path, tmp_path, "127.0.0.1:1")])
    assert (seen.running, [what for what in seen.unchecked if "127.0.0.1" in what]) == ((), [])


def test_a_server_that_hangs_is_not_taken_for_one_that_is_stopped(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(running_server, "_ASK_S", 0.2)
    with socket.create_server(("127.0.0.1", 0)) as listening:
        host = f"127.0.0.1:{listening.getsockname()[1]}"
        seen = find_running_servers([ServerDirectories(tmp_path, tmp_path, host)])
    assert seen.running == (f"a server answers at {host}",), "somebody takes connections there"


def test_a_host_that_cannot_be_reached_is_told(tmp_path: Path) -> None:
    def ask(host: str) -> ServerState | None:
        raise ClusterUnreachable("no answer to srvr: no route to host", subject=host)

    seen = find_running_servers([ServerDirectories(tmp_path, tmp_path, "zk1:2181")], ask)
    assert "whether a server runs at zk1:2181 is not known: no answer to srvr: no route to host" in seen.unchecked
