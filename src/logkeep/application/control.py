"""The control socket of a running application: one JSON object per line in, one per line out.

    {"send": {"name", "key", "value", "request", "timeout_s"}}   {"reply": …}
    {"facts": {}}                                                {"facts": {…}}
    {"create": {"partition", "document"}}                        {"sent": true}
    {"answers": {"id"}}                                          {"answers": {partition: document}}

An error is `{"error": {"what", "remedy", "code"}}`. The socket is in the data directory, mode 0600. Addresses of
sockets are short, so both sides reach it through their open directory.
"""

import os
import socketserver
import threading
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

import msgspec

from logkeep.application.data_directory import SOCKET
from logkeep.application.runtime import Runtime
from logkeep.checkpoint.records import CheckpointDocument
from logkeep.errors import LogkeepError, UsageError

MOST_LINE_BYTES = 4 << 20


class SendRequest(msgspec.Struct, forbid_unknown_fields=True):
    name: str
    key: str
    value: Any = None
    request: str | None = None
    timeout_s: float = 30.0


class CreateRequest(msgspec.Struct, forbid_unknown_fields=True):
    partition: int
    document: CheckpointDocument


class AnswersRequest(msgspec.Struct, forbid_unknown_fields=True):
    id: int


class ControlRequest(msgspec.Struct, forbid_unknown_fields=True, omit_defaults=True):
    """Exactly one field is set."""

    send: SendRequest | None = None
    facts: dict[str, str] | None = None
    create: CreateRequest | None = None
    answers: AnswersRequest | None = None


_REQUESTS = msgspec.json.Decoder(ControlRequest)
"""Made at import: msgspec crashes the process if two threads build the decoder of a type at the same moment."""


@contextmanager
def reachable(directory: Path) -> Iterator[str]:
    """The address of the socket, short whatever the path of the directory is."""
    descriptor = os.open(directory, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    try:
        yield f"/proc/self/fd/{descriptor}/{SOCKET}"
    finally:
        os.close(descriptor)


class ControlServer:
    """Answers requests in threads until `close`. The caller holds the lock of the directory."""

    def __init__(self, runtime: Runtime, directory: Path) -> None:
        self._path = directory / SOCKET
        self._path.unlink(missing_ok=True)
        with reachable(directory) as address:
            self._server = _Server(address, runtime)
        self._path.chmod(0o600)
        self._thread = threading.Thread(target=self._server.serve_forever, args=(0.1,), daemon=True)
        self._thread.start()

    def close(self) -> None:
        self._server.shutdown()
        self._server.server_close()
        self._path.unlink(missing_ok=True)


class _Server(socketserver.ThreadingMixIn, socketserver.UnixStreamServer):
    daemon_threads = True
    block_on_close = False
    request_queue_size = 128

    def __init__(self, address: str, runtime: Runtime) -> None:
        self.runtime = runtime
        super().__init__(address, _Connection)


class _Connection(socketserver.StreamRequestHandler):
    def handle(self) -> None:
        assert isinstance(self.server, _Server)  # noqa: S101 - made above
        with suppress(ConnectionError):
            while line := self.rfile.readline(MOST_LINE_BYTES):
                self.wfile.write(msgspec.json.encode(_answer(self.server.runtime, line)) + b"\n")


def _answer(runtime: Runtime, line: bytes) -> dict[str, Any]:
    try:
        return _execute(runtime, _REQUESTS.decode(line))
    except (msgspec.MsgspecError, RecursionError) as error:
        return _refusal(UsageError(f"the request cannot be read ({error})"))
    except LogkeepError as error:
        return _refusal(error)


def _execute(runtime: Runtime, request: ControlRequest) -> dict[str, Any]:
    if request.send is not None:
        sent = request.send
        return {"reply": runtime.submit(sent.name, sent.key, sent.value, sent.request, sent.timeout_s)}
    if request.create is not None:
        runtime.create(request.create.partition, request.create.document)
        return {"sent": True}
    if request.answers is not None:
        return {"answers": runtime.answers(request.answers.id)}
    return {"facts": runtime.facts()}


def _refusal(error: LogkeepError) -> dict[str, Any]:
    return {"error": {"what": str(error), "remedy": error.remedy, "code": error.exit_code}}
