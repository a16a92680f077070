"""What a read-committed consumer sees of a topic, by librdkafka: the judge of what a restore brought back."""

from typing import NamedTuple

from confluent_kafka import Consumer, TopicPartition


class Seen(NamedTuple):
    """One record as a consumer has it; `offset` is compared only where offsets are kept."""

    time: int
    key: bytes | None
    value: bytes | None
    headers: tuple[tuple[str, bytes | None], ...]


def seen(bootstrap: str, topic: str, partition: int, end: int | None = None) -> dict[int, Seen]:
    """All records up to the end of the log (or to `end`), by offset, in order. Waits for no open transaction."""
    consumer = Consumer(
        {
            "bootstrap.servers": bootstrap,
            "group.id": "judge",
            "isolation.level": "read_committed",
            "enable.auto.commit": False,
            "check.crcs": True,
            "enable.partition.eof": True,
            "fetch.wait.max.ms": 10,  # the end is reported by a reply without records, for which a broker waits so long
            "auto.offset.reset": "earliest",
        }
    )
    found: dict[int, Seen] = {}
    try:
        start, high = consumer.get_watermark_offsets(TopicPartition(topic, partition), 30)
        consumer.assign([TopicPartition(topic, partition, start)])
        while start < (high if end is None else end):
            message = consumer.poll(30)
            assert message is not None, f"{topic}/{partition}: nothing came for 30 s"
            if message.error():  # the end of what is stable
                break
            if end is not None and message.offset() >= end:
                break
            found[int(message.offset() or 0)] = Seen(
                message.timestamp()[1], message.key(), message.value(), tuple(message.headers() or ())
            )
    finally:
        consumer.close()
    return found


def watermarks(bootstrap: str, topic: str, partition: int) -> tuple[int, int]:
    """Log start and high watermark."""
    settings = {"bootstrap.servers": bootstrap, "group.id": "judge", "isolation.level": "read_uncommitted"}
    consumer = Consumer(settings)
    try:
        start, end = consumer.get_watermark_offsets(TopicPartition(topic, partition), 30)
        return int(start), int(end)
    finally:
        consumer.close()
