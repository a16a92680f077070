"""Four-letter words: answers of every line of versions, servers that hang, flood or hang up, addresses."""

import socket
import threading
from collections.abc import Iterator
from contextlib import contextmanager

import pytest

from logkeep.errors import ClusterUnreachable, UsageError
from logkeep.zookeeper.server.four_letter import ServerState, four_letter, parse_address, parse_srvr

OLD = """\
Zookeeper version: 3.4.14-4c25d480e66aadd371de8bd2fd8da255ac140bcf, built on 03/06/2019 16:18 GMT
Latency min/avg/max: 0/1/42
Received: 1206
Sent: 1205
Connections: 1
Outstanding: 0
Zxid: 0x5ebc
Mode: standalone
Node count: 2479
"""
NEW = """\
Zookeeper version: 3.9.5-e3a3b2f2d8f1d7e0c8b1d2b8a1b2a3f4c5d6e7f8, built on 2026-01-29 20:21 UTC
Latency min/avg/max: 0/0.4562/31
Received: 88
Sent: 87
Connections: 4
Outstanding: 0
Zxid: 0x30000000a
Mode: leader
Node count: 12
Proposal sizes last/min/max: 48/36/5120
"""


@pytest.mark.parametrize(
    ("answer", "state"),
    (
        (OLD, ServerState(0x5EBC, "standalone", "3.4.14", 2479)),
        (NEW, ServerState(0x3_0000_000A, "leader", "3.9.5", 12)),
        ("This ZooKeeper instance is not currently serving requests\n", None),
        ("srvr is not executed because it is not in the whitelist.\n", None),
        ("", None),
        (OLD.replace("Zxid: 0x5ebc", "Zxid: 0x" + "f" * 17), None),
        (OLD.replace("Node count: 2479", "Node count: " + "9" * 5000), ServerState(0x5EBC, "standalone", "3.4.14")),
        (OLD.replace("3.4.14", "9" * 5000), ServerState(0x5EBC, "standalone", "999999999", 2479)),
    ),
    ids=("old", "new", "not serving", "forbidden", "nothing", "long zxid", "long count", "long version"),
)
def test_what_servers_answer(answer: str, state: ServerState | None) -> None:
    assert parse_srvr(answer) == state


@pytest.mark.parametrize(
    ("text", "address"),
    (
        ("zk1", ("zk1", 2181)),
        ("zk1.example.org:2182", ("zk1.example.org", 2182)),
        ("[::1]:2183", ("::1", 2183)),
        ("[::1]", ("::1", 2181)),
    ),
)
def test_addresses(text: str, address: tuple[str, int]) -> None:
    assert parse_address(text) == address


@pytest.mark.parametrize("text", ("", "::1", "zk1:", "zk1:0", "zk1:65536", "zk1:x", "zk1:2181,zk2:2181/x:1"))
def test_what_is_no_address(text: str) -> None:
    with pytest.raises(UsageError, match="not the address"):
        parse_address(text)


@contextmanager
def answering(*pieces: bytes, hang: bool = False) -> Iterator[str]:
    """A server that says so to the first who comes, and then hangs up or does not."""
    over = threading.Event()

    def serve() -> None:
        connection, _ = listening.accept()
        with connection:
            connection.recv(4, socket.MSG_WAITALL)
            for piece in pieces:
                connection.sendall(piece)
            if hang:
                over.wait(60)

    with socket.create_server(("127.0.0.1", 0)) as listening:
        thread = threading.Thread(target=serve)
        thread.start()
        yield f"127.0.0.1:{listening.getsockname()[1]}"
        over.set()
        thread.join()


def test_an_answer_in_pieces_is_read_to_its_end() -> None:
    with answering(b"im", b"ok") as host:
        assert four_letter(host, "ruok", 30) == "imok"


def test_a_server_that_never_ends_is_left_in_time() -> None:
    with answering(b"im", hang=True) as host, pytest.raises(ClusterUnreachable, match="no answer to ruok: timed out"):
        four_letter(host, "ruok", 0.2)


def test_a_server_that_drips_is_left_in_time_too() -> None:
    """Each piece comes soon enough; together they do not."""
    times = iter((0.0, 5.0, 11.0))
    with answering(b"i", b"m", hang=True) as host, pytest.raises(ClusterUnreachable, match="timed out"):
        four_letter(host, "ruok", 0.5, clock=lambda: next(times, 99.0))


def test_an_answer_without_measure_is_refused() -> None:
    with answering(b"x" * 5000) as host, pytest.raises(ClusterUnreachable, match="longer than 4096 bytes"):
        four_letter(host, "mntr", 30, most_bytes=4096)


def test_nobody_there() -> None:
    with socket.create_server(("127.0.0.1", 0)) as listening:
        host = f"127.0.0.1:{listening.getsockname()[1]}"
    with pytest.raises(ClusterUnreachable, match="no answer to srvr") as caught:
        four_letter(host, "srvr", 5)
    assert caught.value.subject == host
