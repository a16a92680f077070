"""Which history of an application is in use on a cluster: a sealed document, the last record of `<app>.history`.

There is none before the first restore: the application has the history 0, and its topics are `<app>.log` and so on. A
restore replaces the document as its last step, and in one step. A document that is `closed` lets nothing start.
Leaders read the document after they became a member of the group and fenced the last leader, so none of them misses a
restore: it closes the application first, and looks for members and fences leaders then.
"""

import time
from contextlib import closing
from dataclasses import dataclass
from typing import Annotated, Any

import msgspec
from confluent_kafka import KafkaException, Producer

from logkeep.application.kafka_log.committed_records import CommittedReader
from logkeep.application.kafka_log.log_topics import (
    CALL_S,
    ApplicationTopics,
    ConnectionConfig,
    ensure_history_topic,
    ensure_topics,
    explained,
    find_topics,
    kafka_error,
    topic_exists,
)
from logkeep.errors import ClusterUnreachable, Locked, TargetUnsafe, TopicMissing
from logkeep.repository.chain.documents import Document, seal, unseal

_KEY, _SEEN_S = b"application", 0.05
_CLOSED = "run the same `logkeep app restore` again: it finishes it"
Number = Annotated[int, msgspec.Meta(ge=0, le=2**63 - 1)]


class RestoredStart(msgspec.Struct, frozen=True):
    """Where the log of one partition begins that a restore wrote."""

    position: Number = 0
    """Of its first record."""
    offset: Number = 0
    """Of its first record, in the topic."""
    end: Number = 0
    """The position after the last restored record, the create of the checkpoint."""
    chunks: Number = 0
    """The records before the first one have the snapshot on which the log builds."""

    @property
    def base(self) -> int:
        """What a position is larger than its offset."""
        return self.position - self.offset


class HistoryDocument(Document, frozen=True, kw_only=True, tag="application-on-kafka"):
    """`repository` stays empty: the topics belong to no repository."""

    application: Annotated[str, msgspec.Meta(pattern=r"^([0-9a-f]{32})?$")]
    """Empty in history 0: the id of the topic `<app>.log` is that of the application."""
    name: str
    partitions: Annotated[int, msgspec.Meta(ge=0, le=100_000)]
    history: Annotated[int, msgspec.Meta(ge=0, le=2**32 - 1)]
    starts: tuple[RestoredStart, ...] = ()
    """One for each partition; none in history 0."""
    staging: tuple[int, ...] = ()
    """Histories that a restore has begun and not finished: the next restore removes their topics."""
    closed: bool = False


@dataclass(frozen=True)
class CurrentApplication:
    application: str
    """32 hex digits."""
    partitions: int
    topics: ApplicationTopics
    starts: tuple[RestoredStart, ...] = ()

    @property
    def history(self) -> int:
        return self.topics.history

    def start(self, partition: int) -> RestoredStart:
        return self.starts[partition] if self.starts else RestoredStart()


def ensure_application(config: ConnectionConfig, name: str, partitions: int) -> CurrentApplication:
    """What runs now; its topics are created if it never ran. Raises TargetUnsafe, Locked, ClusterError."""
    document = open_document(config, name)
    if document.history:
        return _restored(config, document, partitions)
    topics = ApplicationTopics(name)
    return CurrentApplication(ensure_topics(config, topics, partitions).application, partitions, topics)


def find_application(config: ConnectionConfig, name: str) -> CurrentApplication:
    """Raises TopicMissing if it never ran, Locked, TargetUnsafe, ClusterError."""
    document = open_document(config, name)
    if document.history:
        return _restored(config, document, document.partitions)
    topics = ApplicationTopics(name)
    found = find_topics(config, topics)
    return CurrentApplication(found.application, found.partitions, topics)


def open_document(config: ConnectionConfig, name: str) -> HistoryDocument:
    """Raises Locked while a restore puts another history in its place, Damaged, ClusterError."""
    document = read_document(config, name)
    if document.closed:
        raise Locked("a restore of this application has not ended", subject=name, remedy=_CLOSED)
    return document


def read_document(config: ConnectionConfig, name: str) -> HistoryDocument:
    """The last one, or that of history 0. Raises Damaged, ClusterError."""
    topic = ApplicationTopics(name).histories
    last = None
    if topic_exists(config, topic):
        with closing(CommittedReader(config, topic, 0)) as reader:
            for messages in reader.messages(*reader.bounds()):
                last = messages[-1]
    if last is None:
        return HistoryDocument(repository="", application="", name=name, partitions=0, history=0)
    return unseal(last.value() or b"", HistoryDocument, topic)


def _restored(config: ConnectionConfig, document: HistoryDocument, partitions: int) -> CurrentApplication:
    topics = ApplicationTopics(document.name, document.history)
    if document.partitions != partitions:
        what = f"it was restored with {document.partitions} partitions, not {partitions}"
        raise TargetUnsafe(what, subject=document.name, remedy="the number of partitions is fixed; use another name")
    try:
        find_topics(config, topics)
    except TopicMissing as error:
        remedy = "restore the application again: the topics of its history were deleted"
        raise TopicMissing(error.what, subject=error.subject, remedy=remedy) from error
    return CurrentApplication(document.application, document.partitions, topics, document.starts)


class HistoryWriter:
    """Replaces the document. A second writer ends the first one: its transactional id is the same."""

    def __init__(self, config: ConnectionConfig, name: str) -> None:
        """Raises ClusterError."""
        topics = ApplicationTopics(name)
        ensure_history_topic(config, topics)
        self._config, self._topic, self._name = config, topics.histories, name
        made = {**config, "transactional.id": f"{name}-history", "transaction.timeout.ms": int(CALL_S * 1000)}
        self._producer: Any = Producer(made)
        try:
            self._producer.init_transactions(CALL_S)
        except KafkaException as error:
            raise explained(error, self._topic) from error

    def write(self, document: HistoryDocument) -> None:
        """Returns when every reader sees it. Raises Locked if another restore began meanwhile, ClusterError."""
        try:
            self._producer.begin_transaction()
            self._producer.produce(self._topic, seal(document), _KEY, 0)
            self._producer.commit_transaction(CALL_S)
        except (KafkaException, SystemError) as error:
            if kafka_error(error).fatal():
                what = "another restore of this application began meanwhile"
                raise Locked(what, subject=self._name, remedy="wait for its end") from error
            raise explained(error, self._topic) from error
        self._wait_until_seen(document)

    def _wait_until_seen(self, document: HistoryDocument) -> None:
        """A commit is answered before readers see what it wrote."""
        until = time.monotonic() + CALL_S
        while read_document(self._config, self._name) != document:
            if time.monotonic() > until:
                raise ClusterUnreachable("what was written is not seen", subject=self._topic)
            time.sleep(_SEEN_S)
