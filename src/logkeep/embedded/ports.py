"""Free ports for embedded servers, outside of the range that the kernel gives to clients.

A server starts some time after its port was chosen, and a stopped one may start again on its port. The kernel takes the
ports of outgoing connections from a range of its own, so a port of that range may be in use by then. The other ports
are assigned in turn: a file in the cache directory holds the last one. If the range of clients covers nearly all ports,
or the file cannot be written, any free ports are used.
"""

import contextlib
import fcntl
import os
import secrets
import socket
from collections.abc import Callable, Iterator
from pathlib import Path

from logkeep.model.cache import cache_dir

_CLIENTS = Path("/proc/sys/net/ipv4/ip_local_port_range")
_USUAL = (32768, 60999)
_FIRST, _LAST = 10000, 65535
"""Lower ports belong to well-known services."""
_ENOUGH = 1000


def free_ports(count: int) -> list[int]:
    """Ports that are free now and are not assigned again for a long time."""
    ours = server_ports(*_clients())
    if len(ours) < _ENOUGH:
        return _any_free(count)
    try:
        with _turn() as turn:
            ports = choose(ours, turn.last or secrets.choice(ours), count, _is_free)
            turn.write(ports[-1])
    except OSError:  # the file cannot be written, or too few ports are free
        return _any_free(count)
    return ports


def random_ports(count: int) -> list[int]:
    """Ports that are free now, and that no other user of this host can foresee."""
    ours = server_ports(*_clients())
    if len(ours) < _ENOUGH:
        return _any_free(count)
    try:
        return choose(ours, secrets.choice(ours), count, _is_free)
    except OSError:  # too few ports are free
        return _any_free(count)


def server_ports(first_client: int, last_client: int) -> range:
    """The ports below or above those of clients, whichever are more."""
    below, above = range(_FIRST, min(first_client, _LAST + 1)), range(max(last_client + 1, _FIRST), _LAST + 1)
    return max(below, above, key=len)


def choose(ports: range, last: int, count: int, is_free: Callable[[int], bool]) -> list[int]:
    """The next free ports after the last one, then from the beginning; `OSError` if there are too few."""
    begin = ports.index(last) + 1 if last in ports else 0
    in_turn = (ports[(begin + step) % len(ports)] for step in range(len(ports)))
    found = [port for port, _ in zip(filter(is_free, in_turn), range(count), strict=False)]
    if len(found) < count:
        raise OSError(f"no {count} ports of {ports.start} to {ports.stop - 1} are free on this host")
    return found


def _any_free(count: int) -> list[int]:
    """All bound at once, so that they differ."""
    with contextlib.ExitStack() as stack:
        sockets = [stack.enter_context(socket.socket()) for _ in range(count)]
        for each in sockets:
            each.bind(("127.0.0.1", 0))
        return [each.getsockname()[1] for each in sockets]


def _is_free(port: int) -> bool:
    with socket.socket() as probe:
        try:
            probe.bind(("127.0.0.1", port))
        except OSError:
            return False
    return True


def _clients() -> tuple[int, int]:
    try:
        first, last = map(int, _CLIENTS.read_text().split())
    except (OSError, ValueError):  # another kind of system
        return _USUAL
    return first, last


class _Turn:
    """The port that was assigned last, in a locked file."""

    def __init__(self, file: int) -> None:
        self._file = file

    @property
    def last(self) -> int:
        """0: none was assigned yet."""
        text = os.pread(self._file, 16, 0)
        return int(text) if text.isdigit() else 0

    def write(self, port: int) -> None:
        os.ftruncate(self._file, 0)
        os.pwrite(self._file, str(port).encode(), 0)


@contextlib.contextmanager
def _turn() -> Iterator[_Turn]:
    path = cache_dir(os.environ, Path.home()) / "ports"
    path.parent.mkdir(parents=True, exist_ok=True)
    file = os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC | os.O_NOFOLLOW, 0o600)
    try:
        fcntl.flock(file, fcntl.LOCK_EX)
        yield _Turn(file)
    finally:
        os.close(file)
