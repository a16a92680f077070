"""An S3 server that follows AWS's rule for buckets with object lock: a write without a checksum is refused.

It stands before a real server, to which it passes everything else as it came. AWS accepts `Content-MD5`,
`x-amz-sdk-checksum-algorithm` and the `x-amz-checksum-` headers; servers for tests have no such rule, or another one.
"""

import http.client
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from urllib.parse import urlsplit

from tests.support.servers.s3 import S3Server

_REFUSED = (
    b"<Error><Code>InvalidRequest</Code><Message>Content-MD5 OR x-amz-checksum- HTTP header is required for Put Object "
    b"requests with Object Lock parameters</Message></Error>"
)
_CHECKSUMS = ("content-md5", "x-amz-sdk-checksum-algorithm", "x-amz-checksum-")


@contextmanager
def lock_rule(server: S3Server, denied: str = "") -> Iterator[S3Server]:
    """The same server at another endpoint, with the rule; `denied` is a question about buckets that it refuses."""
    behind = urlsplit(server.endpoint).netloc

    class Passing(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"

        def _pass(self) -> None:
            body = self.rfile.read(int(self.headers.get("Content-Length") or 0))
            if self.command == "PUT" and not any(name.lower().startswith(_CHECKSUMS) for name in self.headers):
                self._answer(400, [], _REFUSED)
                return
            if denied and urlsplit(self.path).query.startswith(denied):
                self._answer(403, [], b"<Error><Code>AccessDenied</Code></Error>")
                return
            inner = http.client.HTTPConnection(behind, timeout=30)
            # The signature covers the Host header: it is passed as it came.
            inner.putrequest(self.command, self.path, skip_host=True, skip_accept_encoding=True)
            for name, value in self.headers.items():
                inner.putheader(name, value)
            inner.endheaders(body)
            answer = inner.getresponse()
            self._answer(answer.status, answer.getheaders(), answer.read())
            inner.close()

        def _answer(self, status: int, headers: list[tuple[str, str]], body: bytes) -> None:
            self.send_response(status)
            for name, value in headers:
                if name.lower() not in {"transfer-encoding", "connection", "content-length"} or self.command == "HEAD":
                    self.send_header(name, value)
            if self.command != "HEAD":
                self.send_header("Content-Length", str(len(body)))
            self.end_headers()
            self.wfile.write(body)

        do_GET = do_PUT = do_POST = do_HEAD = do_DELETE = _pass  # noqa: N815 - names of the library

        def log_message(self, *_: object) -> None:
            return

    with ThreadingHTTPServer(("127.0.0.1", 0), Passing) as proxy:
        threading.Thread(target=proxy.serve_forever, daemon=True).start()
        yield S3Server("locked", f"http://127.0.0.1:{proxy.server_port}")
        proxy.shutdown()
