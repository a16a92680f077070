"""The transport of one partition over Kafka: reads its inbox, and sends to the inboxes of others.

Messages are read from the offset that the last leader committed together with its log, so each is logged once. A query
is answered here and never logged. A record that is not a message of an application is skipped and counted.
"""

from collections import Counter, deque
from collections.abc import Callable, Sequence
from contextlib import suppress
from typing import Any

from confluent_kafka import Consumer, KafkaException, Message, Producer, TopicPartition

from logkeep.application.client_errors import client_error
from logkeep.application.kafka_log.committed_records import bounds_of, consumer_config, record_of
from logkeep.application.kafka_log.log_topics import (
    CALL_S,
    MOST_RECORD_BYTES,
    ApplicationTopics,
    ConnectionConfig,
    explained,
)
from logkeep.checkpoint.records import Record
from logkeep.errors import ClusterError, Damaged

QUERY = "lk-q"
"""The header of a query; its value is the query."""
_DECODE_ATTEMPTS = 20
Answer = Callable[[bytes], None]


class InboxSender:
    """Sends messages and replies, from all threads of a process. What cannot be sent is dropped, and repeated."""

    def __init__(self, config: ConnectionConfig, topics: ApplicationTopics) -> None:
        self._topics = topics
        made = {**config, "enable.idempotence": True, "linger.ms": 2, "message.max.bytes": MOST_RECORD_BYTES}
        self._producer: Any = Producer(made)

    def message(self, partition: int, record: Record) -> None:
        self._put(self._topics.inbox, partition, record.key, record.value, list(record.headers))

    def query(self, partition: int, query: bytes) -> None:
        self._put(self._topics.inbox, partition, None, b"", [(QUERY, query)])

    def reply(self, partition: int, to: str, reply: bytes) -> None:
        self._put(self._topics.replies, partition, to.encode(), reply, [])

    def flush(self) -> None:
        self._producer.flush(CALL_S)

    def _put(self, topic: str, partition: int, key: bytes | None, value: bytes, headers: list[Any]) -> None:
        with suppress(BufferError, KafkaException):
            self._producer.produce(topic, value, key, partition, headers=headers)
        self._producer.poll(0)


class KafkaInbox:
    """See `Transport`. The thread of its partition uses it."""

    def __init__(
        self, config: ConnectionConfig, topics: ApplicationTopics, partition: int, outgoing: InboxSender, answer: Answer
    ) -> None:
        """`answer` gets every query."""
        self._topic, self._partition, self._outgoing, self._answer = topics.inbox, partition, outgoing, answer
        self._consumer = Consumer(consumer_config(config, topics.application))
        self._waiting: deque[Record] = deque()
        self.pending: int | None = None
        """Where the next append says that the inbox was read to."""
        self.counted: Counter[str] = Counter()

    def committed(self) -> TopicPartition:
        """What the last leader committed. confluent-kafka reads the metadata past its end, where no text may be."""
        for _ in range(_DECODE_ATTEMPTS):
            with suppress(UnicodeDecodeError):
                return self._consumer.committed([self.place(0)], CALL_S)[0]
        raise ClusterError("the metadata of its offset cannot be read", subject=f"{self._topic}/{self._partition}")

    def begin(self, offset: int) -> int:
        """Read from an offset on, or from the first one if none was committed; where that is."""
        begin = max(offset, bounds_of(self._consumer, self.place(0))[0])
        self._consumer.assign([self.place(begin)])
        return begin

    def place(self, offset: int, metadata: str = "") -> TopicPartition:
        return TopicPartition(self._topic, self._partition, offset, metadata)

    def members(self) -> Any:
        """The group, without a member: the transactional id fences old leaders, also between two rebalances."""
        return self._consumer.consumer_group_metadata()

    def send(self, partition: int, records: Sequence[Record]) -> None:
        for record in records:
            self._outgoing.message(partition, record)

    def receive(self, partition: int, most: int) -> list[Record]:
        del partition
        self._take(most - len(self._waiting), 0)
        return [self._waiting.popleft() for _ in range(min(most, len(self._waiting)))]

    def consumed(self, partition: int, messages: Sequence[Record]) -> None:
        del partition
        if messages:
            self.pending = messages[-1].position + 1

    def wait(self, partition: int, seconds: float) -> None:
        del partition
        self._take(1, seconds)

    def wake(self, partition: int) -> None:
        """Does nothing: a wait is short and ends by itself."""

    def close(self) -> None:
        self._consumer.close()

    def _take(self, most: int, seconds: float) -> None:
        if most <= 0:
            return
        try:
            arrived = self._consumer.consume(most, seconds)
        except KafkaException as error:
            raise explained(error, self._topic) from error
        for message in arrived:
            self._accept(message)

    def _accept(self, message: Message) -> None:
        error = message.error()
        if error is not None:
            if error.fatal():
                raise client_error(error, self._topic)
            return
        for name, value in message.headers() or ():
            if name == QUERY:
                self._answer(value or b"")
                return
        try:
            self._waiting.append(record_of(message))
        except Damaged:
            self.counted["unreadable"] += 1
