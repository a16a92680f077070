"""One connection: raw bytes in both directions, several requests in flight, and ends that tell what happened."""

import contextlib
import socket
import struct
import threading
import uuid
from collections.abc import Callable, Iterator

import google_crc32c
import pytest
from confluent_kafka import Consumer, Producer
from confluent_kafka import TopicPartition as Position

from logkeep.embedded.kafka import EmbeddedKafka
from logkeep.embedded.ports import free_ports
from logkeep.errors import (
    ClusterError,
    ClusterNotReady,
    ClusterTooOld,
    ClusterUnreachable,
    LogkeepError,
    NotAuthorised,
    ProtocolMismatch,
)
from logkeep.kafka.admin.offsets import list_offsets
from logkeep.kafka.client.cluster import Cluster
from logkeep.kafka.client.connection import Connection
from logkeep.kafka.client.frames import ReceiveBuffer, body_start, send_all
from logkeep.kafka.client.retry import Backoff
from logkeep.kafka.client.settings import ClientSettings, Endpoint, endpoints
from logkeep.kafka.client.topology import TopicPartition
from tests.support.kafka.single_topic import create_topic

pytestmark = pytest.mark.xdist_group("kafka-secured")
FETCH = 13
PRODUCE = 9


def _topic(cluster: Cluster, kafka: EmbeddedKafka, records: int) -> tuple[str, uuid.UUID]:
    made = create_topic(cluster, f"raw-{uuid.uuid4().hex[:8]}")
    producer = Producer({"bootstrap.servers": kafka.bootstrap, "linger.ms": 0})
    for number in range(records):
        producer.produce(made.name, bytes([65 + number]) * 1000, partition=0)
        producer.flush()
    return made.name, made.id


def _fetch_body(topic: uuid.UUID, offset: int, max_bytes: int) -> list[bytes]:
    head = struct.pack(">iiiibii", -1, 100, 1, max_bytes, 0, 0, -1)
    partition = struct.pack(">iiqiqi", 0, -1, offset, -1, -1, max_bytes) + b"\0"
    return [head, b"\2" + topic.bytes + b"\2", partition, b"\0", b"\1\1\0"]


def _records(body: memoryview) -> bytes:
    """The one whole batch of the reply, found by its checksum: no knowledge of the reply's shape is needed."""
    for at in range(len(body) - 61):
        length, _, magic, crc = struct.unpack_from(">iibI", body, at + 8)
        end = at + 12 + length
        if magic == 2 and at + 61 < end <= len(body) and google_crc32c.value(bytes(body[at + 21 : end])) == crc:
            return bytes(body[at:end])
    return b""


def test_raw_replies_keep_their_order_and_their_bytes(kafka: EmbeddedKafka, cluster: Cluster) -> None:
    name, topic = _topic(cluster, kafka, records=4)
    stored = (kafka.directory / "data" / f"{name}-0" / "00000000000000000000.log").read_bytes()
    buffers = [ReceiveBuffer(16), ReceiveBuffer(16)]
    with cluster.open_own(1) as connection:
        assert connection.version("Fetch", at_most=FETCH) == FETCH
        for offset in range(4):
            connection.send_raw("Fetch", FETCH, _fetch_body(topic, offset, 500))
        assert connection.in_flight == 4
        with pytest.raises(LogkeepError, match="call while replies are due"):
            connection.call("Metadata", {"topics": []})
        held = [connection.receive_raw(buffers[turn % 2]) for turn in range(2)]
        got = [_records(view) for view in held] + [_records(connection.receive_raw(buffers[0])) for _ in range(2)]
        assert connection.in_flight == 0
        assert b"".join(got) == stored
        assert connection.call("Metadata", {"topics": []}).cluster_id == cluster.metadata().cluster_id


def test_raw_produce_hands_over_the_callers_bytes(kafka: EmbeddedKafka, cluster: Cluster) -> None:
    source, _ = _topic(cluster, kafka, records=3)
    target, _ = _topic(cluster, kafka, records=0)
    stored = (kafka.directory / "data" / f"{source}-0" / "00000000000000000000.log").read_bytes()
    length = 12 + struct.unpack_from(">i", stored, 8)[0]
    with cluster.open_own(1) as connection:
        for number in range(3):
            batch = bytearray(stored[number * length : (number + 1) * length])
            struct.pack_into(">qi", batch, 0, 0, length - 12)  # base offsets are the broker's
            encoded = target.encode()
            head = b"\0" + struct.pack(">hi", -1, 30_000) + b"\2" + bytes([len(encoded) + 1]) + encoded
            size = _unsigned(length + 1)
            parts: list[bytes | memoryview] = [
                head,
                b"\2" + struct.pack(">i", 0) + size,
                memoryview(batch),
                b"",
                b"\0\0\0",
            ]
            connection.send_raw("Produce", PRODUCE, parts)
        for number in range(3):
            (partition,) = connection.receive().responses[0].partition_responses
            assert (partition.error_code, partition.base_offset) == (0, number)
    consumer = Consumer({"bootstrap.servers": kafka.bootstrap, "group.id": "judge", "check.crcs": True})
    with contextlib.closing(consumer):
        consumer.assign([Position(target, 0, 0)])
        seen = [message.value() for message in consumer.consume(3, 60)]
    assert seen == [bytes([65 + number]) * 1000 for number in range(3)]


def _unsigned(number: int) -> bytes:
    made = bytearray()
    while number > 127:
        made.append(number & 127 | 128)
        number >>= 7
    return bytes([*made, number])


def test_no_common_version_names_the_api(kafka: EmbeddedKafka) -> None:
    with Connection.open(endpoints(kafka.bootstrap)[0], ClientSettings(())) as connection:
        assert connection.speaks("Fetch")
        with pytest.raises(
            ClusterTooOld, match="no common version of Fetch: the broker speaks versions 4 to"
        ) as caught:
            connection.version("Fetch", at_most=3)
    assert caught.value.exit_code == 40
    with pytest.raises(ClusterUnreachable, match="closed"):
        connection.call("Metadata", {"topics": []})


@contextlib.contextmanager
def _server(answer: Callable[[socket.socket], None]) -> Iterator[Endpoint]:
    """Something that listens, takes connections, and is not a broker."""
    with socket.create_server(("127.0.0.1", 0)) as listening:
        stop = threading.Event()

        def serve() -> None:
            while not stop.is_set():
                with contextlib.suppress(OSError):
                    made, _ = listening.accept()
                    with made:
                        answer(made)

        thread = threading.Thread(target=serve)
        thread.start()
        port = listening.getsockname()[1]
        try:
            yield Endpoint("127.0.0.1", port)
        finally:
            stop.set()
            with contextlib.suppress(OSError), socket.create_connection(("127.0.0.1", port), timeout=5):
                pass
            thread.join()


def _silent(made: socket.socket) -> None:
    while made.recv(4096):
        pass


def _web(made: socket.socket) -> None:
    made.recv(4096)
    made.sendall(b"HTTP/1.1 400 Bad Request\r\n\r\n")


def _half(made: socket.socket) -> None:
    made.recv(4096)
    made.sendall(struct.pack(">ii", 100, 1))


def _foreign(made: socket.socket) -> None:
    made.recv(4096)
    made.sendall(struct.pack(">iih", 6, 99, 0))


def _garbage(made: socket.socket) -> None:
    made.recv(4096)
    made.sendall(struct.pack(">iih", 10, 1, 0) + b"\xff\xff\xff\xff")


@pytest.mark.parametrize(
    ("answer", "kind", "code", "words"),
    (
        (_silent, ClusterUnreachable, 51, "no answer in time"),
        (_half, ClusterUnreachable, 51, "the broker closed the connection"),
        (_web, ProtocolMismatch, 40, "an HTTP server answers, but this client expects a PLAINTEXT listener"),
        (_foreign, ProtocolMismatch, 40, "does not speak Kafka"),
        (_garbage, ProtocolMismatch, 40, "cannot be read"),
    ),
    ids=("silent", "half a reply", "a web server", "somebody else's reply", "garbage"),
)
def test_what_is_not_a_broker(
    answer: Callable[[socket.socket], None], kind: type[ClusterError], code: int, words: str
) -> None:
    with _server(answer) as endpoint:
        with pytest.raises(kind, match=words) as caught:
            Connection.open(endpoint, ClientSettings((), request_timeout_s=0.2 if answer is _silent else 60))
        assert (type(caught.value), caught.value.exit_code) == (kind, code)
        assert str(endpoint) in str(caught.value)


def test_unreachable_servers_are_all_tried_and_named() -> None:
    waits: list[float] = []
    settings = ClientSettings((Endpoint("127.0.0.1", free_ports(1)[0]), Endpoint("no-such-host.invalid", 9092)))
    backoff = Backoff(sleep=waits.append, chance=lambda: 1.0)
    with pytest.raises(ClusterUnreachable) as caught, Cluster(settings, backoff=backoff) as cluster:
        cluster.metadata()
    assert caught.value.exit_code == 51
    assert caught.value.retry_helps
    assert all(str(each) in str(caught.value) for each in settings.bootstrap)
    assert waits == [0.1, 0.2]


def test_any_of_the_servers_will_do(kafka: EmbeddedKafka) -> None:
    dead = Endpoint("127.0.0.1", free_ports(1)[0])
    with Cluster(ClientSettings((dead, *endpoints(kafka.bootstrap)))) as cluster:
        assert cluster.metadata().brokers[0].endpoint == endpoints(kafka.bootstrap)[0]


def test_leaders_that_move_are_followed_with_patience(kafka: EmbeddedKafka) -> None:
    waits: list[float] = []
    backoff = Backoff(attempts=4, sleep=waits.append, chance=lambda: 1.0)
    with Cluster(ClientSettings(endpoints(kafka.bootstrap)), backoff=backoff) as cluster:
        name, _ = _topic(cluster, kafka, records=0)
        waits.clear()
        codes = iter([6, 5, 0])
        log = TopicPartition(name, 0)
        assert cluster.ask_leaders([log, log], lambda _, some: [(some[0], next(codes), "told")]) == {log: "told"}
        assert waits == [0.1, 0.2]
        with pytest.raises(ClusterNotReady, match="NOT_LEADER") as caught:
            cluster.ask_leaders([log], lambda _, some: [(some[0], 6, None)])
        assert (caught.value.exit_code, caught.value.subject) == (51, str(log))
        waits.clear()
        with pytest.raises(NotAuthorised):
            cluster.ask_leaders([log], lambda _, some: [(some[0], 29, None)])
        assert waits == []


def test_a_broker_that_was_restarted_is_found_again(kafka: EmbeddedKafka) -> None:
    with Cluster(ClientSettings(endpoints(kafka.bootstrap))) as cluster:
        name, _ = _topic(cluster, kafka, records=2)
        before = cluster.connection(1)
        kafka.stop()
        kafka.start()
        assert list_offsets(cluster, [TopicPartition(name, 0)])[TopicPartition(name, 0)].offset == 2
        assert cluster.connection(1) is not before


def test_parts_that_the_kernel_does_not_take_at_once_follow_in_order() -> None:
    whole = bytes(range(256)) * 16_384
    parts: list[bytes | bytearray | memoryview] = [
        whole[:5],
        b"",
        memoryview(whole)[5:2_000_000],
        *(bytes([each]) for each in whole[2_000_000:2_002_000]),
    ]
    parts.append(bytearray(whole[2_002_000:]))
    ours, theirs = socket.socketpair()
    got = bytearray()

    def read() -> None:
        while some := theirs.recv(65_536):
            got.extend(some)

    with ours, theirs:
        ours.settimeout(30)
        reader = threading.Thread(target=read)
        reader.start()
        send_all(ours, parts)
        ours.shutdown(socket.SHUT_WR)
        reader.join()
    assert bytes(got) == whole


def test_tagged_fields_in_a_reply_header_are_skipped() -> None:
    correlation = b"\0\0\0\x07"
    assert body_start(memoryview(correlation + b"\0body"), tagged=True) == 5
    assert body_start(memoryview(correlation + b"body"), tagged=False) == 4
    long = b"\x02" + b"\x01\x03abc" + b"\x81\x01\xc8\x01" + bytes(200)
    assert body_start(memoryview(correlation + long + b"body"), tagged=True) == 4 + len(long)
