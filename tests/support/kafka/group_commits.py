"""Positions of groups, committed by librdkafka."""

from collections.abc import Sequence

from confluent_kafka import Consumer, KafkaError, KafkaException, TopicPartition

from tests.support.processes import wait_for


def commit(bootstrap: str, group: str, offsets: Sequence[TopicPartition]) -> None:
    """As soon as the group's coordinator has loaded: a broker that has just started answers that it has not."""
    consumer = Consumer({"bootstrap.servers": bootstrap, "group.id": group, "enable.auto.commit": False})
    try:
        wait_for(lambda: _committed(consumer, offsets), f"the coordinator of {group}")
    finally:
        consumer.close()


def _committed(consumer: Consumer, offsets: Sequence[TopicPartition]) -> bool:
    try:
        consumer.commit(offsets=list(offsets), asynchronous=False)
    except KafkaException as error:
        if error.args[0].code() != KafkaError.COORDINATOR_LOAD_IN_PROGRESS:
            raise
        return False
    return True
