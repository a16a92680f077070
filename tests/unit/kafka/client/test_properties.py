"""client.properties become settings that hold no secret; unsupported keys are refused."""

import pickle
from pathlib import Path

import pytest

from logkeep.errors import ConfigError, TlsFailed
from logkeep.file_owners import OriginFile
from logkeep.kafka.client.properties import load_settings
from logkeep.kafka.client.retry import Backoff
from logkeep.kafka.client.security.credentials import read_properties, reveal_place
from logkeep.kafka.client.security.tls import tls_context
from logkeep.kafka.client.settings import (
    ClientSettings,
    CommandSecret,
    Endpoint,
    FileSecret,
    PropertySecret,
    Sasl,
    endpoints,
)
from tests.support.servers.certificates import authority, signed

SECURITY = "org.apache.kafka.common.security"
SECRET = "hush-4711"
ENTRY = f'{SECURITY}.scram.ScramLoginModule required username="alice" password="{SECRET}";'
SCRAM = {
    "bootstrap.servers": "a:1",
    "security.protocol": "SASL_PLAINTEXT",
    "sasl.mechanism": "SCRAM-SHA-256",
    "sasl.jaas.config": ENTRY,
}


def _write(directory: Path, found: dict[str, str], mode: int = 0o600) -> Path:
    path = directory / "client.properties"
    path.write_text("".join(f"{key}={value}\n" for key, value in found.items()))
    path.chmod(mode)
    return path


def test_a_plain_file(tmp_path: Path) -> None:
    found = {
        "bootstrap.servers": " one:9092, [::1]:9093 ,PLAINTEXT://two:9094,",
        "client.id": "nightly",
        "client.rack": "r1",
        "request.timeout.ms": "1500",
        "socket.connection.setup.timeout.ms": "250",
        "receive.buffer.bytes": "65536",
        "group.id": "unused",
    }
    settings = load_settings(_write(tmp_path, found, 0o644))
    assert settings == ClientSettings(
        (Endpoint("one", 9092), Endpoint("::1", 9093), Endpoint("two", 9094)),
        client_id="nightly",
        rack="r1",
        request_timeout_s=1.5,
        connect_timeout_s=0.25,
        receive_buffer_bytes=65536,
    )
    assert settings.notes == ("client.properties: group.id has no effect here",)
    assert str(settings.bootstrap[1]) == "[::1]:9093"
    assert load_settings(tmp_path / "client.properties", bootstrap="x:1").bootstrap == (Endpoint("x", 1),)


def test_settings_hold_where_a_secret_lies_and_not_the_secret(tmp_path: Path) -> None:
    path = _write(tmp_path, SCRAM)
    settings = load_settings(path)
    place = PropertySecret(path, "sasl.jaas.config", "password")
    assert settings.sasl == Sasl("SCRAM-SHA-256", "alice", place)
    assert SECRET not in repr(settings)
    assert SECRET.encode() not in pickle.dumps(settings)
    assert reveal_place(place).reveal() == SECRET
    path.chmod(0o640)
    with pytest.raises(ConfigError, match="read by others"):
        reveal_place(place)


def test_passwords_are_the_bytes_that_java_would_send(tmp_path: Path) -> None:
    path = _write(tmp_path, {"ssl.key.password": "ü"})
    assert reveal_place(PropertySecret(path, "ssl.key.password")).reveal() == "Ã¼"


@pytest.mark.parametrize("mode", (0o644, 0o640, 0o604, 0o660))
def test_a_file_with_secrets_that_others_can_read_is_refused(tmp_path: Path, mode: int) -> None:
    with pytest.raises(ConfigError, match=f"read by others \\(mode {mode:04o}\\)") as caught:
        load_settings(_write(tmp_path, SCRAM, mode))
    assert "chmod 600" in caught.value.remedy


def test_places_of_tokens(tmp_path: Path) -> None:
    base = {"bootstrap.servers": "a:1", "security.protocol": "SASL_PLAINTEXT", "sasl.mechanism": "OAUTHBEARER"}

    def place(key: str, value: str) -> object:
        sasl = load_settings(_write(tmp_path, {**base, key: value})).sasl
        return sasl and sasl.secret

    assert place("sasl.oauthbearer.token.endpoint.url", "file:///a%20b") == FileSecret(Path("/a b"))
    assert place("logkeep.oauthbearer.token.file", "/c") == FileSecret(Path("/c"))
    assert load_settings(tmp_path / "client.properties").notes[-1].endswith("sends the secret in clear")
    defined = tmp_path / "client.properties"
    assert place("logkeep.oauthbearer.token.command", "get 'a b'") == CommandSecret(("get", "a b"), OriginFile(defined))
    with pytest.raises(ConfigError, match="no source of the token"):
        place("sasl.oauthbearer.token.endpoint.url", "https://idp/token")


@pytest.mark.parametrize(("protocol", "warned"), [("SASL_PLAINTEXT", True), ("SASL_SSL", False)])
def test_scram_without_tls_is_warned_of(tmp_path: Path, protocol: str, warned: bool) -> None:
    notes = load_settings(_write(tmp_path, {**SCRAM, "security.protocol": protocol})).notes
    assert any("SCRAM-SHA-256 without TLS lets others" in note for note in notes) is warned


@pytest.mark.parametrize(
    ("changes", "words"),
    (
        ({"bootstrap.servers": ""}, "no server is named"),
        ({"bootstrap.servers": "host"}, "not host:port"),
        ({"bootstrap.servers": "host:70000"}, "not host:port"),
        ({"security.protocol": "TLS"}, "security.protocol TLS is unknown"),
        ({"sasl.mechanism": "GSSAPI"}, "sasl.mechanism GSSAPI is not supported"),
        ({"sasl.mechanism": "PLAIN"}, "ScramLoginModule does not serve PLAIN"),
        ({"sasl.jaas.config": ENTRY.replace('username="alice"', "")}, "username missing"),
        ({"sasl.jaas.config": ENTRY.replace(";", " tokenauth=true;")}, "delegation tokens"),
        ({"sasl.jaas.config": ENTRY.replace(";", " other=true;")}, "unknown option other"),
        ({"sasl.login.callback.handler.class": "com.example.Handler"}, "cannot be run here"),
        ({"ssl.endpoint.identification.algorithm": ""}, "host names are always checked"),
        ({"ssl.enabled.protocols": "TLSv1.2,TLSv1.1"}, "TLSv1.1: only"),
        ({"ssl.protocol": "SSLv3"}, "SSLv3: only"),
        ({"config.providers": "file"}, "config.providers is not supported"),
        ({"ssl.engine.factory.class": "x"}, "ssl.engine.factory.class is not supported"),
        ({"request.timeout.ms": "soon"}, "request.timeout.ms must be"),
        ({"request.timeout.ms": "-1"}, "request.timeout.ms must be"),
    ),
)
def test_what_cannot_be_honoured_is_refused(tmp_path: Path, changes: dict[str, str], words: str) -> None:
    path = _write(tmp_path, {**SCRAM, **changes})
    with pytest.raises(ConfigError, match=words) as caught:
        load_settings(path)
    assert caught.value.exit_code == 40
    assert SECRET not in f"{caught.value}{caught.value.remedy}"


def _tls(tmp_path: Path, **changes: str) -> ClientSettings:
    found = {"bootstrap.servers": "a:1", "security.protocol": "SSL"}
    return load_settings(_write(tmp_path, found | {key.replace("__", "."): value for key, value in changes.items()}))


def test_stores_are_known_by_their_content(tmp_path: Path) -> None:
    ca, store = authority("ca"), tmp_path / "store.jks"
    signed(ca, "me").write_pkcs12(store, SECRET)
    settings = _tls(
        tmp_path, ssl__keystore__type="JKS", ssl__keystore__location=str(store), ssl__keystore__password=SECRET
    )
    assert settings.identity is not None
    assert settings.identity.kind == "PKCS12"
    tls_context(settings)
    with pytest.raises(TlsFailed, match="cannot be opened"):
        tls_context(_tls(tmp_path, ssl__keystore__location=str(store), ssl__keystore__password="wrong"))
    store.write_bytes(b"\xfe\xed\xfe\xed" + bytes(20))
    with pytest.raises(ConfigError, match="JKS") as caught:
        _tls(tmp_path, ssl__truststore__location=str(store))
    assert "keytool -importkeystore" in caught.value.remedy
    store.write_bytes(b"nonsense")
    with pytest.raises(ConfigError, match="neither PEM nor PKCS12"):
        _tls(tmp_path, ssl__truststore__location=str(store))


def test_keys_that_others_can_read_or_that_do_not_fit_are_refused(tmp_path: Path) -> None:
    ca = authority("ca")
    mine, other = signed(ca, "me"), signed(ca, "other")
    key = mine.write_pem(tmp_path / "key.pem")
    tls_context(_tls(tmp_path, ssl__keystore__location=str(key)))
    key.chmod(0o644)
    with pytest.raises(ConfigError, match="read by others"):
        _tls(tmp_path, ssl__keystore__location=str(key))
    key.chmod(0o600)
    key.write_text(mine.key_pem + other.pem)
    with pytest.raises(TlsFailed, match="cannot be used together"):
        tls_context(_tls(tmp_path, ssl__keystore__location=str(key)))
    with pytest.raises(ConfigError, match="belong together"):
        _tls(tmp_path, ssl__keystore__key="x")
    empty = tmp_path / "ca.pem"
    empty.write_text("-----BEGIN CERTIFICATE-----\nx\n-----END CERTIFICATE-----\n")
    with pytest.raises(TlsFailed, match="no certificate"):
        tls_context(_tls(tmp_path, ssl__truststore__location=str(empty)))


def test_token_commands(tmp_path: Path) -> None:
    path = _write(tmp_path, {})
    defined = read_properties(path, private=True).origin
    assert reveal_place(CommandSecret(("echo", SECRET), defined)).reveal() == SECRET
    for argv, words in ((("false",), "ended with code 1"), (("/no/such/program",), "cannot be run")):
        with pytest.raises(ConfigError, match=words):
            reveal_place(CommandSecret(argv, defined))
    path.chmod(0o622)
    unsafe = read_properties(path, private=False).origin
    path.chmod(0o600)
    with pytest.raises(ConfigError, match="others can change it"):
        reveal_place(CommandSecret(("echo", SECRET), pickle.loads(pickle.dumps(unsafe))))  # noqa: S301 - as workers do


def test_patience_doubles_its_waits_up_to_a_limit() -> None:
    waits: list[float] = []
    backoff = Backoff(attempts=6, first_wait_s=1, longest_wait_s=4, sleep=waits.append, chance=lambda: 1.0)
    assert list(backoff.tries()) == [0, 1, 2, 3, 4, 5]
    assert waits == [1, 2, 4, 4, 4]
    assert Backoff(first_wait_s=1, chance=lambda: 0.0).wait_s(1) == 0.5


def test_endpoints_are_never_guessed() -> None:
    for text in ("", " , ", ":1", "a:", "a:0", "a:²"):
        with pytest.raises(ConfigError):
            endpoints(text)
