"""Client of ZooKeeper's AdminServer over HTTP: downloads a snapshot, reads mode and version of the server.

The credential may be a password: it is sent in one header and appears in no message.
"""

import http.client
import ipaddress
import json
import re
import ssl
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Final
from urllib.parse import SplitResult

from logkeep.errors import (
    ClusterError,
    ClusterNotReady,
    ClusterUnreachable,
    InvalidAnswer,
    NotAuthorised,
    TlsFailed,
    UsageError,
)
from logkeep.model.findings import Finding, Severity
from logkeep.model.host_names import http_address
from logkeep.model.secret import Secret
from logkeep.zookeeper.server.admin_download import USUAL_LIMITS, DownloadLimits, deadline, store
from logkeep.zookeeper.server.four_letter import VERSION

_SNAPSHOT: Final = "/commands/snapshot?streaming=true"
_SERVER: Final = "/commands/srvr"
_USUAL_PORT: Final = 8080
_TOO_MANY: Final = 429
_MOST_REFUSALS: Final = 30
_PAUSE_S: Final = 1.0
_LARGEST_ANSWER: Final = 1 << 20
_AS_IN: Final = "write it as http://localhost:8080"
_REMEDY: Final = "check the address of the AdminServer (admin.serverPort), and that admin.snapshot.enabled is true"


@dataclass(frozen=True)
class AdminServer:
    """`url` as `admin_url` returns it; `authorization` as the server expects it: `digest user:password`, `ip …`."""

    url: str
    authorization: Secret | None = None
    timeout_s: float = 60.0
    """How long the server may send nothing."""
    limits: DownloadLimits = USUAL_LIMITS


def admin_url(text: str) -> str:
    """`http://host:port`. Raises UsageError for an invalid address, and for one that contains a password."""
    parts = _parts(text)
    if "@" in parts.netloc:
        remedy = "remove it from the address, and name a file with --auth-file"
        raise UsageError("an address must not contain a password", subject=parts.hostname or "", remedy=remedy)
    if parts.path not in ("", "/", "/commands") or parts.query or parts.fragment:
        raise UsageError("the AdminServer address must end after the port", subject=text, remedy=_AS_IN)
    host = f"[{parts.hostname}]" if ":" in (parts.hostname or "") else parts.hostname
    return f"{parts.scheme}://{host}:{parts.port or _USUAL_PORT}"


def _parts(text: str) -> SplitResult:
    parts = http_address(text)
    if parts is None:
        shown = text.rpartition("@")[2]
        raise UsageError("not the address of an AdminServer", subject=shown, remedy=_AS_IN)
    return parts


def authorization_of(scheme: str, secret: str) -> Secret:
    """The value of the header. Raises UsageError for what a header cannot hold, without showing it."""
    text = f"{scheme} {secret}"
    if not text.isascii() or not text.isprintable():
        remedy = "choose a password of printable ASCII characters for the AdminServer"
        raise UsageError("this credential cannot be sent over HTTP", subject=f"scheme {scheme}"[:40], remedy=remedy)
    return Secret(text)


def sent_in_clear(server: AdminServer) -> tuple[Finding, ...]:
    """A warning if a password is sent over a network without encryption."""
    parts = _parts(server.url)
    if server.authorization is None or parts.scheme == "https" or _is_loopback(parts.hostname or ""):
        return ()
    what = "the credential of --auth-file was sent unencrypted: anyone who can read that network has it"
    remedy = "name the AdminServer with https:// (admin.forceHttps), or run this on the server's own host"
    return (Finding(code="sent-in-clear", severity=Severity.WARNING, where=server.url, what=what, remedy=remedy),)


def _is_loopback(host: str) -> bool:
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return host == "localhost" or host.endswith(".localhost")


def server_facts(server: AdminServer) -> tuple[str, str]:
    """Mode and version of the server; empty if it does not report them."""
    try:
        with _get(server, _SERVER) as answer:
            block = bytearray(_LARGEST_ANSWER)
            facts = json.loads(block[: answer.readinto(block)])
    except (ClusterError, ValueError, RecursionError):
        return "", ""
    stats = facts.get("server_stats") if isinstance(facts, dict) else None
    mode = stats.get("server_state") if isinstance(stats, dict) else None
    version = facts.get("version") if isinstance(facts, dict) else None
    return _match(r"\S{1,40}", mode), _match(VERSION, str(version).partition("-")[0])


def _match(pattern: str, found: object) -> str:
    """The text that a server reports; empty if it is not like this."""
    return found if isinstance(found, str) and re.fullmatch(pattern, found) else ""


def download(server: AdminServer, path: Path, sleep: Callable[[float], None]) -> int:
    """Store a snapshot; returns the zxid in the server's answer. Raises ClusterError, Damaged, BackupFailed."""
    for _ in range(_MOST_REFUSALS):
        with _get(server, _SNAPSHOT) as answer:
            if answer.status != _TOO_MANY:
                return _store(server, answer, path)
        sleep(_PAUSE_S)
    what = "it takes no more snapshots at the moment (429), also after several attempts"
    raise ClusterNotReady(what, subject=server.url, remedy="wait; admin.rateLimiterIntervalInMS says how long")


@contextmanager
def _get(server: AdminServer, command: str) -> Iterator[http.client.HTTPResponse]:
    connection = _connection(server)
    try:
        headers = {"Authorization": server.authorization.reveal()} if server.authorization else {}
        connection.connect()
        with deadline(connection.sock, server.limits.total_s, server.url):
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


def _store(server: AdminServer, answer: http.client.HTTPResponse, path: Path) -> int:
    if answer.status in {401, 403}:
        known = server.authorization is not None
        raise NotAuthorised(
            f"the AdminServer refuses {'this identity' if known else 'requests without an identity'} ({answer.status})",
            subject=server.url,
            remedy="give an identity that has all permissions on / with --auth-file",
        )
    if answer.status != http.client.OK or not answer.headers.get("last_zxid"):
        raise InvalidAnswer(f"no snapshot in the answer ({answer.status})", subject=server.url, remedy=_REMEDY)
    return store(answer, path, server.limits, server.url)
