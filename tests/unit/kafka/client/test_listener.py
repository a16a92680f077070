"""What the first contact says about a server that is no broker, or not of this protocol, and what it sends there."""

import socket
import struct
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

import pytest

from logkeep.errors import ClusterUnreachable, ProtocolMismatch
from logkeep.kafka.client.cluster import Cluster
from logkeep.kafka.client.listener import other_protocol, protocol_of, unlike_kafka
from logkeep.kafka.client.retry import Backoff
from logkeep.kafka.client.settings import ClientSettings, Endpoint, FileSecret, Sasl
from tests.support.kafka.hostile_broker import (
    API_VERSIONS,
    METADATA,
    SASL_HANDSHAKE,
    BrokerRequest,
    framed,
    hostile_broker,
)

NO_WAIT = Backoff(sleep=lambda _: None)


@contextmanager
def _server(answer: Callable[[bytes], bytes]) -> Iterator[Endpoint]:
    """Answers the first bytes of each connection, and closes it."""
    with socket.create_server(("127.0.0.1", 0)) as listener:

        def serve() -> None:
            with suppress(OSError):
                while True:
                    made, _ = listener.accept()
                    with made, suppress(OSError):
                        made.sendall(answer(made.recv(4096)))

        thread = threading.Thread(target=serve)
        thread.start()
        try:
            yield Endpoint("127.0.0.1", listener.getsockname()[1])
        finally:
            listener.shutdown(socket.SHUT_RDWR)
            thread.join()


def _first_contact(settings: ClientSettings) -> None:
    with Cluster(settings, backoff=NO_WAIT) as cluster:
        cluster.metadata()


@pytest.mark.parametrize("protocol", ("PLAINTEXT", "SSL"))
def test_a_zookeeper_server(protocol: str) -> None:
    def answer(asked: bytes) -> bytes:
        return b"Zookeeper version: 3.9.3\nMode: leader\n" if asked == b"srvr" else b""

    with _server(answer) as endpoint, pytest.raises(ProtocolMismatch, match="a ZooKeeper server answers") as caught:
        _first_contact(ClientSettings((endpoint,), protocol=protocol))  # type: ignore[arg-type]  # one of both
    assert caught.value.what.endswith(f" {protocol} listener of Kafka")


@pytest.mark.parametrize("protocol", ("PLAINTEXT", "SSL"))
def test_a_server_that_closes_every_connection_may_be_restarting(protocol: str) -> None:
    with _server(lambda _: b"") as endpoint, pytest.raises(ClusterUnreachable):
        _first_contact(ClientSettings((endpoint,), protocol=protocol))  # type: ignore[arg-type]  # one of both


def _sasl(tmp_path: Path) -> Sasl:
    secret = tmp_path / "password"
    secret.touch(mode=0o600)
    secret.write_text("hush-4711")
    return Sasl("PLAIN", "alice", FileSecret(secret))


def test_no_credentials_are_sent_to_a_listener_without_sasl(tmp_path: Path) -> None:
    def answer(request: BrokerRequest) -> bytes | None:
        refused = struct.pack(">hi", 34, 0)
        return framed(request.correlation, refused) if request.key == SASL_HANDSHAKE else None

    with hostile_broker(answer) as broker, pytest.raises(ProtocolMismatch, match=r"is PLAINTEXT, .* SASL_PLAINTEXT"):
        _first_contact(broker.settings(_sasl(tmp_path)))
    assert [request.key for request in broker.requests] == [API_VERSIONS, SASL_HANDSHAKE]
    assert all(b"hush" not in request.rest and b"alice" not in request.rest for request in broker.requests)


def test_a_listener_that_wants_sasl() -> None:
    """It closes the connection of a client that goes on without, and answers the handshake of the probe."""

    def answer(request: BrokerRequest) -> bytes | None:
        if request.key == METADATA:
            raise OSError("closed")
        return None

    with hostile_broker(answer) as broker, pytest.raises(ProtocolMismatch, match=r"SASL_PLAINTEXT .it offers SCRAM"):
        _first_contact(broker.settings())
    assert [r.key for r in broker.requests] == [API_VERSIONS, METADATA, API_VERSIONS, SASL_HANDSHAKE]


@pytest.mark.parametrize(
    ("first", "said"),
    (
        (b"HTTP", "an HTTP server answers"),
        (b"\x15\x03\x03\0", "the listener is SSL or SASL_SSL"),
        (b"SSH-", "an SSH server answers"),
        (b"\0\0\0\1", "does not speak Kafka's protocol"),
    ),
)
def test_first_bytes(first: bytes, said: str) -> None:
    assert said in unlike_kafka("host:1", first, "PLAINTEXT").what


def test_less_protection_is_never_the_first_remedy() -> None:
    weaker = other_protocol("host:1", "SASL_SSL", "PLAINTEXT").remedy
    assert weaker.startswith("name the port of the SASL_SSL listener; only if")
    assert other_protocol("host:1", "PLAINTEXT", "SASL_SSL").remedy.endswith("to SASL_SSL")
    assert [protocol_of(tls=tls, sasl=True) for tls in (False, True)] == ["SASL_PLAINTEXT", "SASL_SSL"]
