"""A process of an application whose log is on Kafka: a member of its group, and the leader of the partitions it gets.

A rebalance is a change of leaders. The member has an id in its data directory: a process that is started again gets the
partitions that it had, and its state is there. Where a partition arrives for the first time its log is replayed. A
leader that is fenced, or whose cluster does not answer, ends and begins anew as long as the group gives it the
partition, unless the application was restored meanwhile.
"""

import logging
import secrets
import threading
from pathlib import Path
from typing import Any

import msgspec
from confluent_kafka import Consumer, KafkaException, TopicPartition

from logkeep.application.client_errors import client_error
from logkeep.application.context import HandledApplication
from logkeep.application.data_directory import MEMBER, DataDirectory
from logkeep.application.kafka_log.client import ApplicationQuery, StoredValue, encode_reply
from logkeep.application.kafka_log.committed_records import consumer_config
from logkeep.application.kafka_log.current_application import CurrentApplication, open_document
from logkeep.application.kafka_log.inbox import InboxSender, KafkaInbox
from logkeep.application.kafka_log.kafka_log import KafkaLog
from logkeep.application.kafka_log.log_topics import ConnectionConfig
from logkeep.application.kafka_log.restored_state import fetch_snapshot
from logkeep.application.partition_worker import PartitionWorker
from logkeep.application.worker_factory import RuntimeOptions, WorkerFactory
from logkeep.checkpoint.records import CheckpointDocument
from logkeep.checkpoint.routing import partition_of
from logkeep.checkpoint.state.sqlite_state import read_key
from logkeep.errors import ClusterError, Locked, TargetUnsafe

_SESSION_MS, _POLL_S, _RETRY_S, _END_S = 10_000, 0.2, 1.0, 60.0
_log = logging.getLogger("logkeep.application")


class GroupRuntime:
    """One process. `ended` is set when it cannot continue; `failure` says why."""

    def __init__(
        self,
        application: HandledApplication,
        directory: DataDirectory,
        config: ConnectionConfig,
        current: CurrentApplication,
        options: RuntimeOptions,
    ) -> None:
        self._config, self._directory, self._current = config, directory, current
        self._topics = current.topics
        self._partitions = directory.document.partitions
        self._factory = WorkerFactory(application, directory.document, options)
        self._outgoing = InboxSender(config, self._topics)
        self._leaders: dict[int, _Leading] = {}
        self._workers: dict[int, PartitionWorker] = {}
        self._stop, self.ended = threading.Event(), threading.Event()
        self._member = threading.Thread(target=self._belong, daemon=True)
        self._failure: BaseException | None = None

    def start(self) -> None:
        self._member.start()

    def stop(self) -> None:
        self._stop.set()
        self._member.join(_END_S)
        self._outgoing.flush()

    def failure(self) -> BaseException | None:
        return self._failure

    def _belong(self) -> None:
        """Be a member of the group until the end. It reads nothing: leaders read their inboxes themselves."""
        made = {
            **consumer_config(self._config, self._topics.application),
            "group.instance.id": member_id(self._directory.path),
            "partition.assignment.strategy": "cooperative-sticky",
            "session.timeout.ms": _SESSION_MS,
            "error_cb": self._report,
        }
        consumer = Consumer(made)
        try:
            consumer.subscribe(
                [self._topics.inbox], on_assign=self._assigned, on_revoke=self._revoked, on_lost=self._revoked
            )
            while not self._stop.is_set():
                self._check(consumer.poll(_POLL_S))
        except BaseException as error:  # noqa: BLE001 - whatever ends the membership ends the program, with this reason
            self._fail(error)
        finally:
            self._end(list(self._leaders))
            consumer.close()

    def _check(self, message: Any) -> None:
        error = None if message is None else message.error()
        if error is not None and error.fatal():
            raise client_error(error, self._topics.application)

    def _report(self, error: Any) -> None:
        """The client's own log is off. Called by `poll`, which raises what this raises."""
        _log.warning("Kafka: %s", error.str())
        if error.fatal():
            raise client_error(error, self._topics.application)

    def _assigned(self, consumer: Any, places: list[TopicPartition]) -> None:
        consumer.incremental_assign(places)
        consumer.pause(places)
        for place in places:
            if place.partition not in self._leaders:
                self._leaders[place.partition] = _Leading(self, place.partition)

    def _revoked(self, _consumer: object, places: list[TopicPartition]) -> None:
        self._end([place.partition for place in places])

    def _end(self, numbers: list[int]) -> None:
        leaders = [self._leaders.pop(number) for number in numbers if number in self._leaders]
        for leader in leaders:
            leader.leave.set()
        for leader in leaders:
            leader.thread.join(_END_S)

    def _fail(self, error: BaseException) -> None:
        self._failure = self._failure or error
        self.ended.set()

    def lead(self, number: int, leave: threading.Event) -> None:
        """Lead a partition until `leave` is set."""
        while not leave.is_set():
            try:
                self._lead_once(number, leave)
            except (ClusterError, Locked, KafkaException) as error:
                _log.warning("partition %d begins anew: %s", number, error)
                leave.wait(_RETRY_S)
            except BaseException as error:  # noqa: BLE001 - whatever ends a partition ends the program
                self._fail(error)
                return

    def _lead_once(self, number: int, leave: threading.Event) -> None:
        inbox = KafkaInbox(
            self._config, self._topics, number, self._outgoing, lambda query: self._answer(number, query)
        )
        try:
            log = KafkaLog(self._config, self._topics, number, inbox, self._current.start(number))
            try:
                self._check_history()
                self._work(number, log, inbox, leave)
            finally:
                log.close()
        finally:
            inbox.close()

    def _check_history(self) -> None:
        """Raises TargetUnsafe if the application was restored since this process began, Locked during a restore."""
        history = open_document(self._config, self._topics.application).history
        if history != self._current.history:
            what = f"the application was restored, as history {history}"
            raise TargetUnsafe(what, subject=self._topics.application, remedy="start this process again")

    def _work(self, number: int, log: KafkaLog, inbox: KafkaInbox, leave: threading.Event) -> None:
        directory = self._directory.partition(number)
        fetch_snapshot(self._config, self._topics.log, number, self._current.start(number), directory)
        worker = self._factory.worker(number, directory, log, inbox, lambda to, value: self._reply(number, to, value))
        failed, self._workers[number] = threading.Event(), worker
        worker.start(failed.set)
        while not leave.wait(_POLL_S) and not failed.is_set():
            pass
        worker.stop()
        del self._workers[number]
        if worker.failure is not None:
            raise worker.failure

    def _reply(self, number: int, to: str, value: object) -> None:
        if isinstance(value, CheckpointDocument):
            threading.Thread(target=self._reply_document, args=(number, to, value), daemon=True).start()
        else:
            self._outgoing.reply(partition_of(to, self._partitions), to, encode_reply(number, value))

    def _reply_document(self, number: int, to: str, document: CheckpointDocument) -> None:
        """With the repository that this process archives to. Its store may be frozen, and processing never waits."""
        own = msgspec.structs.replace(document, repository=self._factory.repository())
        self._outgoing.reply(partition_of(to, self._partitions), to, encode_reply(number, own))

    def _answer(self, number: int, data: bytes) -> None:
        try:
            query = msgspec.json.decode(data, type=ApplicationQuery)
        except (msgspec.MsgspecError, RecursionError):
            return
        if query.key is not None:
            _, found = read_key(self._directory.partition(number) / "state.sqlite", query.key)
            self._reply(number, query.request, StoredValue(found))
        else:
            asked = (number, query.request, self._workers[number])
            threading.Thread(target=self._reply_facts, args=asked, daemon=True).start()

    def _reply_facts(self, number: int, to: str, worker: PartitionWorker) -> None:
        self._reply(number, to, self._factory.facts([worker]))


class _Leading:
    """A thread that leads one partition."""

    def __init__(self, runtime: GroupRuntime, number: int) -> None:
        self.leave = threading.Event()
        self.thread = threading.Thread(target=runtime.lead, args=(number, self.leave), daemon=True)
        self.thread.start()


def member_id(directory: Path) -> str:
    """The id of the process that uses this directory, in every run. The caller holds its lock."""
    path = directory / MEMBER
    if not path.exists():
        part = directory / f"{MEMBER}.part"
        part.write_text(secrets.token_hex(16))
        part.replace(path)
    return path.read_text()
