"""What every HTTP server of Logkeep refuses before a route runs: other hosts, missing tokens, large or foreign bodies.

Browsers are not clients: there is no CORS, and a page of another site cannot name an allowed host. Reading needs no
token; changing always does, on the loopback interface too.
"""

import hmac
from collections.abc import Awaitable, Callable, MutableMapping
from dataclasses import dataclass
from http import HTTPStatus
from typing import Any

import msgspec

Scope = MutableMapping[str, Any]
Message = MutableMapping[str, Any]
Receive = Callable[[], Awaitable[Message]]
Send = Callable[[Message], Awaitable[None]]
AsgiApp = Callable[[Scope, Receive, Send], Awaitable[None]]

LARGEST_BODY = 64 << 10
_READING = frozenset({"GET", "HEAD"})
_HEADERS = (
    (b"cache-control", b"no-store"),
    (b"x-content-type-options", b"nosniff"),
    (b"content-security-policy", b"default-src 'none'; frame-ancestors 'none'"),
)


class HttpProblem(msgspec.Struct, frozen=True, kw_only=True):
    """An error, as `application/problem+json`."""

    title: str
    status: int
    detail: str
    subject: str = ""
    remedy: str = ""


@dataclass(frozen=True)
class Guard:
    """Wraps an ASGI application."""

    app: AsgiApp
    hosts: frozenset[str]
    """Allowed values of the Host header, with their ports."""
    token: str

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            await self.app(scope, receive, send)
            return
        problem = refusal(scope["method"], _text_headers(scope), self.hosts, self.token)
        if problem is not None:
            await send_problem(problem, send)
            return
        await self.app(scope, _limited(receive), _with_headers(send))


def refusal(method: str, headers: dict[str, str], hosts: frozenset[str], token: str) -> HttpProblem | None:
    """Why a request is refused; None if it is not. Pure."""
    if headers.get("host", "").lower() not in hosts:
        return _problem(HTTPStatus.MISDIRECTED_REQUEST, "the Host header names another server")
    if method in _READING:
        return None
    scheme, _, given = headers.get("authorization", "").partition(" ")
    if scheme.lower() != "bearer" or not hmac.compare_digest(given.encode(), token.encode()):
        return _problem(HTTPStatus.UNAUTHORIZED, "a bearer token is needed", "send the content of the token file")
    length = headers.get("content-length", "0")
    if not length.isdecimal() or int(length) > LARGEST_BODY:
        return _problem(HTTPStatus.REQUEST_ENTITY_TOO_LARGE, f"the body has more than {LARGEST_BODY} bytes")
    kind = headers.get("content-type", "").partition(";")[0].strip().lower()
    if (length != "0" or "transfer-encoding" in headers) and kind != "application/json":
        return _problem(HTTPStatus.UNSUPPORTED_MEDIA_TYPE, "the body must be application/json")
    return None


async def send_problem(problem: HttpProblem, send: Send) -> None:
    body = msgspec.json.encode(problem)
    headers = [
        (b"content-type", b"application/problem+json"),
        (b"content-length", str(len(body)).encode()),
        *_HEADERS,
    ]
    if problem.status == HTTPStatus.UNAUTHORIZED:
        headers.append((b"www-authenticate", b"Bearer"))
    await send({"type": "http.response.start", "status": problem.status, "headers": headers})
    await send({"type": "http.response.body", "body": body})


def _problem(status: HTTPStatus, detail: str, remedy: str = "") -> HttpProblem:
    return HttpProblem(title=status.phrase, status=status, detail=detail, remedy=remedy)


def _text_headers(scope: Scope) -> dict[str, str]:
    return {name.decode("latin-1").lower(): value.decode("latin-1") for name, value in scope["headers"]}


def _limited(receive: Receive) -> Receive:
    """A body without a length is cut off at the limit too: the route then sees a connection that ended."""
    seen = 0

    async def limited() -> Message:
        nonlocal seen
        message = await receive()
        seen += len(message.get("body", b""))
        return {"type": "http.disconnect"} if seen > LARGEST_BODY else message

    return limited


def _with_headers(send: Send) -> Send:
    async def sent(message: Message) -> None:
        if message["type"] == "http.response.start":
            message["headers"] = [*message.get("headers", []), *_HEADERS]
        await send(message)

    return sent
