"""What a registry, or something else at its address, may answer."""

import base64
import socket
import ssl
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from logkeep.embedded.ports import free_ports
from logkeep.errors import (
    AuthenticationFailed,
    ClusterError,
    ClusterNotReady,
    ClusterUnreachable,
    ConfigError,
    InvalidAnswer,
    LogkeepError,
    NotAuthorised,
    TlsFailed,
    UsageError,
)
from logkeep.kafka.registry.capture import capture, probe
from logkeep.kafka.registry.client import RegistryClient
from logkeep.kafka.registry.settings import RegistrySettings, registry_address, registry_settings, sent_in_clear
from logkeep.kafka.registry.values import SchemaReference
from tests.support.kafka.registry_steps import settings_of
from tests.support.servers.certificates import authority, signed
from tests.support.servers.recorded_registry import Exchange, serving

SECRET = "pa:ss-4711"


def _file(folder: Path, text: str, mode: int = 0o600) -> Path:
    path = folder / "registry.properties"
    path.write_text(text)
    path.chmod(mode)
    return path


@pytest.mark.parametrize(
    ("status", "kind", "text", "error"),
    (
        (200, "text/html", "<html><body>Sign in</body></html>", InvalidAnswer),
        (200, "application/json", "<HTML>", InvalidAnswer),
        (200, "application/json", '{"subjects": []}', InvalidAnswer),
        (200, "application/json", "[1, 2]", InvalidAnswer),
        (200, "application/json", "[" * 100_000, InvalidAnswer),
        (200, "application/json", "", InvalidAnswer),
        (302, "text/html", "", InvalidAnswer),
        (401, "application/json", '{"message":"no"}', AuthenticationFailed),
        (403, "application/json", '{"message":"no"}', NotAuthorised),
        (200, "application/json", r'["a\ud800"]', InvalidAnswer),
        (404, "application/json", '{"message":"no such path"}', InvalidAnswer),
        (405, "application/json", '{"message":"no such method"}', InvalidAnswer),
        (409, "application/json", '{"message":"no"}', ClusterError),
        (404, "text/html", "<html>not found</html>", InvalidAnswer),
        (429, "application/json", '{"message":"too many requests"}', ClusterNotReady),
        (500, "application/json", '{"message":"busy"}', ClusterNotReady),
        (502, "text/html", "<html>bad gateway</html>", ClusterUnreachable),
        (503, "text/html", "<html>no server</html>", ClusterUnreachable),
        (504, "text/html", "<html>no answer in time</html>", ClusterUnreachable),
    ),
)
def test_every_other_answer_is_an_error_with_a_remedy(
    status: int, kind: str, text: str, error: type[LogkeepError]
) -> None:
    with (
        serving(lambda method, path, *_: Exchange(method, path, status, kind, text)) as registry,
        pytest.raises(error) as failed,
    ):
        probe(settings_of(registry.url))
    assert failed.value.remedy
    assert "127.0.0.1" in failed.value.subject


def test_a_registry_that_is_down() -> None:
    (port,) = free_ports(1)
    with pytest.raises(ClusterUnreachable, match="no answer: connection refused"):
        probe(settings_of(f"http://127.0.0.1:{port}"))


@contextmanager
def _raw(answer: bytes, *, more: bytes = b"", then_wait: bool = False) -> Iterator[str]:
    """A server that sends these bytes to every connection, and `more` until the client closes it."""
    stop, server = threading.Event(), socket.create_server(("127.0.0.1", 0))
    server.settimeout(0.05)

    def serve() -> None:
        while not stop.is_set():
            try:
                connection, _ = server.accept()
            except TimeoutError:
                continue
            with connection:
                connection.settimeout(5)
                try:
                    connection.recv(1 << 16)
                    connection.sendall(answer)
                    while more and not stop.is_set():
                        connection.sendall(more)
                    if then_wait:
                        stop.wait(20)
                except OSError:
                    pass

    thread = threading.Thread(target=serve)
    thread.start()
    try:
        yield f"http://127.0.0.1:{server.getsockname()[1]}"
    finally:
        stop.set()
        thread.join()
        server.close()


def test_an_answer_without_end_is_bounded() -> None:
    head = b"HTTP/1.1 200 OK\r\nContent-Type: application/json\r\n\r\n["
    with _raw(head, more=b"1," * (1 << 19)) as url, pytest.raises(InvalidAnswer, match="larger than 64 MiB"):
        probe(settings_of(url))


def test_a_body_shorter_than_announced_is_no_answer() -> None:
    with _raw(b"HTTP/1.1 200 OK\r\nContent-Length: 100\r\n\r\n[]") as url, pytest.raises(ClusterUnreachable):
        probe(settings_of(url))


@pytest.mark.parametrize("sent", (b"", b"HTTP/1.1 200 OK\r\nContent-Length: 100\r\n\r\n["))
def test_a_server_that_stops_sending_is_not_waited_for(sent: bytes) -> None:
    with _raw(sent, then_wait=True) as url:
        settings = RegistrySettings(registry_address(url), timeout_s=0.2)
        with pytest.raises(ClusterUnreachable, match="no answer"):
            probe(settings)


def test_a_registry_that_never_rests_is_not_captured() -> None:
    count = iter(range(1_000))

    def answer(method: str, path: str, *_: object) -> Exchange:
        if path == "/subjects?deleted=true":
            return Exchange(method, path, 200, "application/json", f'["s{next(count)}"]')
        if "/versions/1" in path:
            name = path.split("/")[2]
            text = f'{{"subject":"{name}","version":1,"id":1,"schema":"x"}}'
            return Exchange(method, path, 200, "application/json", text)
        if path.startswith("/subjects/"):
            return Exchange(method, path, 200, "application/json", "[1]")
        if path == "/subjects":
            return Exchange(method, path, 200, "application/json", "[]")
        return Exchange(method, path, 404, "application/json", '{"message":"not here"}')

    with serving(answer) as registry, pytest.raises(ClusterNotReady, match="all the time"):
        capture(settings_of(registry.url))


def test_fields_of_newer_registries_are_ignored_and_rules_are_remembered() -> None:
    reference = '{"name":"n","subject":"a","version":1,"new":1}'
    texts = {
        "/subjects": '["a"]',
        "/subjects?deleted=true": '["a"]',
        "/subjects/a/versions": "[1]",
        "/subjects/a/versions?deleted=true": "[1]",
        "/subjects/a/versions/1?deleted=true": '{"subject":"a","version":1,"id":1,"schema":"x","new":{},'
        f'"ruleSet":{{"domainRules":[]}},"references":[{reference}]}}',
    }

    def answer(method: str, path: str, *_: object) -> Exchange:
        return Exchange(method, path, 200 if path in texts else 404, "application/json", texts.get(path, "{}"))

    with serving(answer) as registry:
        found = capture(settings_of(registry.url)).registry
    assert found.definitions[0].references == (SchemaReference("n", "a", 1),)
    assert found.versions[0].contract


def test_a_version_that_was_not_asked_for_is_no_answer() -> None:
    def answer(method: str, path: str, *_: object) -> Exchange:
        texts = {
            "/subjects": '["a"]',
            "/subjects?deleted=true": '["a"]',
            "/subjects/a/versions": "[1]",
            "/subjects/a/versions?deleted=true": "[1]",
            "/subjects/a/versions/1?deleted=true": '{"subject":"b","version":1,"id":1,"schema":"x"}',
        }
        return Exchange(method, path, 200 if path in texts else 404, "application/json", texts.get(path, "{}"))

    with serving(answer) as registry, pytest.raises(InvalidAnswer, match="version 1 of b"):
        capture(settings_of(registry.url))


def test_credentials_come_from_the_file_and_go_into_one_header(tmp_path: Path) -> None:
    seen: list[str | None] = []

    def answer(method: str, path: str, _body: bytes, headers: dict[str, str]) -> Exchange:
        seen.append(headers.get("Authorization"))
        return Exchange(method, path, 401, "application/json", "{}")

    with serving(answer) as registry:
        for text in (f"basic.auth.user.info={SECRET}", "bearer.auth.token=token-4711"):
            settings = registry_settings(registry.url, _file(tmp_path, text))
            with pytest.raises(AuthenticationFailed, match="refuses these credentials") as failed:
                probe(settings)
            for said in (str(failed.value), failed.value.remedy, repr(settings)):
                assert "4711" not in said
        with pytest.raises(AuthenticationFailed, match="requires credentials"):
            probe(settings_of(registry.url))
    basic = "Basic " + base64.b64encode(SECRET.encode()).decode()
    assert seen == [basic, "Bearer token-4711", None]


@pytest.mark.parametrize(
    ("text", "what"),
    (
        ("schema.registry.basic.auth.user.info=a:b", "not supported"),
        ("basic.auth.user.info=only-a-name", "user:password"),
        ("basic.auth.user.info=a:b\nbearer.auth.token=c", "exclude each other"),
        ("basic.auth.credentials.source=URL", "not supported"),
        ("ssl.endpoint.identification.algorithm=", "not supported"),
    ),
)
def test_a_file_that_says_something_else_is_refused(tmp_path: Path, text: str, what: str) -> None:
    with pytest.raises(ConfigError, match=what):
        registry_settings("http://registry:8081", _file(tmp_path, text))


def test_a_file_that_others_can_read_is_refused(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match="can be read by others"):
        registry_settings("http://registry:8081", _file(tmp_path, "bearer.auth.token=c", 0o644))


@pytest.mark.parametrize(
    "url",
    ("registry:8081", "ftp://registry", "http://", "http://a:b@registry:8081", "http://registry/?a=b", "http://r:0"),
)
def test_an_address_that_is_none(url: str) -> None:
    with pytest.raises(UsageError) as failed:
        registry_address(url)
    assert "a:b" not in str(failed.value)


def test_addresses() -> None:
    assert str(registry_address("https://registry/apis/ccompat/v7/")) == "https://registry:443/apis/ccompat/v7"
    assert str(registry_address("http://[::1]:8081")) == "http://[::1]:8081"


def test_a_password_over_http_is_reported(tmp_path: Path) -> None:
    file = _file(tmp_path, f"basic.auth.user.info={SECRET}")
    assert sent_in_clear(registry_settings("http://registry:8081", file))
    assert not sent_in_clear(registry_settings("https://registry:8081", file))
    assert not sent_in_clear(registry_settings("http://localhost:8081", file))
    assert not sent_in_clear(registry_settings("http://registry:8081", None))


def test_an_idle_connection_that_the_registry_closed_is_opened_again() -> None:
    with (
        serving(lambda method, path, *_: Exchange(method, path, 200, "application/json", "[]")) as registry,
        RegistryClient(settings_of(registry.url)) as client,
    ):
        assert client.get("/subjects").json() == []
        assert client._connection.sock is not None
        client._connection.sock.shutdown(socket.SHUT_RDWR)
        assert client.get("/subjects").json() == []


def test_tls_trusts_only_the_authority_of_the_file_and_shows_the_clients_certificate(tmp_path: Path) -> None:
    ca = authority("ca")
    (tmp_path / "ca.pem").write_text(ca.pem)
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(signed(ca, "registry", host="localhost").write_pem(tmp_path / "server.pem"))
    context.load_verify_locations(cadata=ca.pem)
    context.verify_mode = ssl.CERT_REQUIRED
    signed(ca, "backup").write_pem(tmp_path / "client.pem")
    trust = f"ssl.truststore.location={tmp_path / 'ca.pem'}\n"
    key = f"ssl.keystore.location={tmp_path / 'client.pem'}\n"
    with serving(lambda method, path, *_: Exchange(method, path, 200, "application/json", "[]"), context) as registry:
        probe(registry_settings(registry.url, _file(tmp_path, trust + key)))
        with pytest.raises(TlsFailed, match="the registry's certificate is signed by an unknown authority") as failed:
            probe(settings_of(registry.url))
        assert "--registry-config" in failed.value.remedy
        with pytest.raises(LogkeepError):
            probe(registry_settings(registry.url, _file(tmp_path, trust)))
        other = registry.url.replace("localhost", "127.0.0.1")
        with pytest.raises(TlsFailed, match="for another host name"):
            probe(registry_settings(other, _file(tmp_path, trust + key)))
