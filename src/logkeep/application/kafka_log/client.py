"""A client of an application whose log is on Kafka: sends commands and a coordinator's creates, asks for state.

It writes to the inbox of a partition and reads the replies. Everything it sends has an id and may be repeated.
"""

import secrets
import time
from collections.abc import Callable, Mapping, Sequence

import msgspec
from confluent_kafka import Consumer, TopicPartition

from logkeep.application.context import check_key, encode_value
from logkeep.application.control import SendRequest
from logkeep.application.kafka_log.committed_records import bounds_of, consumer_config, take_arrived
from logkeep.application.kafka_log.current_application import find_application
from logkeep.application.kafka_log.inbox import InboxSender
from logkeep.application.kafka_log.log_topics import CALL_S, ConnectionConfig
from logkeep.checkpoint.archive.running_application import ApplicationFacts
from logkeep.checkpoint.records import CheckpointDocument, Kind, checkpoint, command
from logkeep.checkpoint.routing import partition_of
from logkeep.errors import ClusterError, ClusterNotReady, UsageError
from logkeep.repository.chain.documents import seal, unseal

_REPEAT_S, _POLL_S, _ANSWERS_S, _OTHERS_S = 5.0, 0.2, 0.3, 5.0


class ApplicationQuery(msgspec.Struct, frozen=True, omit_defaults=True):
    """A question to the leader of a partition: the value of a key, or what the application is."""

    request: str
    key: str | None = None


class InboxReply(msgspec.Struct, frozen=True, omit_defaults=True):
    """One record of the replies, whose key says to whom it goes."""

    partition: int
    value: msgspec.Raw = msgspec.Raw(b"\xc0")
    document: bytes | None = None


class StoredValue(msgspec.Struct, frozen=True):
    """The answer to a query for a key."""

    found: bytes | None


def encode_reply(partition: int, value: object) -> bytes:
    if isinstance(value, CheckpointDocument):
        return msgspec.msgpack.encode(InboxReply(partition, document=seal(value)))
    return msgspec.msgpack.encode(InboxReply(partition, msgspec.Raw(msgspec.msgpack.encode(value))))


def _facts_in(reply: InboxReply) -> ApplicationFacts:
    return msgspec.msgpack.decode(reply.value, type=ApplicationFacts)


class KafkaClient:
    """See `ApplicationPort`; also sends commands. One thread uses it."""

    def __init__(self, config: ConnectionConfig, application: str) -> None:
        """Raises TopicMissing, Locked while it is restored, ClusterError."""
        self._name, self._found = application, find_application(config, application)
        self._brokers = str(config["bootstrap.servers"])
        topics = self._found.topics
        self._outgoing = InboxSender(config, topics)
        self._consumer = Consumer(consumer_config(config, f"{topics.replies}.reader"))
        self._expected: set[str] = set()
        self._arrived: dict[str, list[InboxReply]] = {}
        self._answers: dict[int, dict[int, CheckpointDocument]] = {}
        self._begin(topics.replies)

    def send(self, sent: SendRequest) -> object:
        """The reply to a command. Raises UsageError, ClusterError."""
        request = secrets.token_hex(16) if sent.request is None else sent.request
        record = command(sent.name, check_key(sent.key), encode_value(sent.value), request=request)
        number = partition_of(sent.key, self._found.partitions)
        reply = self._ask(request, lambda: self._outgoing.message(number, record), sent.timeout_s)
        return msgspec.msgpack.decode(reply.value)

    def state(self, key: str, timeout_s: float = CALL_S) -> bytes | None:
        """The stored value of a key, as its leader has it. Raises ClusterError."""
        number = partition_of(key, self._found.partitions)
        reply = self._query(number, key, timeout_s)
        return msgspec.msgpack.decode(reply.value, type=StoredValue).found

    def facts(self) -> ApplicationFacts:
        """`latest` is the largest checkpoint id of the partitions that answer; those without a leader do not."""
        others = [self._put_query(number) for number in range(1, self._found.partitions)]
        found = _facts_in(self._query(0, None, CALL_S))
        if found.application != self._found.application:
            raise ClusterError("another application answers", subject=self._name)
        answered = [found, *(_facts_in(reply) for reply in self._gather(others, _OTHERS_S))]
        return msgspec.structs.replace(
            found,
            latest=max(each.latest for each in answered),
            unarchived_bytes=max(each.unarchived_bytes for each in answered),
            brokers=self._brokers,
        )

    def create(self, partition: int, document: CheckpointDocument) -> None:
        if not 0 <= partition < self._found.partitions:
            raise UsageError(f"there is no partition {partition}")
        self._expected.add(document.nonce)
        self._outgoing.message(partition, checkpoint(Kind.CREATE, document))
        self._outgoing.flush()

    def answers(self, checkpoint_id: int) -> Mapping[int, CheckpointDocument]:
        self._take(_ANSWERS_S)
        for replies in self._arrived.values():
            for reply in replies:
                if reply.document is not None:
                    document = unseal(reply.document, CheckpointDocument, f"the answer of partition {reply.partition}")
                    self._answers.setdefault(document.id, {})[reply.partition] = document
        self._arrived.clear()
        return self._answers.get(checkpoint_id, {})

    def close(self) -> None:
        self._outgoing.flush()
        self._consumer.close()

    def _begin(self, topic: str) -> None:
        """Read from the current ends on: replies to later requests come after them."""
        places = [TopicPartition(topic, number) for number in range(self._found.partitions)]
        ends = [bounds_of(self._consumer, place)[1] for place in places]
        self._consumer.assign([TopicPartition(topic, number, end) for number, end in enumerate(ends)])

    def _query(self, partition: int, key: str | None, timeout_s: float) -> InboxReply:
        request = secrets.token_hex(16)
        query = msgspec.json.encode(ApplicationQuery(request, key))
        return self._ask(request, lambda: self._outgoing.query(partition, query), timeout_s)

    def _put_query(self, partition: int) -> str:
        """Ask a partition for its facts. Returns the request."""
        request = secrets.token_hex(16)
        self._expected.add(request)
        self._outgoing.query(partition, msgspec.json.encode(ApplicationQuery(request)))
        return request

    def _gather(self, requests: Sequence[str], seconds: float) -> list[InboxReply]:
        """The replies that arrive in this time."""
        until = time.monotonic() + seconds
        while not all(request in self._arrived for request in requests) and time.monotonic() < until:
            self._take(_POLL_S)
        self._expected.difference_update(requests)
        return [self._arrived.pop(request)[0] for request in requests if request in self._arrived]

    def _ask(self, request: str, put: Callable[[], None], timeout_s: float) -> InboxReply:
        self._expected.add(request)
        until, repeat = time.monotonic() + timeout_s, 0.0
        while time.monotonic() < until:
            if time.monotonic() >= repeat:
                put()
                self._outgoing.flush()
                repeat = time.monotonic() + _REPEAT_S
            self._take(_POLL_S)
            if self._arrived.get(request):
                self._expected.discard(request)
                return self._arrived.pop(request)[0]
        remedy = "check that processes of the application run; a command with the same request id is processed once"
        raise ClusterNotReady(f"no reply within {timeout_s:g} s", subject=self._name, remedy=remedy)

    def _take(self, seconds: float) -> None:
        for message in take_arrived(self._consumer, 1000, seconds):
            if message.error() is not None:
                continue
            to = (message.key() or b"").decode("utf-8", "replace")
            if to in self._expected:
                reply = msgspec.msgpack.decode(message.value() or b"", type=InboxReply)
                self._arrived.setdefault(to, []).append(reply)
