"""Four-letter words: the state of a server over its client port, without a session.

A server sends its answer and closes the connection, so an answer is read to its end, within limits of time and size.
 `parse_srvr` understands what 3.4 to 3.9 answer to `srvr`, the one word that is allowed by default.
"""

import re
import socket
import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import Final

from logkeep.errors import ClusterUnreachable, UsageError
from logkeep.model.host_names import is_host_name

DEFAULT_PORT: Final = 2181
MOST_BYTES: Final = 1 << 20
_PIECE: Final = 1 << 16
_REMEDY: Final = "check the host and port, the network, and that the server runs"
VERSION: Final = r"[0-9]{1,9}(?:\.[0-9]{1,9}){0,4}"
"""The version of a server, without what follows a hyphen. A server can answer numbers of any length."""
_VERSION: Final = re.compile(rf"^Zookeeper version: ({VERSION})", re.MULTILINE)
_ZXID: Final = re.compile(r"^Zxid: 0x([0-9a-f]{1,16})$", re.MULTILINE)
_MODE: Final = re.compile(r"^Mode: (\S{1,40})$", re.MULTILINE)
_NODES: Final = re.compile(r"^Node count: ([0-9]{1,18})$", re.MULTILINE)


@dataclass(frozen=True)
class ServerState:
    """What a server reports. `version` and `mode` are empty and `nodes` is None if only a session was possible."""

    zxid: int
    """The last transaction that it has processed."""
    mode: str = ""
    """`standalone`, `leader`, `follower`, `observer` or `read-only`."""
    version: str = ""
    nodes: int | None = None


def parse_address(host: str) -> tuple[str, int]:
    """`host`, `host:port` or `[address]:port`."""
    match = re.fullmatch(r"(?:\[(?P<v6>[^\]]+)\]|(?P<name>[^:\[\]]+))(?::(?P<port>[0-9]{1,5}))?", host)
    if (
        match is None
        or int(match["port"] or 1) not in range(1, 1 << 16)
        or not is_host_name(match["v6"] or match["name"])
    ):
        raise UsageError("not the address of a server", subject=host, remedy="write host:port, as 127.0.0.1:2181")
    return match["v6"] or match["name"], int(match["port"] or DEFAULT_PORT)


def four_letter(
    host: str,
    word: str,
    timeout_s: float,
    *,
    most_bytes: int = MOST_BYTES,
    clock: Callable[[], float] = time.monotonic,
) -> str:
    """The whole answer to one word. Raises ClusterUnreachable if it does not come in time or is too long."""
    deadline, pieces, size = clock() + timeout_s, [], 0
    try:
        with socket.create_connection(parse_address(host), timeout=timeout_s) as connection:
            connection.sendall(word.encode())
            while piece := connection.recv(_PIECE):
                pieces.append(piece)
                size += len(piece)
                if size > most_bytes:
                    raise ClusterUnreachable(f"the answer to {word} is longer than {most_bytes} bytes", subject=host)
                connection.settimeout(_left(deadline, clock))
    except OSError as error:
        raise ClusterUnreachable(f"no answer to {word}: {error}", subject=host, remedy=_REMEDY) from error
    return b"".join(pieces).decode(errors="replace")


def _left(deadline: float, clock: Callable[[], float]) -> float:
    left = deadline - clock()
    if left <= 0:
        raise TimeoutError("timed out")
    return left


def parse_srvr(answer: str) -> ServerState | None:
    """None for every other answer: it serves no clients at the moment, the word is forbidden, or anything else."""
    version, zxid, mode = (pattern.search(answer) for pattern in (_VERSION, _ZXID, _MODE))
    if version is None or zxid is None or mode is None:
        return None
    nodes = _NODES.search(answer)
    return ServerState(int(zxid[1], 16), mode[1], version[1], int(nodes[1]) if nodes else None)
