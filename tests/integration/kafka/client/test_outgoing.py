"""A broker takes what was encoded anew, under every codec, and librdkafka reads the records that the source had.

The broker is Java and unpacks every compressed batch before it takes it, so both families of readers judge.
"""

import random
import uuid
from collections.abc import Iterable

import pytest
from confluent_kafka import Message

from logkeep.embedded.kafka import EmbeddedKafka
from logkeep.formats.kafka.batches import BatchStretch, walk
from logkeep.formats.kafka.record_view import View
from logkeep.formats.kafka.restore.send_batches import OffsetHole, Outgoing, outgoing, stamp
from logkeep.formats.kafka.restore.synthetic_batches import MOST_RECORDS, filler_batches
from logkeep.kafka.client.cluster import Cluster
from tests.support.kafka.client_readers import messages
from tests.support.kafka.single_topic import create_topic
from tests.support.kafka.slow_batches import APPEND_TIME, DELETE_HORIZON, TRANSACTIONAL, Seen, Source
from tests.support.kafka.slow_records import Slow

pytestmark = pytest.mark.xdist_group("kafka-secured")
PRODUCER = 1 << 40
TIME = 1_700_000_000_000


def _records(chance: random.Random, deltas: Iterable[int]) -> tuple[Slow, ...]:
    """Values of which half shrinks: an lz4 frame of them has many blocks, some stored as they are."""
    found = [Slow(0, 0, None, b""), Slow(0, 1, b"", b"null and empty"), Slow(0, 2, b"k", b"h", ((b"a", b"1"),) * 2)]
    found += [Slow(0, i, b"key", chance.randbytes(700) + bytes(700)) for i in range(150)]
    found.append(Slow(0, -9, b"late", b"v", ((b"a", None), (b"a", b""))))
    return tuple(
        Slow(delta, record.time_delta, record.key, record.value, record.headers)
        for delta, record in zip(deltas, found, strict=False)
    )


def _log() -> list[Source]:
    """Under each codec: dense, with holes, with append times, in a transaction; at last one without times."""
    chance, log, base = random.Random(3), list[Source](), 100
    for codec in range(5):
        for kind, step in ((0, 1), (0, 3), (APPEND_TIME, 1), (TRANSACTIONAL | DELETE_HORIZON, 1)):
            last = 153 * step
            records = _records(chance, range(0, last + 1, step))
            log.append(Source(base, records, last, kind | codec, 7, TIME + base, TIME + base + 150))
            base += last + 1
    return [*log, Source(base, (Slow(0, 0, b"no", b"time"), Slow(2, 0, b"no", b"time")), 2, base_time_ms=-1)]


def _produce(cluster: Cluster, topic: str, part: Outgoing) -> list[tuple[int, int]]:
    """Error code and offset of each batch, sent one after the other."""
    found = []
    for index in range(len(part)):
        data = [{"name": topic, "partition_data": [{"index": 0, "records": bytes(part.batch(index))}]}]
        fields = {"transactional_id": None, "acks": -1, "timeout_ms": 30_000, "topic_data": data}
        (reply,) = cluster.connection(1).call("Produce", fields, at_most=9).responses[0].partition_responses
        found.append((reply.error_code, reply.base_offset))
    return found


def _seen(message: Message) -> Seen:
    headers = tuple((name.encode(), value) for name, value in message.headers() or ())
    _, time_ms = message.timestamp()
    return time_ms, message.key(), message.value(), headers


@pytest.mark.parametrize("keep_offsets", [False, True])
def test_a_broker_takes_every_batch_and_the_records_are_the_same(
    kafka: EmbeddedKafka, cluster: Cluster, keep_offsets: bool
) -> None:
    """With offsets kept the batches are those between holes; the holes themselves are filled elsewhere."""
    log, topic = _log(), create_topic(cluster, f"again-{uuid.uuid4().hex[:8]}").name
    data = b"".join(source.encode() for source in log)
    sent = 0
    for part in outgoing([BatchStretch(data, walk(data).batches)], View(0, 1 << 40, keep_offsets=keep_offsets)):
        if isinstance(part, OffsetHole):
            continue
        stamp(part, PRODUCER, 0, sent)
        before = [sent + sum(part.records.tolist()[:i]) for i in range(len(part))]
        assert _produce(cluster, topic, part) == [(0, offset) for offset in before]
        sent += part.total_records
    expected = [seen for source in log for _, seen in source.seen()]
    assert sent == len(expected)
    assert [_seen(m) for m in messages(kafka.bootstrap, topic, 0, 0, sent)] == expected


def test_a_broker_takes_a_million_fillers(kafka: EmbeddedKafka, cluster: Cluster) -> None:
    topic = create_topic(cluster, f"fillers-{uuid.uuid4().hex[:8]}", configs={"cleanup.policy": "compact"}).name
    sent = 0
    for part in filler_batches(MOST_RECORDS + 3):
        stamp(part, PRODUCER, 0, sent)
        assert _produce(cluster, topic, part) == [(0, sent)]
        sent += part.total_records
    found = messages(kafka.bootstrap, topic, 0, MOST_RECORDS - 2, sent)
    assert [m.offset() for m in found] == list(range(MOST_RECORDS - 2, sent))
    assert {(m.key(), m.value(), m.timestamp()[1]) for m in found} == {(b"logkeep", None, -1)}
