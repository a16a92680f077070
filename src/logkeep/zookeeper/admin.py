"""A snapshot without access to a server's disk: asked of the AdminServer of ZooKeeper 3.9 over HTTP.

Such a snapshot is fuzzy while clients write, and there are no logs to make it exact. It is taken for exact only if the
digest that the server wrote into it is the digest of the nodes that are in it: then it is the tree at that transaction
and is named after it. Otherwise it is kept as what it is, and the finding says so.
"""

import http.client
import shutil
import ssl
import tempfile
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Final
from urllib.parse import urlsplit

from logkeep.errors import ClusterError, ClusterUnreachable, Damaged, NotAuthorised, UsageError
from logkeep.formats.zookeeper.names import hex_zxid, snapshot_name
from logkeep.formats.zookeeper.snapshot import SnapshotReader
from logkeep.model.findings import Finding, Severity
from logkeep.model.secret import Secret
from logkeep.model.work import EngineFor
from logkeep.zookeeper.backup import Done, Wish, back_up
from logkeep.zookeeper.collect import MemberPlace
from logkeep.zookeeper.gathering import Rounds
from logkeep.zookeeper.kept import Origin
from logkeep.zookeeper.sink import BackupSink
from logkeep.zookeeper.tree import tree_of
from logkeep.zookeeper.words import ServerState

_COMMAND: Final = "/commands/snapshot?streaming=true"
_TOO_MANY: Final = 429
_PAUSE_S: Final = 1.0


@dataclass(frozen=True)
class AdminServer:
    """`url` as `http://host:8080`; `authorization` as the server wants it: `digest user:password`, `ip …`."""

    url: str
    authorization: Secret | None = None
    timeout_s: float = 60.0


@dataclass(frozen=True)
class Fetched:
    """A snapshot in a scratch directory, named as it shall be kept."""

    path: Path
    exact: bool
    zxid: int
    findings: tuple[Finding, ...]


def back_up_by_admin(
    server: AdminServer,
    member: str,
    sink: BackupSink,
    engine_for: EngineFor,
    sleep: Callable[[float], None],
    *,
    attempts: int = 5,
    scratch: Path | None = None,
) -> Done:
    """A backup that consists of one snapshot. Exit code 2 where that is fuzzy, which the finding explains."""
    with fetched_snapshot(server, sleep, attempts, scratch) as found:
        place = MemberPlace(member, found.path.parent, found.path.parent, server.url, Origin.ADMIN)
        rounds = Rounds(engine_for, lambda _: ServerState(found.zxid), patience_s=0.0)
        return back_up(Wish((place,), findings=found.findings), sink, rounds, _no_words)


def _no_words(host: str, word: str) -> str:
    raise ClusterUnreachable(f"an AdminServer does not answer {word}", subject=host)


@contextmanager
def fetched_snapshot(
    server: AdminServer, sleep: Callable[[float], None], attempts: int = 5, scratch: Path | None = None
) -> Iterator[Fetched]:
    """Ask until a snapshot is exact, at most so often; the last one is given if none was."""
    with tempfile.TemporaryDirectory(dir=scratch, prefix="logkeep-admin-") as made:
        for attempt in range(1, attempts + 1):
            found = _fetch(server, Path(made), sleep)
            if found.exact or attempt == attempts:
                yield found
                return
            found.path.unlink()
            sleep(_PAUSE_S)


def _fetch(server: AdminServer, directory: Path, sleep: Callable[[float], None]) -> Fetched:
    path = directory / "fetched"
    told = _download(server, path, sleep)
    digest, zxid = _digests(path)
    if digest.computed == digest.written and digest.written is not None:
        named = path.rename(directory / snapshot_name(zxid))
        return Fetched(named, exact=True, zxid=zxid, findings=())
    named = path.rename(directory / snapshot_name(told))
    finding = Finding(
        code="snapshot-fuzzy",
        severity=Severity.WARNING,
        where=server.url,
        what=f"clients wrote while the snapshot was taken: it needs the log from {hex_zxid(told)} "
        f"to {hex_zxid(zxid)}, which is not here",
        remedy="take it in a quiet moment, or back up from the server's directories",
    )
    return Fetched(named, exact=False, zxid=told, findings=(finding,))


@dataclass(frozen=True)
class _Digest:
    computed: int
    written: int | None


def _digests(path: Path) -> tuple[_Digest, int]:
    """What the nodes amount to, what the server wrote, and for which transaction. Raises Damaged."""
    with path.open("rb") as file:
        reader = SnapshotReader(file)
        sessions, acls = reader.sessions(), reader.acls()
        tree = tree_of(sessions, acls, reader.nodes())
        ending = reader.ending()
    return _Digest(tree.digest, ending.digest), ending.digest_zxid


def _download(server: AdminServer, path: Path, sleep: Callable[[float], None]) -> int:
    """Store the answer; the zxid that the server gave with it."""
    while True:
        connection = _connected(server)
        try:
            headers = {"Authorization": server.authorization.reveal()} if server.authorization else {}
            connection.request("GET", _COMMAND, headers=headers)
            answer = connection.getresponse()
            if answer.status == _TOO_MANY:
                sleep(_PAUSE_S)
                continue
            return _stored(server, answer, path)
        except (OSError, http.client.HTTPException) as error:
            raise ClusterUnreachable(f"no answer: {error}", subject=server.url, remedy=_REMEDY) from error
        finally:
            connection.close()


_REMEDY = "check the address of the AdminServer (admin.serverPort), and that admin.snapshot.enabled is true"


def _connected(server: AdminServer) -> http.client.HTTPConnection:
    parts = urlsplit(server.url)
    if parts.scheme not in {"http", "https"} or not parts.hostname:
        raise UsageError("not the address of an AdminServer", subject=server.url, remedy="as in http://zk1:8080")
    if parts.scheme == "https":
        context = ssl.create_default_context()
        return http.client.HTTPSConnection(parts.hostname, parts.port, timeout=server.timeout_s, context=context)
    return http.client.HTTPConnection(parts.hostname, parts.port, timeout=server.timeout_s)


def _stored(server: AdminServer, answer: http.client.HTTPResponse, path: Path) -> int:
    if answer.status in {401, 403}:
        raise NotAuthorised(
            f"the AdminServer refuses us ({answer.status})",
            subject=server.url,
            remedy="give an identity that has all permissions on /",
        )
    told = answer.headers.get("last_zxid", "")
    if answer.status != 200 or not told:
        raise ClusterError(f"no snapshot in the answer ({answer.status})", subject=server.url, remedy=_REMEDY)
    with path.open("wb") as file:
        shutil.copyfileobj(answer, file, 1 << 20)
    size = answer.headers.get("snapshot_size", "")
    if size.isdecimal() and int(size) != path.stat().st_size:
        raise Damaged(f"{path.stat().st_size} bytes arrived instead of {size}", subject=server.url)
    return _zxid(told, server)


def _zxid(told: str, server: AdminServer) -> int:
    try:
        return int(told, 16)
    except ValueError:
        raise ClusterError(f"an odd zxid: {told[:40]!r}", subject=server.url) from None
