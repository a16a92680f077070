"""Ports of servers are handed out in turn, none of them one that the kernel gives to clients."""

import os
import socket
import subprocess
import sys
from itertools import pairwise
from pathlib import Path

import pytest

from logkeep.embedded import ports
from logkeep.embedded.ports import choose, free_ports, random_ports, server_ports

PORTS = range(20, 25)


def _every(_port: int) -> bool:
    return True


def test_behind_the_last_and_around() -> None:
    assert choose(PORTS, 22, 3, _every) == [23, 24, 20]


def test_from_the_beginning_where_the_last_is_none_of_them() -> None:
    assert choose(PORTS, 0, 2, _every) == [20, 21]


def test_those_in_use_are_passed_over() -> None:
    assert choose(PORTS, 20, 2, lambda port: port % 2 == 0) == [22, 24]


def test_too_few() -> None:
    with pytest.raises(OSError, match="no 3 ports of 20 to 24 are free"):
        choose(PORTS, 0, 3, lambda port: port % 2 == 1)


@pytest.mark.parametrize(
    ("clients", "first", "last"),
    [((32768, 60999), 10000, 32767), ((49152, 65535), 10000, 49151), ((1024, 50000), 50001, 65535)],
)
def test_the_ports_of_clients_are_left_out(clients: tuple[int, int], first: int, last: int) -> None:
    found = server_ports(*clients)
    assert (found[0], found[-1]) == (first, last)


def test_what_one_process_has_another_does_not_get() -> None:
    """Not even where nobody listens yet."""
    ours = free_ports(3)
    program = "from logkeep.embedded.ports import free_ports; print(*free_ports(2))"
    theirs = map(int, subprocess.check_output([sys.executable, "-c", program], text=True).split())
    assert len({*ours, *theirs, *free_ports(3)}) == 8


def test_ports_of_scratch_servers_cannot_be_foreseen() -> None:
    """Ports in turn are a neighbour of the last one; these are anywhere in the range."""
    found = [random_ports(2) for _ in range(20)]
    assert len({first for first, _ in found}) > 15
    steps = [abs(after[0] - before[0]) for before, after in pairwise(found)]
    assert max(steps) > 1000
    assert all(len(set(pair)) == 2 for pair in found)


@pytest.mark.parametrize("clients", ["1024 65535", "9000 65500", "nonsense"])
def test_clients_that_have_nearly_all_ports(clients: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "range").write_text(clients)
    monkeypatch.setattr(ports, "_CLIENTS", tmp_path / "range")
    assert len(set(free_ports(5))) == 5


def test_no_place_to_remember_them(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "file").touch()
    monkeypatch.setenv("LOGKEEP_CACHE_DIR", str(tmp_path / "file" / "below"))
    assert len(set(free_ports(5))) == 5


def test_a_port_in_use() -> None:
    (port,) = free_ports(1)
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", port + 1))
        assert port + 1 not in free_ports(2)


def test_no_client_is_given_one() -> None:
    kernel = Path("/proc/sys/net/ipv4/ip_local_port_range")
    if not kernel.exists():
        pytest.skip(f"{os.uname().sysname} does not report the ports of its clients")
    first, last = map(int, kernel.read_text().split())
    assert not [port for port in free_ports(5) if first <= port <= last]
