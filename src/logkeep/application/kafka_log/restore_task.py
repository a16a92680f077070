"""A task: writes one partition of an archived application to the topics of a new history, and reads it back.

    offset     what the topic `<app>.log.h<history>` has
    f - c      the snapshot, in c pieces (`restored_state`)
    f          the record at position p, and those after it up to the create; the header `lk-h` where there is none
    f + n      the marker of the transaction

The files are staged and compared on this machine first, as for a restore to files. All is one transaction: it is there
whole or not at all, and a repeated attempt ends the one before it. A repeated attempt writes after what is there, and
the offset that it returns says where.
"""

import hashlib
from collections.abc import Iterator
from contextlib import closing
from itertools import repeat
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any, NamedTuple

import msgspec
from confluent_kafka import KafkaError, KafkaException, Message, Producer

from logkeep.application.client_config import client_config
from logkeep.application.kafka_log.committed_records import HOLE, CommittedReader
from logkeep.application.kafka_log.current_application import RestoredStart
from logkeep.application.kafka_log.log_topics import (
    CALL_S,
    MOST_RECORD_BYTES,
    ApplicationTopics,
    ConnectionConfig,
    explained,
    kafka_error,
)
from logkeep.application.kafka_log.restored_state import chunks_of
from logkeep.checkpoint.file_log.file_log import FileLog
from logkeep.checkpoint.restore.stage_task import StagedPartition, StageUnit, stage_partition
from logkeep.errors import Damaged, RestoreFailed, TargetUnsafe
from logkeep.model.work import Progress

_READ_BYTES, _QUEUE_KIB, _TRANSACTION_S = 4 << 20, 32 << 10, 900
_NO_TIME_MS = 1
"""The header of records that are not records of the application."""
Headers = tuple[tuple[str, bytes], ...]


class ClusterUnit(msgspec.Struct, frozen=True, kw_only=True):
    """`stage.directory` is empty: a task stages in a directory of its own."""

    stage: StageUnit
    bootstrap_servers: str
    client_config: str | None
    """The path of a file; a task reads it where it runs."""
    application: str
    history: int
    end: int
    """After the create."""

    @property
    def topics(self) -> ApplicationTopics:
        return ApplicationTopics(self.application, self.history)

    @property
    def connection(self) -> ConnectionConfig:
        return client_config(self.bootstrap_servers, Path(self.client_config) if self.client_config else None)


class WrittenPartition(msgspec.Struct, frozen=True, kw_only=True):
    staged: StagedPartition
    start: RestoredStart


class _Written(NamedTuple):
    """One record as a producer takes it."""

    key: bytes | None
    value: bytes | None
    headers: Headers
    time_ms: int


def write_partition(unit: ClusterUnit, progress: Progress) -> WrittenPartition:
    """Raises Damaged if the archive is not what was backed up, RestoreFailed, TargetUnsafe, ClusterError."""
    with TemporaryDirectory(prefix="logkeep-restore-") as scratch:
        stage = msgspec.structs.replace(unit.stage, directory=str(Path(scratch) / "partition"))
        staged = stage_partition(stage, progress)
        return WrittenPartition(staged=staged, start=_send(unit, Path(stage.directory)))


def transactional_id(topics: ApplicationTopics, partition: int) -> str:
    """Of the attempts to write one partition: each fences the one before it."""
    return f"{topics.application}-restore-{partition}"


def _send(unit: ClusterUnit, root: Path) -> RestoredStart:
    snapshot = unit.stage.snapshot
    position = snapshot.start + 1 if snapshot is not None else unit.stage.log_start
    pieces = _pieces(root, snapshot.start) if snapshot is not None else iter(())
    with closing(FileLog(root / "log")) as log:
        sender = _Sender(unit)
        sender.send(pieces)
        chunks = sender.count
        sender.send(_log_records(log, position, unit.end))
        first = sender.commit()
    compare(unit, first, sender.count, sender.digest.digest())
    return RestoredStart(position, first + chunks, unit.end, chunks)


def _pieces(root: Path, position: int) -> Iterator[_Written]:
    for headers, value in chunks_of(root / "snapshots" / f"{position:020}.sqlite"):
        yield _Written(None, value, headers, _NO_TIME_MS)


def _log_records(log: FileLog, start: int, end: int) -> Iterator[_Written]:
    """One for each position of `[start, end)`."""
    hole = _Written(None, None, ((HOLE, b""),), _NO_TIME_MS)
    reached = start
    while reached < end:
        found = [one for one in log.read(reached, _READ_BYTES) if one.position < end]
        if not found:
            raise Damaged(f"there is no create at position {end - 1}", subject=f"the log from {start} on")
        for one in found:
            yield from repeat(hole, one.position - reached)
            yield _Written(one.key, one.value, one.headers, one.timestamp_ms)
            reached = one.position + 1


class _Sender:
    """One transaction of one partition. The digest covers what was sent."""

    def __init__(self, unit: ClusterUnit) -> None:
        self._topic, self._partition = unit.topics.log, unit.stage.partition
        self._first = self._last = -1
        self._failed: KafkaError | None = None
        self.digest, self.count = hashlib.sha256(), 0
        made = {
            **unit.connection,
            "transactional.id": transactional_id(unit.topics, unit.stage.partition),
            "transaction.timeout.ms": _TRANSACTION_S * 1000,
            "message.max.bytes": MOST_RECORD_BYTES,
            "queue.buffering.max.kbytes": _QUEUE_KIB,
            "compression.type": "zstd",
            "linger.ms": 20,
        }
        self._producer: Any = Producer(made)
        try:
            self._producer.init_transactions(CALL_S)
            self._producer.begin_transaction()
        except KafkaException as error:
            raise self._error(error) from error

    def send(self, records: Iterator[_Written]) -> None:
        for one in records:
            self._put(one)
            self.digest.update(msgspec.msgpack.encode(one))
            self.count += 1

    def commit(self) -> int:
        """The offset of the first record."""
        try:
            self._producer.flush(_TRANSACTION_S)
            self._check_sent()
            self._producer.commit_transaction(CALL_S)
        except (KafkaException, SystemError) as error:
            raise self._error(error) from error
        if self._last + 1 - self._first != self.count:
            raise RestoreFailed("another client wrote to the topic", subject=f"{self._topic}/{self._partition}")
        return self._first

    def _put(self, one: _Written) -> None:
        while True:
            try:
                self._producer.produce(
                    self._topic, one.value, one.key, self._partition, on_delivery=self._delivered,
                    timestamp=one.time_ms, headers=list(one.headers),
                )  # fmt: skip
            except BufferError:
                self._poll(1)
            except KafkaException as error:
                raise self._error(error) from error
            else:
                self._poll(0)
                return

    def _poll(self, seconds: float) -> None:
        try:
            self._producer.poll(seconds)
            self._check_sent()
        except (KafkaException, SystemError) as error:
            raise self._error(error) from error

    def _check_sent(self) -> None:
        if self._failed is not None:
            raise KafkaException(self._failed)

    def _delivered(self, error: KafkaError | None, message: Message) -> None:
        """The first and the last offset say whether something else is between them."""
        if error is not None:
            self._failed = error
        else:
            self._last = message.offset()
            self._first = self._last if self._first < 0 else self._first

    def _error(self, error: KafkaException | SystemError) -> Exception:
        subject = f"{self._topic}/{self._partition}"
        if kafka_error(error).code() == KafkaError.MSG_SIZE_TOO_LARGE:
            remedy = "restore to files: a log in files has no such limit"
            return TargetUnsafe(
                f"a record is larger than {MOST_RECORD_BYTES >> 20} MiB, the limit of the topic",
                subject=subject, remedy=remedy,
            )  # fmt: skip
        return explained(error, subject)


def compare(unit: ClusterUnit, first: int, count: int, digest: bytes) -> None:
    """Raises Damaged if the cluster does not return the records that were sent, from offset `first` on."""
    topic, partition = unit.topics.log, unit.stage.partition
    found, returned = hashlib.sha256(), 0
    with closing(CommittedReader(unit.connection, topic, partition)) as reader:
        for messages in reader.messages(first, first + count):
            for one in messages:
                headers = tuple((name, value or b"") for name, value in one.headers() or ())
                back = _Written(one.key(), one.value(), headers, one.timestamp()[1])
                found.update(msgspec.msgpack.encode(back))
                returned += 1
    if (returned, found.digest()) != (count, digest):
        what = f"the cluster returned {returned} of {count} records, or other ones"
        raise Damaged(what, subject=f"{topic}/{partition}", remedy="run the restore again")
