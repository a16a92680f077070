"""A restored partition on a real broker is proven, and every way in which it can deviate is named with its offset."""

from collections.abc import Sequence
from dataclasses import replace
from itertools import count

import pytest
from confluent_kafka import Consumer, TopicPartition

from logkeep.embedded.kafka import EmbeddedKafka
from logkeep.formats.compare.digest import Digest
from logkeep.kafka.backup.claims import Joined, join_claims
from logkeep.kafka.backup.copy.copy_task import copy_ranges
from logkeep.kafka.client.settings import ClientSettings, endpoints
from logkeep.kafka.logs.brokers import SettingsBrokers
from logkeep.kafka.restore.facts.log_views import settled_of
from logkeep.kafka.restore.facts.units import LogProof, Offsets, Producer, ReplayLog, SourceLog
from logkeep.kafka.restore.proof.compare import prove
from logkeep.repository.chain.commits import SourceRef
from tests.support.kafka.copied_logs import unit_of, whole_range
from tests.support.kafka.plain_client import PlainBrokers
from tests.support.kafka.raw_produce import batch_at, put
from tests.support.kafka.slow_records import Slow
from tests.support.kafka.topic_matrix import Matrix
from tests.support.processes import wait_for

pytestmark = pytest.mark.xdist_group("kafka-proof")

KEPT = {"retention.ms": "-1", "message.timestamp.after.max.ms": str(2**63 - 1)}
START_MS = 1_700_000_000_000
_names = count()

Timed = tuple[int, Slow]
RECORDS: list[Timed] = [
    (START_MS + i % 7, Slow(0, 0, b"key %d" % i, b"value %d" % i, ((b"a", b"1"), (b"b", None)))) for i in range(30)
]


class Target:
    """A place to put records, and the proof of them."""

    def __init__(self, kafka: EmbeddedKafka, brokers: PlainBrokers, topics: Matrix, place: SourceRef) -> None:
        self._kafka, self._brokers, self._topics, self._place = kafka, brokers, topics, place
        self.topic = topics.create(f"target-{next(_names)}", 1, KEPT)
        wait_for(lambda: brokers.topic_id(self.topic) is not None, "the topic")
        self._topic_id = brokers.topic_id(self.topic)

    def put(self, batches: Sequence[bytes]) -> None:
        put(self._kafka.port, self.topic, 0, batches)

    def put_records(self, records: Sequence[Timed], together: int = 10) -> None:
        self.put([batch_at(records[i : i + together]) for i in range(0, len(records), together)])

    def abort(self, records: int, *, commit: bool = False) -> None:
        """A transaction of so many records and its marker."""
        end = self._brokers.offset(self.topic, 0, -1) + records + 1
        producer = self._topics.producer(transactional_id=f"filler-{self.topic}")
        producer.init_transactions(30)
        producer.begin_transaction()
        for _ in range(records):
            producer.produce(self.topic, None, b"logkeep", 0)
        producer.flush(30)
        (producer.commit_transaction if commit else producer.abort_transaction)(30)
        wait_for(
            lambda: self._brokers.offset(self.topic, 0, -1) == end, "the marker, which comes later than the answer"
        )

    def delete_before(self, offset: int) -> None:
        for future in self._topics.admin.delete_records([TopicPartition(self.topic, 0, offset)]).values():
            future.result(30)

    def proof(self, source: Joined, offsets: Offsets, base: int = 0, end: int | None = None) -> LogProof:
        log = ReplayLog(
            sources=(
                SourceLog(
                    log=source.log,
                    start=source.span.start,
                    end=source.span.end,
                    segments=tuple(source.segments),
                    transactional=True,
                ),
            ),
            topic=self.topic,
            topic_id=self._topic_id.hex,
            partition=0,
            offsets=offsets,
            base=base,
            producer=Producer(producer_id=1, epoch=0, position=base),
        )
        end = self._brokers.offset(self.topic, 0, -1) if end is None else end
        brokers = SettingsBrokers(ClientSettings(endpoints(self._kafka.bootstrap)))
        return prove(log, self._place, brokers, settled_of(self._place, log.first, log.isolation), end, lambda _: None)


@pytest.fixture
def target(kafka: EmbeddedKafka, brokers: PlainBrokers, topics: Matrix, place: SourceRef) -> Target:
    return Target(kafka, brokers, topics, place)


@pytest.fixture
def source(kafka: EmbeddedKafka, brokers: PlainBrokers, topics: Matrix, place: SourceRef) -> Joined:
    """Thirty records in three batches."""
    written = Target(kafka, brokers, topics, place)
    written.put_records(RECORDS)
    return _archive(brokers, place, written.topic)


def _archive(brokers: PlainBrokers, place: SourceRef, topic: str) -> Joined:
    wanted = whole_range(brokers, topic, 0)
    (one,) = join_claims([copy_ranges(unit_of("u", place, brokers, [wanted]), lambda _: None)])
    return one


def _changed(at: int, **fields: object) -> list[Timed]:
    time_ms, record = RECORDS[at]
    return [*RECORDS[:at], (time_ms, replace(record, **fields)), *RECORDS[at + 1 :]]  # type: ignore[arg-type]


def test_what_is_the_same_is_proven_in_the_same_and_in_other_batches(source: Joined, target: Target) -> None:
    target.put_records(RECORDS)
    target.put_records(RECORDS, together=7)
    first = target.proof(source, Offsets.TRANSLATE, end=30)
    other = target.proof(source, Offsets.TRANSLATE, base=30)
    for proof in (first, other):
        assert (proof.good, proof.records, proof.detail) == (True, 30, "")
        assert Digest.parse(proof.archive_digest).same_content(Digest.parse(proof.target_digest))
    assert first.target_digest == first.archive_digest
    assert first.bytes > 1000
    assert target.proof(source, Offsets.PRESERVE, end=30).good


FOREIGN: Timed = (START_MS, Slow(0, 0, b"foreign", b"record"))

DEVIATIONS: list[tuple[str, list[Timed], int, str]] = [
    ("value", _changed(17, value=b"another"), 17, "it is not the archived record of offset 17: the value differs"),
    ("key", _changed(0, key=b"another"), 0, "the key differs"),
    ("null", _changed(5, value=None), 5, "the value differs"),
    ("empty", _changed(5, value=b""), 5, "the value differs"),
    ("header order", _changed(29, headers=((b"b", None), (b"a", b"1"))), 29, "the headers differs"),
    ("header null", _changed(9, headers=((b"a", b"1"), (b"b", b""))), 9, "the headers differs"),
    ("time", [*RECORDS[:12], (START_MS + 99, RECORDS[12][1]), *RECORDS[13:]], 12, "the time differs"),
    ("missing", [*RECORDS[:11], *RECORDS[12:]], 11, "the archived record of offset 11 is missing here"),
    ("missing last", RECORDS[:-1], 29, "the archived record of offset 29 is missing: the target ends before it"),
    ("missing all", [], 0, "the archived record of offset 0 is missing: the target ends before it"),
    ("foreign", [*RECORDS[:20], FOREIGN, *RECORDS[20:]], 20, "there is a record that is not archived"),
    ("foreign last", [*RECORDS, FOREIGN], 30, "there is a record after the last archived one"),
    ("doubled", [*RECORDS[:8], RECORDS[7], *RECORDS[8:]], 8, "there is a record that is not archived"),
    (
        "order",
        [*RECORDS[:3], RECORDS[4], RECORDS[3], *RECORDS[5:]],
        3,
        "offset 3 and the one after it are swapped",
    ),
]


@pytest.mark.parametrize(("records", "offset", "what"), [d[1:] for d in DEVIATIONS], ids=[d[0] for d in DEVIATIONS])
def test_every_deviation_is_named(source: Joined, target: Target, records: list[Timed], offset: int, what: str) -> None:
    target.put_records([FOREIGN] * 4)
    target.put_records(records)
    proof = target.proof(source, Offsets.TRANSLATE, base=4)
    assert not proof.good
    assert (proof.first_difference, proof.records) == (4 + offset, 30)
    assert what in proof.detail
    assert not Digest.parse(proof.archive_digest).same_content(Digest.parse(proof.target_digest))


def test_preserved_offsets_are_proven_with_their_holes_and_their_start(
    kafka: EmbeddedKafka, brokers: PlainBrokers, topics: Matrix, place: SourceRef
) -> None:
    made = [Target(kafka, brokers, topics, place) for _ in range(5)]
    for each in made:
        each.put_records(RECORDS[:10])
        each.abort(3)
    written, good, shifted, undeleted, foreign = made
    for each in (written, good, undeleted):
        each.put_records(RECORDS[10:])
    shifted.put_records([*RECORDS[10:18], FOREIGN, *RECORDS[18:]])
    foreign.put_records(RECORDS[10:])
    for each in (written, good, shifted, foreign):
        each.delete_before(5)
    source = _archive(brokers, place, written.topic)
    assert (source.span.start, source.span.end) == (5, 34)
    assert good.proof(source, Offsets.PRESERVE) == good.proof(source, Offsets.PRESERVE)
    assert (good.proof(source, Offsets.PRESERVE).detail, good.proof(source, Offsets.PRESERVE).records) == ("", 25)
    proof = shifted.proof(source, Offsets.PRESERVE)
    assert (proof.first_difference, "not archived" in proof.detail) == (22, True)
    proof = undeleted.proof(source, Offsets.PRESERVE)
    assert (proof.first_difference, proof.detail) == (0, "the log begins at offset 0 instead of 5")
    foreign.abort(2, commit=True)
    proof = foreign.proof(source, Offsets.PRESERVE, end=36)
    assert (proof.first_difference, "another client begins here and does not end" in proof.detail) == (34, True)
    proof = foreign.proof(source, Offsets.PRESERVE)
    assert (proof.first_difference, proof.detail) == (36, "a transaction of another client was committed here")
    good.delete_before(7)
    proof = good.proof(source, Offsets.PRESERVE)
    assert (proof.first_difference, proof.good) == (7, False)
    topics.delete(good.topic)
    proof = good.proof(source, Offsets.PRESERVE, end=34)
    assert "the topic was deleted" in proof.detail
    assert (proof.good, proof.archive_digest, proof.target_digest) == (False, "", ""), "nothing was compared to its end"


def test_logs_of_every_shape_are_judged_by_what_a_consumer_saw(
    kafka: EmbeddedKafka, brokers: PlainBrokers, topics: Matrix, place: SourceRef, shapes: list[str]
) -> None:
    """An independent consumer says what there was; that is put into the target, in batches that look otherwise."""
    for topic in shapes:
        source, target = _archive(brokers, place, topic), Target(kafka, brokers, topics, place)
        seen = _consumed(kafka, topic, source.span.start)
        target.put_records(seen, together=23)
        proof = target.proof(source, Offsets.TRANSLATE)
        assert (proof.detail, proof.records) == ("", len(seen)), topic
        archived, restored = Digest.parse(proof.archive_digest), Digest.parse(proof.target_digest)
        assert (archived.append_times, restored.append_times) == (len(seen) if topic == "append-time" else 0, 0)
        at = len(seen) // 2
        other = Target(kafka, brokers, topics, place)
        other.put_records([*seen[:at], (seen[at][0] + 1, seen[at][1]), *seen[at + 1 :]], together=5)
        assert other.proof(source, Offsets.TRANSLATE).first_difference == at, topic


def _consumed(kafka: EmbeddedKafka, topic: str, start: int) -> list[Timed]:
    """What a read-committed consumer sees up to the last stable offset."""
    settings = {"bootstrap.servers": kafka.bootstrap, "group.id": "judge", "isolation.level": "read_committed"}
    at_once = {"enable.partition.eof": True, "fetch.wait.max.ms": 10}
    consumer = Consumer({**settings, **at_once, "enable.auto.commit": False})
    consumer.assign([TopicPartition(topic, 0, start)])
    found = list[Timed]()
    try:
        while (message := consumer.poll(30)) is not None and message.error() is None:
            headers = tuple((name.encode(), value) for name, value in message.headers() or ())
            kind, time_ms = message.timestamp()
            found.append((time_ms if kind else -1, Slow(0, 0, message.key(), message.value(), headers)))
    finally:
        consumer.close()
    return found
