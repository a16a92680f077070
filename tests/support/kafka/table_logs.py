"""A backup of logs made by hand, and the rows that a table over it must have, by simple rules."""

from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from functools import cache
from pathlib import Path
from typing import Any

from logkeep.formats.kafka.batches import CONTROL, TRANSACTIONAL
from tests.support.kafka.offline_restore import Backed, backed_up
from tests.support.kafka.slow_records import Slow, batch_of

START_MS = 1_700_000_000_000
BATCHES, IN_A_BATCH = 40, 10
TOPICS = {"orders": 2, "my-topic.x": 1, "Upper": 1, "UPPER": 1}
_ABORTED = 3
"""This batch of each log is of an aborted transaction."""
_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)


@dataclass(frozen=True)
class Row:
    key: bytes | None
    value: bytes | None
    topic: str
    partition: int
    offset: int
    time_ms: int
    headers: tuple[tuple[str, bytes | None], ...] | None
    aborted: bool = False

    @property
    def time(self) -> datetime:
        return _EPOCH + timedelta(milliseconds=self.time_ms)

    def spark(self, *, headers: bool = True) -> tuple[Any, ...]:
        """As Spark collects it."""
        fields = (self.key, self.value, self.topic, self.partition, self.offset, self.time_ms, 0)
        return (*fields, self.headers) if headers else fields


def _row(topic: str, partition: int, offset: int) -> Row:
    number, batch = offset % IN_A_BATCH, offset // (IN_A_BATCH + 1)
    return Row(
        None if number % 3 == 0 else b"key %d" % number,
        None if number % 4 == 0 else b"" if number % 5 == 0 else b'{"n": %d}' % offset,
        topic,
        partition,
        offset,
        START_MS + batch * 1000 + (7 * number) % IN_A_BATCH,
        (("a", b"1"), ("a", None), ("\ufffd", b"\xff")) if number % 2 else None,
        batch == _ABORTED,
    )


@cache
def rows(topic: str, partition: int) -> tuple[Row, ...]:
    """Of one log. Each batch is followed by an offset without a record of a user: a marker or a hole."""
    return tuple(
        _row(topic, partition, batch * (IN_A_BATCH + 1) + number)
        for batch in range(BATCHES)
        for number in range(IN_A_BATCH)
    )


def all_rows(*topics: str, isolation: str = "committed") -> list[Row]:
    wanted = topics or tuple(TOPICS)
    logs = [rows(topic, partition) for topic in wanted for partition in range(TOPICS[topic])]
    return [row for log in logs for row in log if isolation == "all" or not row.aborted]


def _batch(some: tuple[Row, ...]) -> list[bytes]:
    """With a marker after the transaction."""
    base, time_ms = some[0].offset, some[0].time_ms
    records = [
        Slow(row.offset - base, row.time_ms - time_ms, row.key, row.value, _headers(row.headers)) for row in some
    ]
    times = {"base_time_ms": time_ms, "max_time_ms": max(row.time_ms for row in some)}
    if not some[0].aborted:
        return [batch_of(base, records, None, **times)]
    data = batch_of(base, records, None, attributes=TRANSACTIONAL, producer=9, **times)
    abort = Slow(0, 0, b"\0\0\0\0", bytes(6))
    control = {"attributes": TRANSACTIONAL | CONTROL, "producer": 9}
    return [data, batch_of(base + IN_A_BATCH, [abort], None, base_time_ms=time_ms, max_time_ms=time_ms, **control)]


def _headers(headers: tuple[tuple[str, bytes | None], ...] | None) -> tuple[tuple[bytes, bytes | None], ...]:
    """A name that was not UTF-8."""
    return tuple((b"\xfe" if name == "\ufffd" else name.encode(), value) for name, value in headers or ())


def back_up_tables(directory: Path) -> Backed:
    logs = {
        f"{topic}-{partition}": [
            part
            for first in range(0, BATCHES * IN_A_BATCH, IN_A_BATCH)
            for part in _batch(rows(topic, partition)[first : first + IN_A_BATCH])
        ]
        for topic, partitions in TOPICS.items()
        for partition in range(partitions)
    }
    return backed_up(directory, logs)
