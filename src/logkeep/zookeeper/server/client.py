"""Client of a running server: its state, and its tree through a session.

Only this module and `capped_connection`, which limits replies, import kazoo.

The word `srvr` changes nothing. Where it is forbidden, a session is opened, which the server logs as two transactions,
one when it begins and one when it ends: the zxid it reports is then at least that of the first.
"""

import logging
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import Any, Final, NamedTuple

from kazoo.client import KazooClient
from kazoo.exceptions import (
    AuthFailedError,
    ConnectionClosedError,
    ConnectionLoss,
    KazooException,
    NoAuthError,
    NoNodeError,
    SessionExpiredError,
    ZookeeperError,
)
from kazoo.handlers.threading import KazooTimeoutError

from logkeep.errors import AuthenticationFailed, ClusterError, ClusterUnreachable, NotAuthorised
from logkeep.formats.zookeeper.transactions import Acl, Acls, TransactionType
from logkeep.zookeeper.server.capped_connection import LARGEST_REPLY, CappedConnection
from logkeep.zookeeper.server.four_letter import ServerState, four_letter, parse_srvr
from logkeep.zookeeper.server.multi_requests import MultiRequest, errors_of_multi

__all__ = ["Credential", "LiveNode", "ServerState", "ZooKeeperSession", "four_letter", "server_state", "session"]

_AT_ONCE: Final = 500
_SESSION_S: Final = 10.0
_QUIET: Final = logging.getLogger("logkeep.zookeeper.kazoo")
_QUIET.addHandler(logging.NullHandler())
_LOST: Final = frozenset({-4, -7, -112, -118})
"""Error codes after which the result of a request is unknown: connection or session lost, timeout."""
_REMEDY: Final = "check the host and port, the network, and that the server serves clients"


class Credential(NamedTuple):
    """Authentication of a session, for example `digest` and `user:password`."""

    scheme: str
    secret: str

    def __repr__(self) -> str:
        return f"Credential({self.scheme!r}, …)"


class LiveNode(NamedTuple):
    """A node as a client sees it. Containers and nodes with a time to live have owner 0; `cversion` counts deleted
    children too: twice the stored value, less the current children."""

    path: bytes
    data: bytes | None
    acls: Acls
    czxid: int
    mzxid: int
    ctime: int
    mtime: int
    version: int
    cversion: int
    aversion: int
    owner: int
    children: int
    pzxid: int


def hidden(path: bytes) -> LiveNode:
    """A node that exists and whose ACL forbids reading it. All others have ACLs."""
    return LiveNode(path, None, (), 0, 0, 0, 0, 0, 0, 0, 0, 0, 0)


def server_state(host: str, timeout_s: float) -> ServerState:
    """The state that one server reports. Raises ClusterUnreachable if it does not answer or serves no clients."""
    state = parse_srvr(four_letter(host, "srvr", timeout_s))
    if state is not None:
        return state
    with session(host, timeout_s) as opened:
        return ServerState(opened.zxid())


class ZooKeeperSession:
    """Made by `session`. Paths are bytes, the root is ``b""``."""

    def __init__(self, client: Any, timeout_s: float) -> None:
        self._client, self._timeout_s = client, timeout_s

    def zxid(self) -> int:
        """The last transaction that the server has processed."""
        with _our_errors("/"):
            self._client.exists_async("/").get(timeout=self._timeout_s)
        return int(self._client.last_zxid)

    def catch_up(self) -> None:
        """After this, reads return at least what the leader had committed when it was called."""
        with _our_errors("/"):
            self._client.sync_async("/").get(timeout=self._timeout_s)

    def ask(self, request: MultiRequest, subject: str) -> int:
        """Send a change: returns 0, or the server's error code, and then nothing was changed.

        Raises ClusterUnreachable if the result is unknown; nothing is ever sent twice.
        """
        answer = self._client.handler.async_result()
        self._client._call(_KazooRequest(request), answer)  # the only way for requests that kazoo does not support
        try:
            codes = answer.get(timeout=self._timeout_s)
        except (KazooException, KazooTimeoutError) as error:
            code = error.code if isinstance(error, ZookeeperError) else None
            if code is None or code in _LOST:
                raise ClusterUnreachable(
                    "the result of the change is unknown", subject=subject, remedy=_REMEDY
                ) from error
            return int(code)
        return next((code for code in codes if code), 0)

    def nodes(self, top: bytes = b"") -> Iterator[LiveNode]:
        """All nodes at and below `top`, parents first; a node that is deleted meanwhile is left out. It is the tree of
        one moment only if nothing is written until the end: compare `zxid` before and after."""
        waiting = [top]
        while waiting:
            now = waiting[-_AT_ONCE:]
            del waiting[-_AT_ONCE:]
            inner = []
            for node in self._read_some(now):
                yield node
                if node.children:
                    inner.append(node.path)
            waiting += self._children(inner)

    def read_nodes(self, paths: Sequence[bytes]) -> Iterator[LiveNode]:
        """Those of these nodes that exist; a node that may not be read is returned as `hidden`."""
        for begin in range(0, len(paths), _AT_ONCE):
            now = paths[begin : begin + _AT_ONCE]
            asked = [(self._client.get_async(_name(p)), self._client.get_acls_async(_name(p))) for p in now]
            for path, (node, acls) in zip(now, asked, strict=True):
                try:
                    read, allowed = self._result(node, path), self._result(acls, path)
                except NotAuthorised:
                    yield hidden(path)
                    continue
                if read is not None and allowed is not None:
                    yield _live(path, read[0], read[1], allowed[0])

    def _result(self, asked: Any, path: bytes) -> Any:
        with _our_errors(_name(path)):
            try:
                return asked.get(timeout=self._timeout_s)
            except NoNodeError:
                return None

    def _read_some(self, paths: Sequence[bytes]) -> Iterator[LiveNode]:
        """Read nodes with many requests in flight."""
        names = [_name(path) for path in paths]
        asked = [(self._client.get_async(name), self._client.get_acls_async(name)) for name in names]
        for path, (node, acls) in zip(paths, asked, strict=True):
            with _our_errors(_name(path)):
                try:
                    data, stat = node.get(timeout=self._timeout_s)
                    found, _ = acls.get(timeout=self._timeout_s)
                except NoNodeError:
                    continue
            yield _live(path, data, stat, found)

    def _children(self, paths: Sequence[bytes]) -> Iterator[bytes]:
        asked = [(path, self._client.get_children_async(_name(path))) for path in paths]
        for path, children in asked:
            with _our_errors(_name(path)):
                try:
                    names = children.get(timeout=self._timeout_s)
                except NoNodeError:
                    continue
            yield from (path + b"/" + name.encode() for name in names)


class _KazooRequest:
    """A request in the form that kazoo expects."""

    def __init__(self, request: MultiRequest) -> None:
        self._request, self.type = request, int(request.kind)

    def serialize(self) -> bytes:
        return self._request.payload

    def deserialize(self, frame: bytes, offset: int) -> list[int]:
        return errors_of_multi(bytes(frame[offset:])) if self.type == TransactionType.MULTI else []

    def __repr__(self) -> str:
        return repr(self._request)


@contextmanager
def session(
    hosts: str, timeout_s: float, credentials: Sequence[Credential] = (), *, largest_reply: int = LARGEST_REPLY
) -> Iterator[ZooKeeperSession]:
    """A session with one of the servers; `hosts` are separated by commas. It ends with the block.

    A reply of more than `largest_reply` bytes ends the connection, and the error of the request says so.
    """
    auth = [(credential.scheme, credential.secret) for credential in credentials]
    client = KazooClient(hosts=hosts, timeout=_SESSION_S, auth_data=auth, logger=_QUIET)
    connection = CappedConnection(client, largest_reply)
    try:
        with _our_errors(hosts):
            client.start(timeout=timeout_s)
        yield ZooKeeperSession(client, timeout_s)
    except ClusterError as error:
        if connection.refused:
            error.what = f"{error.what}: {connection.refused}"
        raise
    finally:
        client.stop()
        client.close()


@contextmanager
def _our_errors(subject: str) -> Iterator[None]:
    try:
        yield
    except KazooTimeoutError as error:
        raise ClusterUnreachable("no answer in time", subject=subject, remedy=_REMEDY) from error
    except AuthFailedError as error:
        what = "the server does not accept these credentials"
        raise AuthenticationFailed(what, subject=subject, remedy="check the scheme, user and password") from error
    except NoAuthError as error:
        remedy = "give credentials that the node's ACL allows to read"
        raise NotAuthorised("an ACL forbids it", subject=subject, remedy=remedy) from error
    except (ConnectionLoss, ConnectionClosedError, SessionExpiredError) as error:
        what = f"the connection ended: {type(error).__name__}"
        raise ClusterUnreachable(what, subject=subject, remedy=_REMEDY) from error
    except KazooException as error:
        raise ClusterError(f"the server refused: {type(error).__name__} {error}".strip(), subject=subject) from error


def _name(path: bytes) -> str:
    return path.decode() or "/"


def _live(path: bytes, data: bytes | None, stat: Any, acls: Any) -> LiveNode:
    allowed = tuple(Acl(acl.perms, acl.id.scheme.encode(), acl.id.id.encode()) for acl in acls)
    return LiveNode(
        path, data, allowed, stat.czxid, stat.mzxid, stat.ctime, stat.mtime, stat.version, stat.cversion, stat.aversion,
        stat.ephemeralOwner, stat.numChildren, stat.pzxid,
    )  # fmt: skip
