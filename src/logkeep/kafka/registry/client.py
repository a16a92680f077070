"""HTTP to a schema registry: one request at a time, answers of bounded size and time, no redirects.

A redirect is an error: credentials are sent to the named host only. Whatever a server sends, an error of `errors` or
a value comes out; HTML of a proxy is no answer.
"""

import http.client
import json
import ssl
import threading
from contextlib import suppress
from dataclasses import dataclass
from types import TracebackType
from typing import Any, Final, Self

import msgspec

from logkeep.errors import (
    AuthenticationFailed,
    ClusterError,
    ClusterNotReady,
    ClusterUnreachable,
    InvalidAnswer,
    NotAuthorised,
    TlsFailed,
)
from logkeep.http_deadline import deadline
from logkeep.kafka.client.security.tls import explain_tls, tls_context
from logkeep.kafka.registry.settings import RegistrySettings

LARGEST_ANSWER: Final = 64 << 20
LARGEST_EXPORT: Final = 256 << 20
_JSON: Final = "application/vnd.schemaregistry.v1+json, application/json"
_SENT_JSON: Final = "application/json"
_SHOWN: Final = 200
_NO_SERVER: Final = {502, 503, 504}
"""Statuses of a proxy whose registry does not run."""
_DOWN: Final = "check --registry and that the registry runs, then run again"
_TLS: Final = "check ssl.truststore.* and ssl.keystore.* in the file of --registry-config, and the certificate's names"
_NO_REGISTRY: Final = "check that --registry is the address of the registry's API, and what is between it and this host"


@dataclass(frozen=True)
class RegistryAnswer:
    """One answer of the registry."""

    status: int
    kind: str
    """Its content type."""
    body: bytes
    request: str
    """Method and path, for messages."""

    @property
    def ok(self) -> bool:
        return 200 <= self.status < 300

    def json(self) -> Any:
        """The JSON of the answer. Raises InvalidAnswer if it is none."""
        try:
            return msgspec.json.decode(self.body)  # unlike json.loads, it refuses texts that cannot be encoded
        except (ValueError, RecursionError) as error:
            what = "HTML" if b"<html" in self.body[:1024].lower() or "html" in self.kind else "no JSON"
            found = f"the answer is {what} ({self.status}, {self.kind or 'no content type'})"
            raise InvalidAnswer(found, subject=self.request, remedy=_NO_REGISTRY) from error

    def why(self) -> str:
        """The registry's own message."""
        with suppress(InvalidAnswer):
            found = self.json()
            message = found.get("message") or found.get("title") if isinstance(found, dict) else None
            if isinstance(message, str):
                return f"{self.status}: {message[:_SHOWN]}"
        return str(self.status)


class RegistryClient:
    """A connection to one registry; use it as a context."""

    def __init__(self, settings: RegistrySettings) -> None:
        self.settings, self.address = settings, settings.address
        self._authorization = settings.header()
        self._connection = self._new_connection()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._connection.close()

    def get(self, path: str, limit: int = LARGEST_ANSWER) -> RegistryAnswer:
        return self.request("GET", path, limit=limit)

    def send(self, method: str, path: str, body: object) -> RegistryAnswer:
        """A request with a JSON body."""
        return self.request(method, path, json.dumps(body).encode(), {"Content-Type": _SENT_JSON})

    def request(
        self,
        method: str,
        path: str,
        body: bytes | None = None,
        headers: dict[str, str] | None = None,
        limit: int = LARGEST_ANSWER,
    ) -> RegistryAnswer:
        """Send a request and return its answer. Raises for the statuses 401, 403, 429, 3xx and 5xx, which say nothing
        about what was requested; any other status is returned."""
        where = f"{method} {self.address.scheme}://{self.address.host}:{self.address.port}{path}"
        sent = {"Accept": _JSON, **(headers or {})}
        if self._authorization is not None:
            sent["Authorization"] = self._authorization.reveal()
        try:
            answer = self._answer(method, path, body, sent, limit, where)
        except ssl.SSLError as error:
            what = explain_tls(error, where).what.replace("broker", "registry")
            raise TlsFailed(what, subject=where, remedy=_TLS) from error
        except (OSError, http.client.HTTPException) as error:
            reason = getattr(error, "strerror", None) or type(error).__name__
            why = "no answer in time" if isinstance(error, TimeoutError) else reason.lower()
            raise ClusterUnreachable(f"no answer: {why}", subject=where, remedy=_DOWN) from error
        _refuse(answer, known=self._authorization is not None)
        return answer

    def _answer(
        self, method: str, path: str, body: bytes | None, headers: dict[str, str], limit: int, where: str
    ) -> RegistryAnswer:
        for fresh in (False, True):
            try:
                with deadline(self._connection, self.settings.total_s) as late:
                    self._connection.request(method, path, body, headers)
                    return self._read(self._connection.getresponse(), limit, where, late)
            except (http.client.RemoteDisconnected, BrokenPipeError, ConnectionResetError):
                # An idle connection may have been closed by the registry. Only a read is repeated: a change whose
                # answer was lost may have been made.
                self._connection.close()
                if fresh or method != "GET":
                    raise
            except BaseException:
                self._connection.close()
                raise
        raise ClusterUnreachable("no answer", subject=where, remedy=_DOWN)

    def _read(self, answer: http.client.HTTPResponse, limit: int, where: str, late: threading.Event) -> RegistryAnswer:
        taken = bytearray()
        try:
            while piece := answer.read1(1 << 20):
                taken += piece
                if len(taken) > limit:
                    self._connection.close()
                    what = f"the answer is larger than {limit >> 20} MiB"
                    raise InvalidAnswer(what, subject=where, remedy=_NO_REGISTRY)
            left = answer.length
        finally:
            answer.close()
        if late.is_set() or left:
            raise ClusterUnreachable("the answer did not end", subject=where, remedy=_DOWN)
        return RegistryAnswer(answer.status, answer.headers.get("Content-Type", ""), bytes(taken), where)

    def _new_connection(self) -> http.client.HTTPConnection:
        host, port, timeout_s = self.address.host, self.address.port, self.settings.timeout_s
        if self.address.scheme == "https":
            return http.client.HTTPSConnection(host, port, timeout=timeout_s, context=tls_context(self.settings.tls))
        return http.client.HTTPConnection(host, port, timeout=timeout_s)


def _refuse(answer: RegistryAnswer, *, known: bool) -> None:
    if answer.status == http.client.UNAUTHORIZED:
        what = "refuses these credentials" if known else "requires credentials"
        remedy = "check basic.auth.user.info or bearer.auth.token in the file of --registry-config"
        raise AuthenticationFailed(f"the registry {what} (401)", subject=answer.request, remedy=remedy)
    if answer.status == http.client.FORBIDDEN:
        remedy = "give this user the right to read the registry, and for a restore to change it"
        raise NotAuthorised("the registry forbids it (403)", subject=answer.request, remedy=remedy)
    if 300 <= answer.status < 400:
        what = f"the answer is a redirect ({answer.status}), which is not followed"
        raise InvalidAnswer(what, subject=answer.request, remedy=_NO_REGISTRY)
    if answer.status in _NO_SERVER:
        raise ClusterUnreachable(f"no registry answers ({answer.why()})", subject=answer.request, remedy=_DOWN)
    if answer.status >= 500 or answer.status == http.client.TOO_MANY_REQUESTS:
        raise ClusterNotReady(f"the registry failed ({answer.why()})", subject=answer.request, remedy=_DOWN)


def expect_api(answer: RegistryAnswer) -> RegistryAnswer:
    """An answer to what every registry knows. Raises InvalidAnswer if the address has no such path or method."""
    if answer.status in {http.client.NOT_FOUND, http.client.METHOD_NOT_ALLOWED}:
        what = f"there is no schema registry at this address ({answer.why()})"
        raise InvalidAnswer(what, subject=answer.request, remedy=_NO_REGISTRY)
    return answer


def expect(answer: RegistryAnswer) -> Any:
    """The JSON of an answer that must be a success. Raises ClusterError."""
    if not answer.ok:
        if "json" not in answer.kind:
            answer.json()
        raise ClusterError(f"the registry refused it ({answer.why()})", subject=answer.request)
    return answer.json()
