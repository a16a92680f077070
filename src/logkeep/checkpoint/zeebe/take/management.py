"""Client of Zeebe's management port over HTTP: backups and partitions, answers of bounded size and time.

Zeebe 8.8 and later have the path `backupRuntime`, earlier ones `backups`. Redirects are not followed. Whatever a
server sends, an error of `errors` or a value comes out.
"""

import http.client
import json
import ssl
from dataclasses import dataclass
from typing import Final, TypeVar
from urllib.parse import SplitResult

import msgspec

from logkeep.errors import (
    ClusterNotReady,
    ClusterUnreachable,
    InvalidAnswer,
    NotAuthorised,
    TlsFailed,
    UsageError,
)
from logkeep.http_deadline import deadline
from logkeep.model.host_names import http_address

AnswerT = TypeVar("AnswerT")
_USUAL_PORT: Final = 9600
_LARGEST_ANSWER: Final = 64 << 20
_SHOWN: Final = 300
_PATHS: Final = ("backupRuntime", "backups")
_AS_IN: Final = "write it as http://localhost:9600"
_DOWN: Final = "check --management and that Zeebe runs, then run again"
_NO_BACKUPS: Final = "check that --management is the management port of a broker or gateway of Zeebe 8.1 or later"


class PartitionStatus(msgspec.Struct, frozen=True, rename="camel"):
    """What Zeebe says of one partition of a backup."""

    partition_id: int
    state: str
    failure_reason: str | None = None
    created_at: str | None = None
    snapshot_id: str | None = None
    checkpoint_position: int | None = None
    broker_version: str | None = None


class BackupStatus(msgspec.Struct, frozen=True, rename="camel"):
    """What Zeebe says of a backup."""

    backup_id: int
    state: str
    failure_reason: str | None = None
    details: tuple[PartitionStatus, ...] = ()


class BrokerClock(msgspec.Struct, frozen=True):
    instant: str | None = None


class LivePartition(msgspec.Struct, frozen=True, rename="camel"):
    """A partition on the broker that answers."""

    role: str | None = None
    processed_position: int | None = None
    clock: BrokerClock | None = None


@dataclass(frozen=True)
class ManagementAnswer:
    status: int
    body: bytes
    request: str

    def why(self) -> str:
        """Zeebe's own message."""
        try:
            found = msgspec.json.decode(self.body)
        except (ValueError, RecursionError):
            found = None
        message = (found.get("message") or found.get("error")) if isinstance(found, dict) else None
        return message[:_SHOWN] if isinstance(message, str) else f"status {self.status}"


class Management:
    """The management port at an address. Every request has a connection of its own."""

    def __init__(self, url: str, timeout_s: float = 60.0, total_s: float = 600.0) -> None:
        """`timeout_s`: how long the server may send nothing; `total_s`: how long one answer may take."""
        self._parts, self._timeout_s, self._total_s = _parts(url), timeout_s, total_s
        host = self._parts.hostname or ""
        shown = f"[{host}]" if ":" in host else host
        self.url = f"{self._parts.scheme}://{shown}:{self._parts.port or _USUAL_PORT}"
        self._path = ""

    def backups(self) -> list[BackupStatus]:
        """All backups that Zeebe finds in its store. Finds the path of this release first. Raises ClusterError."""
        for path in [self._path] if self._path else _PATHS:
            answer = self._request("GET", path)
            if answer.status != http.client.NOT_FOUND:
                self._path = path
                return self._value(answer, list[BackupStatus])
        raise InvalidAnswer("it has no backups to manage (404)", subject=self.url, remedy=_NO_BACKUPS)

    def take(self, number: int) -> ManagementAnswer:
        """Ask for a backup; returns the answer whatever its status. Call `backups` first."""
        return self._request("POST", self._path, {"backupId": number})

    def status(self, number: int) -> BackupStatus | None:
        """None where Zeebe knows no such backup, or not yet. Raises ClusterError."""
        answer = self._request("GET", f"{self._path}/{number}")
        return None if answer.status == http.client.NOT_FOUND else self._value(answer, BackupStatus)

    def partitions(self) -> dict[int, LivePartition]:
        """The partitions of the broker that answers. A gateway without a broker has none."""
        answer = self._request("GET", "partitions")
        if answer.status == http.client.NOT_FOUND:
            return {}
        found = self._value(answer, dict[str, LivePartition])
        return {int(name): each for name, each in found.items() if name.isdecimal()}

    def _value(self, answer: ManagementAnswer, kind: type[AnswerT]) -> AnswerT:
        if answer.status in {401, 403}:
            raise NotAuthorised(f"it refuses the request ({answer.why()})", subject=answer.request)
        if answer.status >= http.client.BAD_REQUEST:
            raise ClusterNotReady(f"Zeebe answers {answer.status}: {answer.why()}", subject=answer.request)
        try:
            return msgspec.json.decode(answer.body, type=kind)
        except (ValueError, RecursionError) as error:
            what = f"the answer is not what Zeebe sends ({answer.status})"
            raise InvalidAnswer(what, subject=answer.request, remedy=_NO_BACKUPS) from error

    def _request(self, method: str, path: str, body: object = None) -> ManagementAnswer:
        where = f"{method} {self.url}/actuator/{path}"
        connection = self._connection()
        try:
            data = None if body is None else json.dumps(body).encode()
            headers = {"Accept": "application/json"} | ({"Content-Type": "application/json"} if data else {})
            with deadline(connection, self._total_s) as late:
                connection.request(method, f"/actuator/{path}", data, headers)
                answer = connection.getresponse()
                found = answer.read(_LARGEST_ANSWER + 1)
        except ssl.SSLError as error:
            what = f"no trusted connection: {error.reason or 'unknown reason'}"
            raise TlsFailed(what, subject=where, remedy="check its certificate; SSL_CERT_FILE names others") from error
        except (OSError, http.client.HTTPException) as error:
            what = f"no answer: {getattr(error, 'strerror', None) or type(error).__name__}"
            raise ClusterUnreachable(what, subject=where, remedy=_DOWN) from error
        finally:
            connection.close()
        if late.is_set():
            raise ClusterUnreachable("the answer did not end", subject=where, remedy=_DOWN)
        if len(found) > _LARGEST_ANSWER:
            raise InvalidAnswer(f"the answer is larger than {_LARGEST_ANSWER >> 20} MiB", subject=where)
        return ManagementAnswer(answer.status, found, where)

    def _connection(self) -> http.client.HTTPConnection:
        host, port = self._parts.hostname or "", self._parts.port or _USUAL_PORT
        if self._parts.scheme == "https":
            context = ssl.create_default_context()
            return http.client.HTTPSConnection(host, port, timeout=self._timeout_s, context=context)
        return http.client.HTTPConnection(host, port, timeout=self._timeout_s)


def _parts(text: str) -> SplitResult:
    """Raises UsageError."""
    parts = http_address(text)
    if parts is None or "@" in parts.netloc or parts.path.rstrip("/") not in ("", "/actuator") or parts.query:
        shown = text.rpartition("@")[2]
        raise UsageError("not the address of Zeebe's management port", subject=shown, remedy=_AS_IN)
    return parts
