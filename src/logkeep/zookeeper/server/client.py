"""A live server, asked: its state, and its tree through a session. The only door to kazoo.

Asking with `srvr` changes nothing. Where that word is forbidden a session is opened, which the server logs as two
transactions, one when it begins and one when it ends: the zxid it tells is then at least that of the first.
"""

import logging
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import Any, Final, NamedTuple

from kazoo.client import KazooClient
from kazoo.exceptions import AuthFailedError, KazooException, NoAuthError, NoNodeError, ZookeeperError
from kazoo.handlers.threading import KazooTimeoutError

from logkeep.errors import AuthenticationFailed, ClusterError, ClusterUnreachable, NotAuthorised
from logkeep.formats.zookeeper.transactions import Acl, Acls, TransactionType
from logkeep.zookeeper.server.four_letter import ServerState, four_letter, parse_srvr
from logkeep.zookeeper.server.multi_requests import MultiRequest, errors_of_multi

__all__ = ["Credential", "LiveNode", "ServerState", "ZooKeeperSession", "four_letter", "server_state", "session"]

_AT_ONCE: Final = 500
_SESSION_S: Final = 10.0
_QUIET: Final = logging.getLogger("logkeep.zookeeper.kazoo")
_QUIET.addHandler(logging.NullHandler())
_LOST: Final = frozenset({-4, -7, -112, -118})
"""Codes that say nothing of what became of a request: connection or session lost, no time left."""
_REMEDY: Final = "check the host and port, the network, and that the server serves clients"


class Credential(NamedTuple):
    """What a session proves who it is with: `digest` and `user:password`, for instance."""

    scheme: str
    secret: str

    def __repr__(self) -> str:
        return f"Credential({self.scheme!r}, …)"


class LiveNode(NamedTuple):
    """A node as a client sees it. Containers and nodes with a time to live look as if nobody owned them; `cversion`
    counts deleted children too: twice what is stored, less the children that are there."""

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
    """A node of which an ACL lets nobody know more than that it is there. All others have ACLs."""
    return LiveNode(path, None, (), 0, 0, 0, 0, 0, 0, 0, 0, 0, 0)


def server_state(host: str, timeout_s: float) -> ServerState:
    """What one server says of itself; ClusterUnreachable when it does not answer or serves nobody."""
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
        """What is read from now on is at least what the leader had committed when this was asked."""
        with _our_errors("/"):
            self._client.sync_async("/").get(timeout=self._timeout_s)

    def ask(self, request: MultiRequest, subject: str) -> int:
        """Have something changed: 0, or the code of the server's refusal, and then nothing was changed.

        Raises ClusterUnreachable when nobody knows what became of it; nothing is ever sent twice.
        """
        answer = self._client.handler.async_result()
        self._client._call(_Sent(request), answer)  # the only way for kinds that kazoo does not know
        try:
            codes = answer.get(timeout=self._timeout_s)
        except (KazooException, KazooTimeoutError) as error:
            code = error.code if isinstance(error, ZookeeperError) else None
            if code is None or code in _LOST:
                raise ClusterUnreachable("nobody knows whether it was done", subject=subject, remedy=_REMEDY) from error
            return int(code)
        return next((code for code in codes if code), 0)

    def nodes(self, top: bytes = b"") -> Iterator[LiveNode]:
        """All nodes at and below `top`, parents first; a node that goes away meanwhile is left out. It is the tree of
        one moment only if nothing is written until the end: compare `zxid` before and after."""
        waiting = [top]
        while waiting:
            now = waiting[-_AT_ONCE:]
            del waiting[-_AT_ONCE:]
            inner = []
            for node in self._some(now):
                yield node
                if node.children:
                    inner.append(node.path)
            waiting += self._below(inner)

    def look(self, paths: Sequence[bytes]) -> Iterator[LiveNode]:
        """Of these nodes those that are there; one that may not be read is told as `hidden`."""
        for begin in range(0, len(paths), _AT_ONCE):
            now = paths[begin : begin + _AT_ONCE]
            asked = [(self._client.get_async(_name(p)), self._client.get_acls_async(_name(p))) for p in now]
            for path, (node, acls) in zip(now, asked, strict=True):
                try:
                    read, allowed = self._got(node, path), self._got(acls, path)
                except NotAuthorised:
                    yield hidden(path)
                    continue
                if read is not None and allowed is not None:
                    yield _live(path, read[0], read[1], allowed[0])

    def _got(self, asked: Any, path: bytes) -> Any:
        with _our_errors(_name(path)):
            try:
                return asked.get(timeout=self._timeout_s)
            except NoNodeError:
                return None

    def _some(self, paths: Sequence[bytes]) -> Iterator[LiveNode]:
        """Many questions are on their way at once."""
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

    def _below(self, paths: Sequence[bytes]) -> Iterator[bytes]:
        asked = [(path, self._client.get_children_async(_name(path))) for path in paths]
        for path, children in asked:
            with _our_errors(_name(path)):
                try:
                    names = children.get(timeout=self._timeout_s)
                except NoNodeError:
                    continue
            yield from (path + b"/" + name.encode() for name in names)


class _Sent:
    """A request as kazoo wants it."""

    def __init__(self, request: MultiRequest) -> None:
        self._request, self.type = request, int(request.kind)

    def serialize(self) -> bytes:
        return self._request.payload

    def deserialize(self, frame: bytes, offset: int) -> list[int]:
        return errors_of_multi(bytes(frame[offset:])) if self.type == TransactionType.MULTI else []

    def __repr__(self) -> str:
        return repr(self._request)


@contextmanager
def session(hosts: str, timeout_s: float, credentials: Sequence[Credential] = ()) -> Iterator[ZooKeeperSession]:
    """A session with one of the servers; `hosts` are separated by commas. It ends with the block."""
    auth = [(credential.scheme, credential.secret) for credential in credentials]
    client = KazooClient(hosts=hosts, timeout=_SESSION_S, auth_data=auth, logger=_QUIET)
    try:
        with _our_errors(hosts):
            client.start(timeout=timeout_s)
        yield ZooKeeperSession(client, timeout_s)
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
