"""Every way in that brokers offer works; every wrong key fails with the right words, class and exit code."""

import os
import pickle
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest
from confluent_kafka.admin import AdminClient

from logkeep.engine.spark.jvm.java import find_java
from logkeep.errors import (
    AuthenticationFailed,
    LogkeepError,
    NotAuthorised,
    ProtocolMismatch,
    TlsFailed,
    TopicMissing,
)
from logkeep.kafka.admin.offsets import log_bounds
from logkeep.kafka.admin.security import AclBinding, list_acls
from logkeep.kafka.admin.topics import replica_sizes
from logkeep.kafka.client.cluster import Cluster
from logkeep.kafka.client.properties import load_settings
from logkeep.kafka.client.retry import Backoff
from logkeep.kafka.client.settings import ClientSettings, endpoints
from logkeep.kafka.client.topology import TopicPartition
from tests.support.kafka.single_topic import create_topic
from tests.support.servers.secured_kafka import BEARER, ODD_USER, PASSWORD, STORE_PASSWORD, SecuredKafka

pytestmark = pytest.mark.xdist_group("kafka-secured")
Way = Callable[[SecuredKafka], Path]


def _token_file(kafka: SecuredKafka) -> Path:
    path = kafka.files / "token"
    path.touch(mode=0o600)
    path.write_text(kafka.token() + "\n")
    return kafka.client_file(
        "SASL_SSL",
        sasl__mechanism="OAUTHBEARER",
        sasl__jaas__config=f"{BEARER} required;",
        sasl__oauthbearer__token__endpoint__url=f"file://{path}",
    )


def _token_command(kafka: SecuredKafka) -> Path:
    command = f"{sys.executable} -c 'print(\"{kafka.token()}\")'"
    return kafka.client_file("SASL_SSL", sasl__mechanism="OAUTHBEARER", logkeep__oauthbearer__token__command=command)


def _inline_pem(kafka: SecuredKafka) -> Path:
    lines = {
        "ssl__truststore__certificates": kafka.authority.pem,
        "ssl__keystore__certificate__chain": kafka.alice.pem,
        "ssl__keystore__key": kafka.alice.encrypted_key_pem(STORE_PASSWORD),
    }
    inline = {key: text.replace("\n", "\\n\\\n  ") for key, text in lines.items()}
    return kafka.client_file(
        "SSL", ssl__truststore__location="", ssl__keystore__type="PEM", ssl__key__password=STORE_PASSWORD, **inline
    )


def _keytool(kafka: SecuredKafka) -> Path:
    """A trust store as Java people make it: PKCS12 in a file called .jks."""
    keytool = find_java(os.environ).executable.parent / "keytool"
    store = kafka.files / "keytool.jks"
    where = ["-keystore", str(store), "-storepass", STORE_PASSWORD, "-file", str(kafka.files / "ca.pem")]
    subprocess.run([str(keytool), "-importcert", "-noprompt", "-alias", "ca", *where], check=True, capture_output=True)
    changes = {"ssl__truststore__type": "JKS", "ssl__truststore__password": STORE_PASSWORD}
    return _key_file(kafka, "alice.pem", ssl__truststore__location=str(store), **changes)


def _key_file(kafka: SecuredKafka, name: str, **more: str) -> Path:
    return kafka.client_file("SSL", ssl__keystore__location=str(kafka.files / name), **more)


WAYS: dict[str, Way] = {
    "mTLS PEM": lambda k: _key_file(k, "alice.pem", ssl__keystore__type="PEM"),
    "mTLS PKCS12": lambda k: _key_file(k, "alice.p12", ssl__keystore__password=STORE_PASSWORD),
    "mTLS inline PEM": _inline_pem,
    "mTLS with keytool's trust store": _keytool,
    "SASL_PLAINTEXT PLAIN": lambda k: k.sasl_file("SASL_PLAINTEXT", "PLAIN"),
    "SASL_SSL PLAIN": lambda k: k.sasl_file("SASL_SSL", "PLAIN"),
    "SASL_SSL SCRAM-SHA-256": lambda k: k.sasl_file("SASL_SSL", "SCRAM-SHA-256"),
    "SASL_SSL SCRAM-SHA-512": lambda k: k.sasl_file("SASL_SSL", "SCRAM-SHA-512"),
    "a user name with a comma": lambda k: k.sasl_file("SASL_SSL", "SCRAM-SHA-256", user=ODD_USER),
    "OAUTHBEARER by file": _token_file,
    "OAUTHBEARER by command": _token_command,
}


@pytest.mark.parametrize("way", WAYS.values(), ids=WAYS.keys())
def test_every_way_in(secured: SecuredKafka, way: Way) -> None:
    settings = load_settings(way(secured))
    sent = pickle.dumps(settings)
    assert all(secret.encode() not in sent for secret in (PASSWORD, STORE_PASSWORD, secured.alice.key_pem))
    expected = AdminClient({"bootstrap.servers": secured.bootstrap}).list_topics(timeout=20)
    with Cluster(pickle.loads(sent)) as cluster:  # noqa: S301  what a worker does with its own driver's settings
        found = cluster.metadata()
        assert found.cluster_id == expected.cluster_id
        # Only `open`: the broker took us for the user that we say we are, not for the administrator.
        assert [topic.name for topic in found.topics] == ["open"]
        assert log_bounds(cluster, [TopicPartition("open", 1)])[TopicPartition("open", 1)].high_watermark == 0


def _refused(path: Path, kind: type[LogkeepError], code: int) -> LogkeepError:
    with pytest.raises(kind) as caught, Cluster(load_settings(path), backoff=_impatient()) as cluster:
        cluster.metadata()
    assert type(caught.value) is kind
    assert caught.value.exit_code == code
    told = f"{caught.value} {caught.value!r} {caught.value.remedy} {cluster_repr(path)}"
    assert PASSWORD not in told
    assert "wrong-4711" not in told
    return caught.value


def cluster_repr(path: Path) -> str:
    return repr(load_settings(path))


def _impatient() -> Backoff:
    return Backoff(attempts=2, sleep=lambda _: None)


@pytest.mark.parametrize("mechanism", ("PLAIN", "SCRAM-SHA-256", "SCRAM-SHA-512"))
def test_a_wrong_password(secured: SecuredKafka, mechanism: str) -> None:
    path = secured.sasl_file("SASL_SSL", mechanism, password="wrong-4711")
    error = _refused(path, AuthenticationFailed, 52)
    assert f"{mechanism} for user 'alice' failed" in str(error)
    assert "offers OAUTHBEARER, PLAIN, SCRAM-SHA-256, SCRAM-SHA-512" in str(error)


def test_a_mechanism_that_is_not_offered(secured: SecuredKafka) -> None:
    error = _refused(secured.sasl_file("SASL_PLAINTEXT", "SCRAM-SHA-512"), AuthenticationFailed, 52)
    assert "does not offer SCRAM-SHA-512; it offers PLAIN" in str(error)


def test_a_token_that_the_broker_does_not_take(secured: SecuredKafka) -> None:
    path = secured.files / "old-token"
    path.touch(mode=0o600)
    path.write_text("eyJhbGciOiJub25lIn0.eyJzdWIiOiJhbGljZSIsImV4cCI6MX0.")
    file = secured.client_file("SASL_SSL", sasl__mechanism="OAUTHBEARER", logkeep__oauthbearer__token__file=str(path))
    assert "OAUTHBEARER failed" in str(_refused(file, AuthenticationFailed, 52))


def test_an_unknown_authority(secured: SecuredKafka) -> None:
    path = secured.sasl_file("SASL_SSL", "PLAIN")
    path.write_text(path.read_text() + f"ssl.truststore.location={secured.files / 'stranger.pem'}\n")
    assert "unknown authority" in str(_refused(path, TlsFailed, 40))


def test_another_host_name(secured: SecuredKafka) -> None:
    path = _key_file(secured, "alice.pem", bootstrap__servers=f"127.0.0.1:{secured.ports['SSL']}")
    assert "another host name" in str(_refused(path, TlsFailed, 40))


def test_an_expired_certificate(secured: SecuredKafka) -> None:
    assert "has expired" in str(_refused(secured.client_file("EXPIRED"), TlsFailed, 40))


def test_no_certificate_of_our_own(secured: SecuredKafka) -> None:
    error = _refused(secured.client_file("SSL"), TlsFailed, 40)
    assert "ssl.keystore" in error.remedy


PROTOCOLS = ("PLAINTEXT", "SSL", "SASL_PLAINTEXT", "SASL_SSL")


def _client_for(kafka: SecuredKafka, protocol: str, listener: str) -> Path:
    """A client with everything that its protocol needs, at the port of a listener."""
    path = kafka.sasl_file(protocol, "PLAIN") if protocol.startswith("SASL") else kafka.client_file(protocol)
    more = f"bootstrap.servers=localhost:{kafka.ports[listener]}\nssl.keystore.location={kafka.files / 'alice.pem'}\n"
    path.write_text(path.read_text() + more)
    return path


@pytest.mark.parametrize("listener", PROTOCOLS)
@pytest.mark.parametrize("ours", PROTOCOLS)
def test_a_client_and_a_listener_of_different_protocols(secured: SecuredKafka, ours: str, listener: str) -> None:
    """Both are named, at the first contact and without a wait; the client never continues with less protection."""
    path = _client_for(secured, ours, listener)
    if ours == listener:
        with Cluster(load_settings(path)) as cluster:
            assert cluster.metadata().brokers
        return
    waits: list[float] = []
    with (
        pytest.raises(ProtocolMismatch) as caught,
        Cluster(load_settings(path), backoff=Backoff(sleep=waits.append)) as cluster,
    ):
        cluster.metadata()
    error = caught.value
    assert (error.exit_code, waits) == (40, [])
    named = "SSL or SASL_SSL" if "SSL" in listener and "SSL" not in ours else listener
    assert error.what.startswith(f"the listener is {named}")
    assert error.what.endswith(f", but this client uses {ours}")
    assert error.subject == f"localhost:{secured.ports[listener]}"
    weaker = ("SSL" in ours and "SSL" not in named) or ("SASL" in ours and "SASL" not in named)
    assert ("name the port of the" in error.remedy) is weaker


def test_what_an_acl_forbids(secured: SecuredKafka) -> None:
    with Cluster(load_settings(secured.sasl_file("SASL_SSL", "PLAIN")), backoff=_impatient()) as cluster:
        for ask in (
            lambda: cluster.metadata(["closed"]),
            lambda: log_bounds(cluster, [TopicPartition("closed", 0)]),
            lambda: list_acls(cluster),
            lambda: replica_sizes(cluster),
            lambda: create_topic(cluster, "mine"),
        ):
            with pytest.raises(NotAuthorised) as caught:
                ask()
            assert caught.value.exit_code == 52
        with pytest.raises(TopicMissing):
            log_bounds(cluster, [TopicPartition("open", 2)])


def test_acls_as_the_administrator_sees_them(secured: SecuredKafka) -> None:
    with Cluster(ClientSettings(endpoints(secured.bootstrap))) as cluster:
        found = list_acls(cluster)
    expected = [
        AclBinding("TOPIC", "open", "LITERAL", f"User:{user}", "*", "ALL", "ALLOW") for user in ("alice", ODD_USER)
    ]
    assert found == tuple(sorted(expected))


def test_a_connection_is_made_anew_before_its_authentication_runs_out(secured: SecuredKafka) -> None:
    now = [0.0]
    with Cluster(load_settings(secured.sasl_file("SASL_PLAINTEXT", "PLAIN")), clock=lambda: now[0]) as cluster:
        first = cluster.connection(1)
        for second_of_use in range(0, 3001, 120):
            now[0] = float(second_of_use)
            assert cluster.connection(1) is first
        now[0] = 3080.0
        second = cluster.connection(1)
        assert second is not first
        assert first.closed
        assert not second.closed


def test_an_idle_connection_is_replaced(secured: SecuredKafka) -> None:
    now = [0.0]
    with Cluster(load_settings(secured.sasl_file("SASL_PLAINTEXT", "PLAIN")), clock=lambda: now[0]) as cluster:
        first = cluster.connection(1)
        now[0] = 179.0
        assert cluster.connection(1) is first
        now[0] = 179.0 + 180.0
        assert cluster.connection(1) is not first
        assert first.closed
