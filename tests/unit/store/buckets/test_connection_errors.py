"""The cause of a missing answer is named, against real sockets; and which server environment variables name."""

import socket
import ssl
import threading
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager, suppress
from pathlib import Path

import obstore
import pytest
from obstore.exceptions import BaseError
from obstore.store import S3Store

from logkeep.embedded.ports import free_ports
from logkeep.errors import ConfigError, LogkeepError, StoreDenied, StoreUnreachable
from logkeep.store.access import open_store
from logkeep.store.buckets.aws_endpoint import VARIABLES
from logkeep.store.buckets.object_errors import translated
from tests.support.cli.in_process import Here
from tests.support.servers.certificates import Identity, authority, signed
from tests.support.servers.s3 import ENVIRONMENT

_FORBIDDEN = b"HTTP/1.1 403 Forbidden\r\nContent-Length: 0\r\nConnection: close\r\n\r\n"
_NO_SUCH_HOST = f"{'a' * 64}.invalid"
"""A label of more than 63 characters: every resolver refuses it at once, without the network."""


@pytest.fixture(autouse=True)
def _environment(monkeypatch: pytest.MonkeyPatch) -> None:
    for name, value in ENVIRONMENT.items():
        monkeypatch.setenv(name, value)


@contextmanager
def _listening(answer: Callable[[socket.socket], None]) -> Iterator[int]:
    """A server that hands each connection to `answer` and closes it; the port."""
    with socket.create_server(("127.0.0.1", 0)) as server:
        ended = threading.Event()

        def serve() -> None:
            while True:
                connection, _ = server.accept()
                with connection, suppress(OSError):
                    if ended.is_set():
                        return
                    answer(connection)

        thread = threading.Thread(target=serve)
        thread.start()
        try:
            yield server.getsockname()[1]
        finally:
            ended.set()
            socket.create_connection(server.getsockname()).close()
            thread.join()


def _forbidding(connection: socket.socket) -> None:
    connection.recv(65_536)
    connection.sendall(_FORBIDDEN)


@contextmanager
def _tls_server(identity: Identity, tmp_path: Path) -> Iterator[int]:
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(identity.write_pem(tmp_path / f"{identity.certificate.serial_number}.pem"))

    def answer(connection: socket.socket) -> None:
        with context.wrap_socket(connection, server_side=True) as encrypted:
            _forbidding(encrypted)

    with _listening(answer) as port:
        yield port


def _refusal(endpoint: str) -> LogkeepError:
    with pytest.raises(LogkeepError) as caught:
        open_store(f"s3://bucket/p?endpoint={endpoint}&region=us-east-1").get("a", 1)
    return caught.value


def _unreachable(endpoint: str, *, lasting: bool = True) -> str:
    error = _refusal(endpoint)
    assert isinstance(error, StoreUnreachable)
    assert (error.exit_code, error.lasting) == (51, lasting)
    assert error.subject == f"s3://bucket/p?endpoint={endpoint}&region=us-east-1"
    return f"{error.what}; {error.remedy}"


def test_refused() -> None:
    (port,) = free_ports(1)
    text = _unreachable(f"http://127.0.0.1:{port}")
    assert text.startswith(f"connection refused by 127.0.0.1:{port}; start the server, or correct host and port")


@pytest.mark.parametrize(("scheme", "why"), (("http", " ("), ("https", "; ")))
def test_an_unknown_host(scheme: str, why: str) -> None:
    text = _unreachable(f"{scheme}://{_NO_SUCH_HOST}:9000")
    assert text.startswith(f"DNS: the host name {_NO_SUCH_HOST} is not found{why}")
    assert "correct the host name in the endpoint" in text


def test_a_server_without_tls() -> None:
    with _listening(_forbidding) as port:
        text = _unreachable(f"https://127.0.0.1:{port}")
    assert text.startswith(f"TLS: 127.0.0.1:{port} does not answer with TLS; check the port, or use http://")


def test_a_server_that_expects_tls(tmp_path: Path) -> None:
    with _tls_server(signed(authority("ca"), "server", host="localhost"), tmp_path) as port:
        text = _unreachable(f"http://localhost:{port}", lasting=False)
    assert text.startswith(f"localhost:{port} closed the connection before its answer; if the server expects TLS")


def test_certificates(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    ca = authority("ca")
    with ExitStack() as stack:

        def server(identity: Identity) -> str:
            return f"https://localhost:{stack.enter_context(_tls_server(identity, tmp_path))}"

        good = server(signed(ca, "server", host="localhost"))
        assert "is not trusted: its authority is unknown; set SSL_CERT_FILE" in _unreachable(good)
        (tmp_path / "ca.pem").write_text(ca.pem)
        monkeypatch.setenv("SSL_CERT_FILE", str(tmp_path / "ca.pem"))
        assert isinstance(_refusal(good), StoreDenied)  # the server's own answer
        assert "is for other host names" in _unreachable(server(signed(ca, "server", host="other")))
        assert "has expired; renew it" in _unreachable(server(signed(ca, "server", host="localhost", days=-1)))


@pytest.mark.parametrize(("backlog", "what"), ((0, "timeout: no connection to"), (10, "timeout: no answer from")))
def test_timeouts(backlog: int, what: str) -> None:
    """With a full backlog the kernel answers no further connection; otherwise it accepts, and the server is mute."""
    with ExitStack() as stack:
        server = stack.enter_context(socket.create_server(("127.0.0.1", 0), backlog=backlog))
        if backlog == 0:
            for _ in range(3):
                client = stack.enter_context(socket.socket())
                client.setblocking(False)
                client.connect_ex(server.getsockname())
        limits = {"connect_timeout": "1s", "read_timeout": "1s" if backlog else "30s", "allow_http": True}
        host = f"127.0.0.1:{server.getsockname()[1]}"
        store = S3Store("b", endpoint=f"http://{host}", client_options=limits, retry_config={"max_retries": 0})  # type: ignore[arg-type]  # a plain dict
        with pytest.raises(BaseError) as caught:
            obstore.get(store, "a")
    error = translated(caught.value, "a", "s3://b")
    assert isinstance(error, StoreUnreachable)
    assert not error.lasting
    assert error.what == f"{what} {host} within 1 s"


class TestCommand:
    def test_a_refused_connection_is_retried_and_shown_and_reported_soon(self, tmp_path: Path) -> None:
        (port,) = free_ports(1)
        url = f"s3://bucket/p?endpoint=http://127.0.0.1:{port}"
        done = Here(tmp_path, {**ENVIRONMENT, "LOGKEEP_REPO": url}).run_any("list")
        assert done.code == 51
        assert f"connection refused by 127.0.0.1:{port}" in done.stderr.splitlines()[-3]
        retries = [line for line in done.stderr.splitlines() if "trying again in" in line]
        assert "(attempt 2)" in retries[0]


@pytest.mark.parametrize("variable", VARIABLES)
class TestEndpointVariables:
    def test_http(self, variable: str, monkeypatch: pytest.MonkeyPatch) -> None:
        with _listening(_forbidding) as port:
            monkeypatch.setenv(variable, f"http://127.0.0.1:{port}/")
            store = open_store("s3://bucket/p?region=us-east-1")
            assert store.url == f"s3://bucket/p?endpoint=http://127.0.0.1:{port}&region=us-east-1"
            with pytest.raises(StoreDenied):
                store.get("a", 1)

    def test_https(self, variable: str, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
        ca = authority("ca")
        (tmp_path / "ca.pem").write_text(ca.pem)
        monkeypatch.setenv("SSL_CERT_FILE", str(tmp_path / "ca.pem"))
        with _tls_server(signed(ca, "server", host="localhost"), tmp_path) as port:
            monkeypatch.setenv(variable, f"https://localhost:{port}")
            with pytest.raises(StoreDenied):
                open_store("s3://bucket/p?region=us-east-1").get("a", 1)

    def test_the_url_comes_first(self, variable: str, monkeypatch: pytest.MonkeyPatch) -> None:
        (nobody,) = free_ports(1)
        monkeypatch.setenv(variable, f"http://127.0.0.1:{nobody}")
        with _listening(_forbidding) as port:
            assert isinstance(_refusal(f"http://127.0.0.1:{port}"), StoreDenied)

    def test_what_is_no_endpoint_is_refused_without_repeating_it(
        self, variable: str, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        for value in ("ftp://host", "http://user:CANARY-77@host", "host:9000"):
            monkeypatch.setenv(variable, value)
            with pytest.raises(ConfigError) as caught:
                open_store("s3://bucket/p")
            assert f"unset {variable}, or name the endpoint in the URL" in caught.value.remedy
            assert "CANARY" not in str(caught.value)


def test_the_first_variable_wins(monkeypatch: pytest.MonkeyPatch) -> None:
    for number, variable in enumerate(VARIABLES):
        monkeypatch.setenv(variable, f"http://127.0.0.1:{number + 1}")
    assert open_store("s3://bucket/p").url == "s3://bucket/p?endpoint=http://127.0.0.1:1"
    assert open_store("gs://bucket/p?endpoint=http://127.0.0.1:9").url == "gs://bucket/p?endpoint=http://127.0.0.1:9"
