"""A broker chooses the length of its replies: caps, and memory that grows with what arrives."""

import re
import struct
import tracemalloc
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from uuid import UUID

import pytest

import logkeep
from logkeep.errors import ClusterError, ClusterUnreachable, LogkeepError
from logkeep.kafka.client.connection import Connection
from logkeep.kafka.client.fetch import FetchLimits, PartitionFetch, asked_bytes, encode
from logkeep.kafka.client.frames import ReceiveBuffer
from logkeep.kafka.client.protocol import shape
from logkeep.kafka.client.reply_limits import BEFORE_AUTHENTICATION, LARGEST_BATCH, REPLY_LIMITS, fetch_limit
from logkeep.kafka.client.settings import FileSecret, Sasl
from logkeep.kafka.logs.brokers import WireFetchConnection
from tests.support.kafka.hostile_broker import (
    API_VERSIONS,
    METADATA,
    SASL_HANDSHAKE,
    BrokerRequest,
    framed,
    hostile_broker,
    promised,
)

_HUGE = 2**30
_FIXED_BYTES = 4 << 20
"""What a test may use besides the reply: decoded messages, modules that load late."""


@contextmanager
def peak() -> Iterator[Callable[[], int]]:
    """The most bytes that were allocated since the beginning of the block."""
    tracemalloc.start()
    try:
        yield lambda: tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()


def lies_about(key: int, size_bytes: int, sent_bytes: int = 0) -> Callable[[BrokerRequest], bytes | None]:
    return lambda r: promised(r.correlation, size_bytes, sent_bytes) if r.key == key else None


@contextmanager
def connected(answer: Callable[[BrokerRequest], bytes | None]) -> Iterator[Connection]:
    with hostile_broker(answer) as broker, Connection.open(broker.endpoint, broker.settings()) as connection:
        yield connection


@pytest.mark.parametrize("size_bytes", [BEFORE_AUTHENTICATION + 1, _HUGE, 2**31 - 1])
def test_a_server_that_is_not_authenticated_gets_no_memory(size_bytes: int) -> None:
    with hostile_broker(lies_about(API_VERSIONS, size_bytes, 1000)) as broker, peak() as most:
        with pytest.raises(ClusterError, match=f"announces an answer of {size_bytes} bytes to ApiVersions"):
            Connection.open(broker.endpoint, broker.settings())
        assert most() < _FIXED_BYTES


def test_also_after_the_first_answer_until_the_password_was_checked(tmp_path: Path) -> None:
    secret = tmp_path / "password"
    secret.touch(mode=0o600)
    secret.write_text("hush")
    sasl = Sasl("SCRAM-SHA-256", "alice", FileSecret(secret))
    lying = hostile_broker(lies_about(SASL_HANDSHAKE, BEFORE_AUTHENTICATION + 1))
    with lying as broker, pytest.raises(ClusterError, match="to SaslHandshake"):
        Connection.open(broker.endpoint, broker.settings(sasl))
    assert [request.key for request in broker.requests] == [API_VERSIONS, SASL_HANDSHAKE]


def test_later_each_api_has_its_own_cap() -> None:
    cap = REPLY_LIMITS["Metadata"]
    with connected(lies_about(METADATA, cap + 1)) as connection:
        with pytest.raises(ClusterError, match=rf"{cap + 1} bytes to Metadata, more than .* can have"):
            connection.call("Metadata", {"topics": []})
        assert connection.closed


def test_memory_grows_with_what_arrives_and_not_with_what_is_promised() -> None:
    """A reply within its cap, of which only a part comes before the connection breaks."""
    sent = 3 << 20

    def answer(request: BrokerRequest) -> bytes | None:
        return promised(request.correlation, REPLY_LIMITS["Metadata"], sent) if request.key == METADATA else None

    with hostile_broker(answer) as broker, peak() as most:
        settings = broker.settings()
        with Connection.open(broker.endpoint, settings) as connection:
            connection._socket.settimeout(0.5)
            with pytest.raises(ClusterUnreachable, match="no answer in time"):
                connection.call("Metadata", {"topics": []})
        # The broker's side holds what it sends as well; a buffer and its successor are three times what arrived.
        assert most() < 5 * sent + _FIXED_BYTES


def test_a_fetch_gets_what_was_asked_for_and_one_batch() -> None:
    request = encode([PartitionFetch(UUID(int=1), 0, 0)], FetchLimits(max_bytes=1 << 20, client_id="längere"), 7)
    assert asked_bytes(request) == 1 << 20
    assert (1 << 20) + LARGEST_BATCH < fetch_limit(1 << 20) < (1 << 20) + LARGEST_BATCH + (32 << 20)
    with hostile_broker(lies_about(1, fetch_limit(1 << 20) + 1)) as broker:
        fetching = WireFetchConnection(Connection.open(broker.endpoint, broker.settings()))
        fetching.send(request)
        with pytest.raises(ClusterError, match="more than such an answer can have"):
            fetching.receive()


def test_a_large_reply_arrives_whole_and_the_next_one_uses_the_same_memory() -> None:
    body = bytes(range(256)) * (20 << 10)
    with connected(lambda r: framed(r.correlation, body) if r.key == 1 else None) as connection:
        buffer = ReceiveBuffer(16)
        views = []
        for correlation in (1, 2):
            request = encode([PartitionFetch(UUID(int=1), 0, 0)], FetchLimits(), correlation)
            connection.send_frame(request, fetch_limit(8 << 20))
            views.append(connection.receive_frame(buffer))
            assert bytes(views[-1]) == struct.pack(">i", correlation) + body
        assert views[0].obj is views[1].obj


def test_a_reply_that_was_not_asked_for_is_not_read() -> None:
    with connected(lambda _: None) as connection, pytest.raises(ClusterUnreachable, match="no reply is due"):
        connection.receive_frame(ReceiveBuffer())


def test_every_api_that_is_used_has_a_line_in_the_table() -> None:
    used = set()
    for path in Path(logkeep.__file__).parent.rglob("*.py"):
        for name in re.findall(r'"([A-Z][A-Za-z]+)"', path.read_text()):
            try:
                used.add(shape(name).api)
            except LogkeepError:
                continue
    assert used - {"Fetch"} == set(REPLY_LIMITS)
