"""The two topics between an application and its coordinator: created when missing, read from their beginning."""

import time
from collections.abc import Callable, Iterator, Mapping

from confluent_kafka import Consumer, KafkaError, KafkaException, Message, TopicPartition
from confluent_kafka.admin import AdminClient, NewTopic

from logkeep.application.client_errors import client_answer, client_error
from logkeep.application.kafka.documents import checkpoints_topic, control_topic
from logkeep.errors import ClusterUnreachable

_PARTITION = 0
_WAIT_S = 30.0
_POLL_S = 0.2

ClientConfig = Mapping[str, str | int | float | bool]


def ensure_topics(config: ClientConfig, application: str) -> None:
    """Create the topics of an application that do not exist. Raises ClusterError."""
    admin = AdminClient(dict(config))
    names = (control_topic(application), checkpoints_topic(application))
    new = [NewTopic(name, 1, -1, config={"cleanup.policy": "compact"}) for name in names]
    for name, done in admin.create_topics(new, operation_timeout=_WAIT_S).items():
        try:
            client_answer(done, name, _WAIT_S)
        except KafkaException as error:
            if error.args[0].code() != KafkaError.TOPIC_ALREADY_EXISTS:
                raise client_error(error.args[0], name, "the topic cannot be created") from error


def partition_counts(config: ClientConfig, topics: set[str]) -> dict[str, int]:
    """How many partitions each topic has; a topic that does not exist is left out."""
    found = AdminClient(dict(config)).list_topics(timeout=_WAIT_S).topics
    return {name: len(found[name].partitions) for name in topics if name in found and found[name].error is None}


class TopicReader:
    """Reads one partition from its beginning, without a group; committed records only."""

    def __init__(self, config: ClientConfig, topic: str, clock: Callable[[], float] = time.monotonic) -> None:
        self._topic, self._clock = topic, clock
        self._consumer = Consumer(
            {
                **config,
                "group.id": f"{topic}.reader",
                "enable.auto.commit": False,
                "isolation.level": "read_committed",
                "auto.offset.reset": "earliest",
                "enable.partition.eof": True,
            }
        )
        self._consumer.assign([TopicPartition(topic, _PARTITION, 0)])

    def to_end(self) -> Iterator[Message]:
        """All records up to the current end. Raises ClusterUnreachable if the end is not reached in time."""
        until = self._clock() + _WAIT_S
        while self._clock() < until:
            for message in self._consumer.consume(1000, _POLL_S):
                if message.error() is None:
                    yield message
                elif message.error().code() == KafkaError._PARTITION_EOF:
                    return
                elif message.error().fatal():
                    raise client_error(message.error(), self._topic)
        raise ClusterUnreachable(f"the end of the topic was not reached in {_WAIT_S:.0f} s", subject=self._topic)

    def new(self, wait_s: float = 0.0) -> list[Message]:
        """What came since, without waiting longer than this."""
        return [m for m in self._consumer.consume(1000, wait_s) if m.error() is None]

    def close(self) -> None:
        self._consumer.close()
