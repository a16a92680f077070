"""The tree of a live server as a usual client sees it, taken while nothing changes: the same zxid before and after."""

import socket
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any, NamedTuple

from kazoo.client import KazooClient
from kazoo.exceptions import NoNodeError

_AT_ONCE = 400
_TRIES = 40


class Seen(NamedTuple):
    """One node: all that a client is told of it, in the order of ZooKeeper's own stat."""

    data: bytes | None
    acls: tuple[tuple[int, str, str], ...]
    czxid: int
    mzxid: int
    ctime: int
    mtime: int
    version: int
    cversion: int
    aversion: int
    owner: int
    data_bytes: int
    children: int
    pzxid: int


@dataclass(frozen=True)
class Recording:
    """`nodes` by path, `/` is the root."""

    zxid: int
    nodes: dict[str, Seen]


@contextmanager
def kazoo(host: str, password: str) -> Iterator[Any]:
    client = KazooClient(hosts=host, timeout=10, auth_data=[("digest", f"super:{password}")])
    client.start(timeout=60)
    try:
        yield client
    finally:
        client.stop()
        client.close()


def record(host: str, password: str) -> Recording:
    """Of a server that nobody writes to. What it does by itself (sessions and nodes that run out) is waited for."""
    with kazoo(host, password) as client:
        for _ in range(_TRIES):
            before = zxid_of(host)
            nodes = walk(client)
            if nodes is not None and zxid_of(host) == before:
                return Recording(before, nodes)
    raise AssertionError("the tree did not stand still")


def zxid_of(host: str) -> int:
    """The last transaction that one server has processed."""
    name, port = host.rsplit(":", 1)
    answer = b""
    with socket.create_connection((name, int(port)), timeout=60) as connection:
        connection.sendall(b"srvr")
        while piece := connection.recv(8192):
            answer += piece
    (line,) = [line for line in answer.decode().splitlines() if line.startswith("Zxid: ")]
    return int(line.removeprefix("Zxid: "), 16)


def walk(client: Any) -> dict[str, Seen] | None:
    """None when a node went away meanwhile."""

    found: dict[str, Seen] = {}
    waiting = ["/"]
    try:
        while waiting:
            now, waiting = waiting[:_AT_ONCE], waiting[_AT_ONCE:]
            asked = [(path, client.get_async(path), client.get_acls_async(path)) for path in now]
            for path, data, acls in asked:
                value, stat = data.get(timeout=60)
                found[path] = _seen(value, stat, acls.get(timeout=60)[0])
            inner = [(path, client.get_children_async(path)) for path in now if found[path].children]
            for path, children in inner:
                waiting += [f"{path.rstrip('/')}/{name}" for name in children.get(timeout=60)]
    except NoNodeError:
        return None
    return found


def _seen(data: bytes | None, stat: Any, acls: Any) -> Seen:
    allowed = tuple((acl.perms, acl.id.scheme, acl.id.id) for acl in acls)
    return Seen(
        data, allowed, stat.czxid, stat.mzxid, stat.ctime, stat.mtime, stat.version,
        stat.cversion, stat.aversion, stat.ephemeralOwner, stat.dataLength, stat.numChildren, stat.pzxid,
    )  # fmt: skip
