"""The AdminServer of ZooKeeper over HTTP: a snapshot as a file, and what the server says of itself.

What it is asked with may be a password: it goes into one header and is in no message, whatever happens.

Files that lie below TMPDIR while a piece of work is done: what their disk refuses is told with its remedy.
"""

import http.client
import io
import ipaddress
import json
import ssl
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Final
from urllib.parse import SplitResult, urlsplit

from logkeep.errors import (
    BackupFailed,
    ClusterError,
    ClusterNotReady,
    ClusterUnreachable,
    Damaged,
    NotAuthorised,
    TlsFailed,
    UsageError,
)
from logkeep.model.findings import Finding, Severity
from logkeep.model.secret import Secret


@contextmanager
def scratch_disk(path: Path | str, what: str) -> Iterator[None]:
    """Files are closed within, or written without a buffer: an error in the end is told as one in between."""
    try:
        yield
    except OSError as error:
        remedy = "make room on that disk, or let TMPDIR name a directory on another one, and run again"
        why = error.strerror or type(error).__name__
        raise BackupFailed(f"{what}: {why}", subject=str(path), remedy=remedy) from error


_SNAPSHOT: Final = "/commands/snapshot?streaming=true"
_SERVER: Final = "/commands/srvr"
_USUAL_PORT: Final = 8080
_TOO_MANY: Final = 429
_MOST_REFUSALS: Final = 30
_PAUSE_S: Final = 1.0
_LARGEST_ANSWER: Final = 1 << 20
_BLOCK_BYTES: Final = 1 << 20
_AS_IN: Final = "write it as http://localhost:8080"
_REMEDY: Final = "check the address of the AdminServer (admin.serverPort), and that admin.snapshot.enabled is true"


@dataclass(frozen=True)
class AdminServer:
    """`url` as `admin_url` gives it; `authorization` as the server wants it: `digest user:password`, `ip …`."""

    url: str
    authorization: Secret | None = None
    timeout_s: float = 60.0


def admin_url(text: str) -> str:
    """`http://host:port`. Raises UsageError for what is no address, and for one that a password stands in."""
    parts = _parts(text)
    if "@" in parts.netloc:
        remedy = "leave it out of the address, and name a file with --auth-file"
        raise UsageError("an address with a password in it is not taken", subject=parts.hostname or "", remedy=remedy)
    if parts.path not in ("", "/", "/commands") or parts.query or parts.fragment:
        raise UsageError("nothing comes behind the port of an AdminServer", subject=text, remedy=_AS_IN)
    host = f"[{parts.hostname}]" if ":" in (parts.hostname or "") else parts.hostname
    return f"{parts.scheme}://{host}:{parts.port or _USUAL_PORT}"


def _parts(text: str) -> SplitResult:
    try:
        parts = urlsplit(text)
        wrong = parts.scheme not in {"http", "https"} or not parts.hostname or parts.port == 0
    except ValueError:
        wrong = True
    if wrong:
        shown = text.rpartition("@")[2]
        raise UsageError("not the address of an AdminServer", subject=shown, remedy=_AS_IN)
    return parts


def authorization_of(scheme: str, secret: str) -> Secret:
    """For the header. Raises UsageError for what a header cannot hold, without showing it."""
    text = f"{scheme} {secret}"
    if not text.isascii() or not text.isprintable():
        remedy = "choose a password of printable ASCII characters for the AdminServer"
        raise UsageError("this credential cannot be sent over HTTP", subject=f"scheme {scheme}"[:40], remedy=remedy)
    return Secret(text)


def sent_in_clear(server: AdminServer) -> tuple[Finding, ...]:
    """A warning where a password goes over a network on which others can read it."""
    parts = _parts(server.url)
    if server.authorization is None or parts.scheme == "https" or _is_loopback(parts.hostname or ""):
        return ()
    what = "the credential of --auth-file was sent unencrypted over the network: whoever can listen there has it"
    remedy = "name the AdminServer with https:// (admin.forceHttps), or run this on the server's own host"
    return (Finding(code="sent-in-clear", severity=Severity.WARNING, where=server.url, what=what, remedy=remedy),)


def _is_loopback(host: str) -> bool:
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return host == "localhost" or host.endswith(".localhost")


def server_facts(server: AdminServer) -> tuple[str, str]:
    """Mode and version; empty where it does not tell."""
    try:
        with _answered(server, _SERVER) as answer:
            told = json.loads(answer.read(_LARGEST_ANSWER))
    except (ClusterError, ValueError, OSError, http.client.HTTPException):
        return "", ""
    stats = told.get("server_stats") if isinstance(told, dict) else None
    mode = stats.get("server_state") if isinstance(stats, dict) else None
    version = told.get("version") if isinstance(told, dict) else None
    return str(mode or ""), str(version or "").partition("-")[0]


def download(server: AdminServer, path: Path, sleep: Callable[[float], None]) -> int:
    """Store a snapshot; the zxid that the server gave with it. Raises ClusterError, Damaged, BackupFailed."""
    for _ in range(_MOST_REFUSALS):
        with _answered(server, _SNAPSHOT) as answer:
            if answer.status != _TOO_MANY:
                return _stored(server, answer, path)
        sleep(_PAUSE_S)
    what = "it takes no more snapshots at the moment, and says so again and again (429)"
    raise ClusterNotReady(what, subject=server.url, remedy="wait; admin.rateLimiterIntervalInMS says how long")


@contextmanager
def _answered(server: AdminServer, command: str) -> Iterator[http.client.HTTPResponse]:
    connection = _connection(server)
    try:
        headers = {"Authorization": server.authorization.reveal()} if server.authorization else {}
        connection.request("GET", command, headers=headers)
        with connection.getresponse() as answer:
            yield answer
    except ssl.SSLError as error:
        what = f"no trusted connection: {error.reason or 'unknown reason'}"
        raise TlsFailed(what, subject=server.url, remedy="check its certificate; SSL_CERT_FILE names others") from error
    except (OSError, http.client.HTTPException) as error:
        what = f"no answer: {getattr(error, 'strerror', None) or type(error).__name__}"
        raise ClusterUnreachable(what, subject=server.url, remedy=_REMEDY) from error
    finally:
        connection.close()


def _connection(server: AdminServer) -> http.client.HTTPConnection:
    parts = _parts(server.url)
    host, port = parts.hostname or "", parts.port
    if parts.scheme == "https":
        context = ssl.create_default_context()
        return http.client.HTTPSConnection(host, port, timeout=server.timeout_s, context=context)
    return http.client.HTTPConnection(host, port, timeout=server.timeout_s)


def _stored(server: AdminServer, answer: http.client.HTTPResponse, path: Path) -> int:
    if answer.status in {401, 403}:
        known = server.authorization is not None
        raise NotAuthorised(
            f"the AdminServer refuses {'this identity' if known else 'who says nothing of itself'} ({answer.status})",
            subject=server.url,
            remedy="give an identity that has all permissions on / with --auth-file",
        )
    told = answer.headers.get("last_zxid", "")
    if answer.status != http.client.OK or not told:
        raise ClusterError(f"no snapshot in the answer ({answer.status})", subject=server.url, remedy=_REMEDY)
    zxid = _zxid(told, server)
    _copy(answer, path)
    size = answer.headers.get("snapshot_size", "")
    if size.isdecimal() and int(size) != path.stat().st_size:
        what = f"{path.stat().st_size} bytes arrived instead of {size}"
        raise Damaged(what, subject=server.url, remedy="run again; if it stays, look into the log of the server")
    return zxid


def _copy(answer: http.client.HTTPResponse, path: Path) -> None:
    """What the connection raises goes on as it is; raises BackupFailed for the disk."""
    with _disk(path):
        file = path.open("wb", buffering=0)
    try:
        while block := answer.read(_BLOCK_BYTES):
            with _disk(path):
                _write(file, block)
    finally:
        with _disk(path):
            file.close()


def _write(file: io.FileIO, block: bytes) -> None:
    left = memoryview(block)
    while left:
        left = left[file.write(left) :]


def _disk(path: Path) -> AbstractContextManager[None]:
    return scratch_disk(path, "the snapshot cannot be stored here on its way")


def _zxid(told: str, server: AdminServer) -> int:
    try:
        return int(told, 16)
    except ValueError:
        raise ClusterError(f"an odd zxid: {told[:40]!r}", subject=server.url, remedy=_REMEDY) from None
