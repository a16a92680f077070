"""The topics of an application whose log is on Kafka: created when they are missing.

    <app>.log       the truth; one writer per partition, its leader; kept forever
    <app>.inbox     what clients, coordinators and other partitions send; kept for three days
    <app>.replies   answers to clients and coordinators; kept for an hour
    <app>.history   one partition, compacted: which of the topics are in use (`current_application`)

The first three have the same number of partitions. The id of the topic `<app>.log` is the id of the application: every
process learns the same one, and topics that were deleted and created again are another application. A restore begins a
history of its own, whose topics are called `<app>.log.h<history>` and so on. The inbox is kept for a shorter time than
a cluster keeps the offsets of a group without members (seven days), so that no command is read twice.
"""

import time
from collections.abc import Mapping
from dataclasses import dataclass

from confluent_kafka import KafkaError, KafkaException, TopicCollection, Uuid
from confluent_kafka.admin import AdminClient, NewTopic, TopicDescription

from logkeep.application.client_errors import client_answer, client_error
from logkeep.errors import ClusterError, TargetUnsafe, TopicMissing

ConnectionConfig = Mapping[str, str | int | float | bool]
"""How to reach the cluster, in the words of librdkafka."""
MOST_RECORD_BYTES = 8 << 20
CALL_S = 30.0
_HOUR_MS = 3_600_000
_SETTLE_S = 0.2


@dataclass(frozen=True)
class ApplicationTopics:
    """Names of the topics. `history` is 0, or the number that a restore reserved."""

    application: str
    history: int = 0

    @property
    def log(self) -> str:
        return self._of_history("log")

    @property
    def inbox(self) -> str:
        return self._of_history("inbox")

    @property
    def replies(self) -> str:
        return self._of_history("replies")

    @property
    def of_history(self) -> tuple[str, str, str]:
        """Those that each history has of its own."""
        return self.log, self.inbox, self.replies

    @property
    def histories(self) -> str:
        return f"{self.application}.history"

    def transactional_id(self, partition: int) -> str:
        """Of a partition's leader, in every history: the next leader fences the last one."""
        return f"{self.application}-{partition}"

    def _of_history(self, kind: str) -> str:
        return f"{self.application}.{kind}" + (f".h{self.history}" if self.history else "")


@dataclass(frozen=True)
class FoundTopics:
    application: str
    """32 hex digits."""
    partitions: int


def ensure_topics(config: ConnectionConfig, topics: ApplicationTopics, partitions: int) -> FoundTopics:
    """Create what is missing. Raises TargetUnsafe if a topic has another number of partitions, ClusterError."""
    admin = AdminClient(dict(config))
    new = [
        NewTopic(topics.log, partitions, -1, config={**_KEPT, "retention.ms": "-1", "retention.bytes": "-1"}),
        NewTopic(topics.inbox, partitions, -1, config={**_KEPT, "retention.ms": str(72 * _HOUR_MS)}),
        NewTopic(topics.replies, partitions, -1, config={**_KEPT, "retention.ms": str(_HOUR_MS)}),
    ]
    _create(admin, new)
    ensure_history_topic(config, topics)
    found = _when_known(admin, topics)
    if found.partitions != partitions:
        what = f"the topic has {found.partitions} partitions, not {partitions}"
        raise TargetUnsafe(what, subject=topics.log, remedy="the number of partitions is fixed; use another name")
    return found


def ensure_history_topic(config: ConnectionConfig, topics: ApplicationTopics) -> None:
    """Raises ClusterError."""
    _create(AdminClient(dict(config)), [NewTopic(topics.histories, 1, -1, config={"cleanup.policy": "compact"})])


def delete_topics(config: ConnectionConfig, topics: ApplicationTopics) -> None:
    """Those of one history; a topic that does not exist is not an error. Raises ClusterError."""
    admin = AdminClient(dict(config))  # it must live as long as the call
    for name, done in admin.delete_topics([*topics.of_history], operation_timeout=CALL_S).items():
        try:
            client_answer(done, name, CALL_S)
        except KafkaException as error:
            if error.args[0].code() not in _MISSING:
                raise explained(error, name) from error


def topic_exists(config: ConnectionConfig, name: str) -> bool:
    """Raises ClusterError."""
    admin = AdminClient(dict(config))  # it must live as long as the call
    try:
        return bool(_description(_describe(admin, [name])[name], name))
    except TopicMissing:
        return False


def _create(admin: AdminClient, new: list[NewTopic]) -> None:
    for name, done in admin.create_topics(new, operation_timeout=CALL_S).items():
        try:
            client_answer(done, name, CALL_S)
        except KafkaException as error:
            if error.args[0].code() != KafkaError.TOPIC_ALREADY_EXISTS:
                raise explained(error, name) from error


def find_topics(config: ConnectionConfig, topics: ApplicationTopics) -> FoundTopics:
    """Raises TopicMissing if the application never ran, TargetUnsafe, ClusterError."""
    return _describe_topics(AdminClient(dict(config)), topics)


def kafka_error(error: KafkaException | SystemError) -> KafkaError:
    """What happened. A fatal error while the client calls delivery callbacks is a SystemError with a cause."""
    found = error if isinstance(error, KafkaException) else error.__cause__
    if not isinstance(found, KafkaException):
        raise error
    cause: KafkaError = found.args[0]
    return cause


def explained(error: KafkaException | SystemError, subject: str) -> ClusterError:
    """An error of the cluster or of its client."""
    return client_error(kafka_error(error), subject)


def _when_known(admin: AdminClient, topics: ApplicationTopics) -> FoundTopics:
    """A broker may learn of new topics a moment after they were created."""
    until = time.monotonic() + CALL_S
    while True:
        try:
            return _describe_topics(admin, topics)
        except TopicMissing:
            if time.monotonic() > until:
                raise
            time.sleep(_SETTLE_S)


def _describe_topics(admin: AdminClient, topics: ApplicationTopics) -> FoundTopics:
    names = [*topics.of_history]
    described = {name: _description(done, name) for name, done in _describe(admin, names).items()}
    counts = {name: len(one.partitions) for name, one in described.items()}
    if len(set(counts.values())) != 1:
        listed = ", ".join(f"{name} has {count}" for name, count in sorted(counts.items()))
        what = f"its topics have different numbers of partitions: {listed}"
        raise TargetUnsafe(what, subject=topics.application, remedy="the number of partitions is fixed")
    return FoundTopics(_hex(described[topics.log].topic_id), counts[topics.log])


def _describe(admin: AdminClient, names: list[str]) -> Mapping[str, object]:
    described: Mapping[str, object] = admin.describe_topics(TopicCollection(names), request_timeout=CALL_S)
    return described


def _description(done: object, name: str) -> TopicDescription:
    try:
        found: TopicDescription = client_answer(done, name, CALL_S)
    except KafkaException as error:
        if error.args[0].code() in _MISSING:
            raise TopicMissing("there is no such topic", subject=name, remedy="start the application first") from error
        raise explained(error, name) from error
    return found


def _hex(topic_id: Uuid) -> str:
    high, low = topic_id.get_most_significant_bits(), topic_id.get_least_significant_bits()
    return f"{high & _LONG:016x}{low & _LONG:016x}"


_LONG = (1 << 64) - 1
_KEPT = {
    "cleanup.policy": "delete",
    "compression.type": "producer",
    "max.message.bytes": str(MOST_RECORD_BYTES + (1 << 16)),
    "message.timestamp.type": "CreateTime",
}
_MISSING = (KafkaError.UNKNOWN_TOPIC_OR_PART, KafkaError._UNKNOWN_TOPIC)
