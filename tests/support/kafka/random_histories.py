"""Random writes, deletions and transactions in compacted topics, and a recorder that read every record from the first.

The cleaner works all the time, so that what a backup does not read in time is gone. Every write is recorded before the
segment that holds it can be cleaned: the recorder reads up to the end after each step, and only then time goes on.
"""

import random
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field

from confluent_kafka import OFFSET_BEGINNING, Consumer, IsolationLevel, KafkaError, Message, Producer, TopicPartition
from confluent_kafka.admin import AdminClient, OffsetSpec

from tests.support.kafka.cleaned_topics import CONFIG, TICK
from tests.support.kafka.topic_matrix import Matrix

KEYS = 8
Table = dict[bytes, bytes]


class TopicReader:
    """One consumer of many topics of one partition, which reads to their ends again and again."""

    def __init__(self, bootstrap: str, topics: Iterable[str], isolation: str) -> None:
        self._consumer = Consumer(
            {
                "bootstrap.servers": bootstrap,
                "group.id": "recorder",
                "isolation.level": isolation,
                "enable.auto.commit": False,
                "enable.partition.eof": True,
                "fetch.wait.max.ms": 10,
            }
        )
        self._admin = AdminClient({"bootstrap.servers": bootstrap})
        self._isolation = IsolationLevel[isolation.upper()]
        self._topics = list(topics)
        self._at = dict.fromkeys(self._topics, 0)
        self._consumer.assign([TopicPartition(topic, 0, OFFSET_BEGINNING) for topic in self._topics])

    def new(self) -> Iterable[tuple[str, int, bytes, bytes | None]]:
        """All records since the last call: topic, offset, key and value."""
        ends = self._ends()
        while any(self._at[topic] < end for topic, end in ends.items()):
            message = self._consumer.poll(30)
            assert message is not None, f"nothing came for 30 s: {self._at}, {ends}"
            topic, offset, error = str(message.topic()), int(message.offset() or 0), message.error()
            if error is None:
                self._at[topic] = offset + 1
                yield topic, offset, bytes(message.key() or b""), message.value()
            else:
                assert error.code() == KafkaError._PARTITION_EOF, error
                self._at[topic] = offset

    def _ends(self) -> dict[str, int]:
        """By one request: to ask for one topic after the other took most of the time of many histories."""
        each = {TopicPartition(topic, 0): OffsetSpec.latest() for topic in self._topics}
        asked = self._admin.list_offsets(each, isolation_level=self._isolation, request_timeout=30)
        return {log.topic: int(answer.result(30).offset) for log, answer in asked.items()}

    def close(self) -> None:
        self._consumer.close()


def latest_of(records: Iterable[tuple[bytes, bytes | None]]) -> Table:
    """What a table made of these records holds, without ticks."""
    table: Table = {}
    for key, value in records:
        if value is None:
            table.pop(key, None)
        elif not key.startswith(TICK):
            table[key] = value
    return table


@dataclass
class TopicHistory:
    """One topic: what was written, and which transaction each record belongs to."""

    name: str
    producer: Producer | None
    """Of its transactions; None: it has none."""
    records: dict[int, tuple[bytes, bytes | None]] = field(default_factory=dict)
    transaction_of: dict[int, int] = field(default_factory=dict)
    committed: set[int] = field(default_factory=set)
    transactions: int = 0
    open: bool = False

    def table(self, end: int) -> Table:
        """What was committed before now, below an offset."""
        return latest_of(
            each
            for offset, each in sorted(self.records.items())
            if offset < end and self.transaction_of.get(offset, -1) in self.committed | {-1}
        )


class Histories:
    """Topics that change at random, all in the same rounds."""

    def __init__(self, matrix: Matrix, bootstrap: str, prefix: str, many: int, seed: int) -> None:
        self.bootstrap, self._random, self._values = bootstrap, random.Random(seed), 0
        self._matrix, self._plain = matrix, matrix.producer()
        self.topics = {f"{prefix}-{number}": self._made(f"{prefix}-{number}", number) for number in range(many)}
        self._recorder = TopicReader(bootstrap, self.topics, "read_uncommitted")

    def _made(self, name: str, number: int) -> TopicHistory:
        policy = "compact,delete" if number % 5 == 4 else "compact"
        self._matrix.create(name, 1, CONFIG | {"cleanup.policy": policy})
        if number % 3:
            return TopicHistory(name, None)
        producer = self._matrix.producer(transactional_id=name, transaction_timeout_ms=600_000)
        producer.init_transactions(60)
        return TopicHistory(name, producer)

    def change(self) -> None:
        """One random step in each topic."""
        for topic in self.topics.values():
            if topic.producer is not None and self._random.random() < 0.5:
                self._transact(topic, topic.producer)
            else:
                self._write(topic, self._plain)
        self._record()

    def _transact(self, topic: TopicHistory, producer: Producer) -> None:
        if not topic.open:
            producer.begin_transaction()
            topic.open, topic.transactions = True, topic.transactions + 1
            self._write(topic, producer, topic.transactions)
        if self._random.random() < 0.6:
            self._end(topic, producer, commit=self._random.random() < 0.6)

    def _end(self, topic: TopicHistory, producer: Producer, *, commit: bool) -> None:
        (producer.commit_transaction if commit else producer.abort_transaction)(60)
        topic.open = False
        topic.committed |= {topic.transactions} if commit else set()

    def _write(self, topic: TopicHistory, producer: Producer, transaction: int = -1) -> None:
        def delivered(error: KafkaError | None, message: Message) -> None:
            assert error is None, error
            topic.transaction_of[int(message.offset() or 0)] = transaction

        for _ in range(self._random.randint(1, 5)):
            self._values += 1
            value = self._random.choice((b"value %d" % self._values, b"value %d" % self._values, b"", None, None))
            key = b"k%d" % self._random.randrange(KEYS)
            producer.produce(topic.name, value, key, 0, on_delivery=delivered)
        assert producer.flush(60) == 0

    def tick(self) -> None:
        """Close segments, so that the cleaner may work on them."""
        self._values += 1
        for name in self.topics:
            self._plain.produce(name, b"now", TICK + b"%d" % self._values, 0)
        assert self._plain.flush(60) == 0
        self._record()

    def _record(self) -> None:
        for topic, offset, key, value in self._recorder.new():
            self.topics[topic].records[offset] = key, value

    def cleaned(self) -> bool:
        """Whether no tombstone is left that the cleaner may remove."""
        self.tick()
        reader = TopicReader(self.bootstrap, self.topics, "read_uncommitted")
        left = {topic for topic, _, _, value in reader.new() if value is None}
        reader.close()
        return not {name for name in left if not self.topics[name].open}

    def close(self) -> None:
        """An open transaction would keep its topic from being cleaned in later tests."""
        for topic in self.topics.values():
            if topic.producer is not None and topic.open:
                self._end(topic, topic.producer, commit=False)
        self._recorder.close()


@dataclass(frozen=True)
class Difference:
    """How restored tables differ from the expected ones."""

    resurrected: int
    missing: int
    wrong: int


def difference(expected: Mapping[str, Table], found: Mapping[str, Table]) -> Difference:
    resurrected = missing = wrong = 0
    for topic, table in expected.items():
        there = found[topic]
        resurrected += len(there.keys() - table.keys())
        missing += len(table.keys() - there.keys())
        wrong += sum(there[key] != table[key] for key in there.keys() & table.keys())
    return Difference(resurrected, missing, wrong)
