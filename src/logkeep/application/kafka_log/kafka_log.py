"""The log of one partition on Kafka: one append is one transaction, which also commits what was read of the inbox.

The transactional id `<app>-<partition>` makes the leader: the next one fences this one, and what this one had not
committed was never there. A transaction takes one more offset than it has records, for its marker. After any error this
object appends nothing more: the next leader learns from the cluster what was committed.

The whole log is kept: a process that gets a partition for the first time has no state, and replays it. A log that a
restore wrote begins with what follows its snapshot (`restored_state`); its positions are those of the archived log.
"""

import re
from bisect import bisect_right
from collections.abc import Iterator, Sequence
from typing import Any

from confluent_kafka import KafkaError, KafkaException, Producer

from logkeep.application.kafka_log.committed_records import CommittedReader, archived_batches
from logkeep.application.kafka_log.current_application import RestoredStart
from logkeep.application.kafka_log.inbox import KafkaInbox
from logkeep.application.kafka_log.log_topics import (
    CALL_S,
    MOST_RECORD_BYTES,
    ApplicationTopics,
    ConnectionConfig,
    explained,
    kafka_error,
)
from logkeep.checkpoint.records import Record
from logkeep.errors import LogkeepError, PartitionFenced

_TERM = re.compile(r"lk1:(\d+);")
_MARKER = 1
_PART_BYTES, _LARGEST = 1 << 20, 1 << 62
_FENCED = (
    KafkaError._FENCED,
    KafkaError.INVALID_PRODUCER_EPOCH,
    KafkaError.PRODUCER_FENCED,
    KafkaError.INVALID_PRODUCER_ID_MAPPING,
)


class LogSizes:
    """About how many bytes are after a position. One thread adds, others ask."""

    def __init__(self) -> None:
        self._parts: list[tuple[int, int]] = []

    def add(self, position: int, size: int) -> None:
        """What was seen before counts once."""
        if not self._parts or (position > self._parts[-1][0] and self._parts[-1][1] >= _PART_BYTES):
            self._parts.append((position, size))
        elif position > self._parts[-1][0]:
            self._parts[-1] = (self._parts[-1][0], self._parts[-1][1] + size)

    def since(self, position: int) -> int:
        parts = list(self._parts)
        first = max(bisect_right(parts, (position, _LARGEST)) - 1, 0)
        return sum(size for _, size in parts[first:])


class KafkaLog:
    """See `PartitionLog`."""

    def __init__(
        self,
        config: ConnectionConfig,
        topics: ApplicationTopics,
        partition: int,
        inbox: KafkaInbox,
        restored: RestoredStart = RestoredStart(),  # noqa: B008 - frozen
    ) -> None:
        """Become the leader, and let the inbox begin where the last one ended. Raises PartitionFenced, ClusterError."""
        self._config, self._topic, self._partition, self._inbox = config, topics.log, partition, inbox
        self._restored = restored
        self._subject = f"{topics.log}/{partition}"
        self._sizes = LogSizes()
        self._broken = False
        self._start = self._end = self._term = 0
        self._producer: Any = Producer(_producer_config(config, topics.transactional_id(partition)))
        self._reader = self._new_reader()
        try:
            self._open()
        except KafkaException as error:
            self.close()
            raise self._error(error) from error
        except BaseException:
            self.close()
            raise

    @property
    def start(self) -> int:
        return self._start

    @property
    def end(self) -> int:
        return self._end

    @property
    def term(self) -> int:
        return self._term

    @property
    def size_bytes(self) -> int:
        return self.size_from(self._start)

    def size_from(self, position: int) -> int:
        """Of what this leader has read or appended."""
        return self._sizes.since(position)

    def append(self, records: Sequence[Record]) -> int:
        if self._broken:
            raise PartitionFenced("this leader has ended", subject=self._subject)
        self._broken = True
        try:
            offsets = self._transaction(records)
        except (KafkaException, SystemError) as error:
            raise self._error(error) from error
        if offsets != list(range(offsets[0], offsets[0] + len(records))) or offsets[0] < self._end:
            raise PartitionFenced("another client writes to the log", subject=self._subject)
        self._end = offsets[-1] + 1 + _MARKER
        self._sizes.add(offsets[0], sum(map(_size, records)))
        self._broken = False
        return offsets[0]

    def read(self, start: int, most_bytes: int) -> list[Record]:
        found: list[Record] = []
        size = 0
        for records in self._reader.records(start, self._end):
            for record in records:
                found.append(record)
                size += _size(record)
                if size >= most_bytes:
                    return self._noted(found, size)
        return self._noted(found, size)

    def batch_start(self, position: int) -> int:
        return min(position, self._end)

    def cut_end(self, create: int) -> int:
        """Restored records are in one transaction, whose marker is after the last one."""
        return create + 1 + (_MARKER if create + 1 >= self._restored.end else 0)

    def batches(self, start: int, end: int) -> Iterator[bytes]:
        if start >= end:
            return
        reader = self._new_reader()
        try:
            yield from archived_batches(reader.records(start, end), start, end)
        finally:
            reader.close()

    def compact(self, before: int) -> int:
        del before
        return self._start

    def close(self) -> None:
        self._broken = True
        self._producer = None
        self._reader.close()

    def _open(self) -> None:
        self._producer.init_transactions(CALL_S)
        committed = self._inbox.committed()
        start, self._end = self._reader.bounds()
        self._start = max(start, self._restored.position)
        known = _TERM.match(committed.metadata or "")
        self._term = int(known[1]) + 1 if known else self._end + 1
        self._metadata = f"lk1:{self._term};"
        self._producer.begin_transaction()
        self._commit_inbox(self._inbox.begin(committed.offset))
        self._producer.commit_transaction(CALL_S)

    def _new_reader(self) -> CommittedReader:
        return CommittedReader(self._config, self._topic, self._partition, self._restored.base)

    def _transaction(self, records: Sequence[Record]) -> list[int]:
        """The positions that they got."""
        offsets: list[int] = []
        failed: list[KafkaError] = []
        base = self._restored.base

        def delivered(error: KafkaError | None, message: Any) -> None:
            failed.append(error) if error is not None else offsets.append(message.offset() + base)

        self._producer.begin_transaction()
        for record in records:
            self._producer.produce(
                self._topic,
                record.value,
                record.key,
                self._partition,
                on_delivery=delivered,
                timestamp=record.timestamp_ms,
                headers=list(record.headers),
            )
        self._producer.flush(CALL_S)
        if failed or len(offsets) != len(records):
            raise KafkaException(failed[0] if failed else KafkaError(KafkaError._TIMED_OUT))
        self._commit_inbox(self._inbox.pending)
        self._producer.commit_transaction(CALL_S)
        return offsets

    def _commit_inbox(self, offset: int | None) -> None:
        if offset is not None:
            place, members = self._inbox.place(offset, self._metadata), self._inbox.members()
            self._producer.send_offsets_to_transaction([place], members, CALL_S)

    def _noted(self, found: list[Record], size: int) -> list[Record]:
        if found:
            self._sizes.add(found[0].position, size)
        return found

    def _error(self, error: KafkaException | SystemError) -> LogkeepError:
        if kafka_error(error).code() in _FENCED:
            return PartitionFenced("another process leads this partition", subject=self._subject)
        return explained(error, self._subject)


def _producer_config(config: ConnectionConfig, transactional_id: str) -> dict[str, Any]:
    return {
        **config,
        "transactional.id": transactional_id,
        "transaction.timeout.ms": int(CALL_S * 1000),
        "message.max.bytes": MOST_RECORD_BYTES,
        "compression.type": "none",
        "linger.ms": 0,
    }


def _size(record: Record) -> int:
    return len(record.value) + len(record.key or b"") + sum(len(v) + len(n) for n, v in record.headers) + 16
