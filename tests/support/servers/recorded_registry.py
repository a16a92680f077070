"""Answers of a real schema registry: recorded by a proxy in front of it, and given again by a server without it.

A recording is one JSON line per request, in their order. The server answers each method and path with its recorded
answers in order, and the last one again; a request that was never recorded fails the test.
"""

import base64
import http.client
import json
import ssl
import threading
from collections import defaultdict
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import asdict, dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

RECORDED = Path(__file__).parents[2] / "integration" / "kafka" / "registry" / "recorded"


@dataclass(frozen=True)
class Exchange:
    """One request and its answer."""

    method: str
    path: str
    status: int
    kind: str
    text: str = ""
    base64: str = ""
    """Of an answer that is not text."""

    @property
    def body(self) -> bytes:
        return base64.b64decode(self.base64) if self.base64 else self.text.encode()


@dataclass
class RecordedRegistry:
    """A running server, and what it was asked."""

    url: str = ""
    requests: list[tuple[str, str, bytes]] = field(default_factory=list)
    exchanges: list[Exchange] = field(default_factory=list)
    unexpected: list[str] = field(default_factory=list)

    def sent(self, method: str) -> list[str]:
        return [path for each, path, _ in self.requests if each == method]


Answer = Callable[[str, str, bytes, dict[str, str]], Exchange]


@contextmanager
def serving(answer: Answer, tls: ssl.SSLContext | None = None) -> Iterator[RecordedRegistry]:
    """A server whose answers a function makes."""
    registry = RecordedRegistry()

    class Handler(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"
        disable_nagle_algorithm = True

        def _serve(self) -> None:
            body = self.rfile.read(int(self.headers.get("Content-Length") or 0))
            registry.requests.append((self.command, self.path, body))
            found = answer(self.command, self.path, body, dict(self.headers.items()))
            registry.exchanges.append(found)
            self.send_response(found.status)
            if found.kind:
                self.send_header("Content-Type", found.kind)
            self.send_header("Content-Length", str(len(found.body)))
            self.end_headers()
            self.wfile.write(found.body)

        do_GET = do_POST = do_PUT = do_DELETE = _serve  # noqa: N815 - names of the library

        def log_message(self, format: str, *args: Any) -> None:  # noqa: A002
            pass

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    server.daemon_threads = True
    registry.url = f"http://127.0.0.1:{server.server_port}"
    if tls is not None:
        server.socket = tls.wrap_socket(server.socket, server_side=True)
        registry.url = f"https://localhost:{server.server_port}"
    thread = threading.Thread(target=server.serve_forever, args=(0.02,))
    thread.start()
    try:
        yield registry
    finally:
        server.shutdown()
        server.server_close()
        thread.join()


@contextmanager
def recorded(name: str) -> Iterator[RecordedRegistry]:
    """A server with the answers of a recording. Fails if it was asked anything else."""
    answers: defaultdict[tuple[str, str], list[Exchange]] = defaultdict(list)
    for line in (RECORDED / f"{name}.jsonl").read_text().splitlines():
        each = Exchange(**json.loads(line))
        answers[each.method, each.path].append(each)
    unexpected: list[str] = []

    def answer(method: str, path: str, _body: bytes, _headers: dict[str, str]) -> Exchange:
        left = answers.get((method, path))
        if not left:
            unexpected.append(f"{method} {path}")
            return Exchange(method, path, 418, "application/json", '{"message":"not recorded"}')
        return left.pop(0) if len(left) > 1 else left[0]

    with serving(answer) as registry:
        yield registry
    assert not unexpected, f"never recorded: {unexpected}"


@contextmanager
def recording(target: str, name: str) -> Iterator[RecordedRegistry]:
    """A proxy in front of a real registry; its answers are stored when the block ends well."""
    there = urlsplit(target)

    def answer(method: str, path: str, body: bytes, headers: dict[str, str]) -> Exchange:
        kept = {key: headers[key] for key in headers if key.lower() in {"accept", "content-type"} or key[:2] == "X-"}
        connection = http.client.HTTPConnection(there.hostname or "", there.port, timeout=120)
        try:
            connection.request(method, path, body or None, kept)
            found = connection.getresponse()
            data, kind = found.read(), found.headers.get("Content-Type", "")
        finally:
            connection.close()
        return _exchange(method, path, found.status, kind, data)

    with serving(answer) as registry:
        yield registry
    RECORDED.mkdir(exist_ok=True)
    lines = [json.dumps({key: value for key, value in asdict(each).items() if value}) for each in registry.exchanges]
    (RECORDED / f"{name}.jsonl").write_text("".join(f"{_complete(line)}\n" for line in lines))


def _complete(line: str) -> str:
    found = json.loads(line)
    return json.dumps({"method": "", "path": "", "status": 0, "kind": "", **found})


def _exchange(method: str, path: str, status: int, kind: str, data: bytes) -> Exchange:
    try:
        return Exchange(method, path, status, kind, data.decode())
    except UnicodeDecodeError:
        return Exchange(method, path, status, kind, base64=base64.b64encode(data).decode())
