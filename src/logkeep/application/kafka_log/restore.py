"""The steps of a restore to a cluster: stage as a new history, close the application, fence its leaders, open it again.

The topics of other histories are not touched: those of the last one stay as they were, for the user to remove. What a
restore begins is in the document first, so that the next one removes what an interrupted one left. Until the document
is closed the old application is whole, and it may be started; then nothing starts until a restore has ended.
"""

import time
from collections.abc import Callable, Sequence
from contextlib import closing, suppress
from dataclasses import dataclass

import msgspec
from confluent_kafka import KafkaError, KafkaException, Producer
from confluent_kafka.admin import AdminClient

from logkeep.application.client_errors import client_answer
from logkeep.application.kafka_log.committed_records import CommittedReader
from logkeep.application.kafka_log.current_application import (
    CurrentApplication,
    HistoryDocument,
    HistoryWriter,
    RestoredStart,
    read_document,
)
from logkeep.application.kafka_log.log_topics import (
    CALL_S,
    ApplicationTopics,
    ConnectionConfig,
    delete_topics,
    ensure_topics,
    explained,
    find_topics,
)
from logkeep.application.kafka_log.restore_task import ClusterUnit, WrittenPartition, transactional_id, write_partition
from logkeep.checkpoint.restore.plan import ApplicationRestorePlan
from logkeep.checkpoint.steps import Steps
from logkeep.errors import LogkeepError, RestoreFailed, TargetUnsafe, TopicMissing
from logkeep.model.plurals import plural
from logkeep.model.work import Engine

MEMBERS_LEAVE_S = 15.0
"""The group removes a member that ended after ten seconds."""
_POLL_S = 0.5
_NO_COORDINATOR = (
    KafkaError.NOT_COORDINATOR,
    KafkaError.COORDINATOR_NOT_AVAILABLE,
    KafkaError.COORDINATOR_LOAD_IN_PROGRESS,
)


@dataclass(frozen=True)
class ClusterTarget:
    """What a cluster has of an application."""

    document: HistoryDocument
    current: CurrentApplication | None
    """None if there are no topics."""
    ends: tuple[int, ...] = ()
    """Of its logs: the position that the next record gets."""

    @property
    def empty(self) -> bool:
        return not any(self.ends)


def survey(config: ConnectionConfig, name: str) -> ClusterTarget:
    """Raises TargetUnsafe, ClusterError."""
    document = read_document(config, name)
    topics = ApplicationTopics(name, document.history)
    try:
        found = find_topics(config, topics)
    except TopicMissing:
        return ClusterTarget(document, None)
    application = document.application or found.application
    current = CurrentApplication(application, found.partitions, topics, document.starts)
    ends = tuple(_log_end(config, current, number) for number in range(found.partitions))
    return ClusterTarget(document, current, ends)


def check_target(target: ClusterTarget, plan: ApplicationRestorePlan, *, replace: bool) -> None:
    """Raises TargetUnsafe for an application that is another one, or that the user did not say to replace. Pure."""
    current = target.current
    if current is None or target.empty:
        return
    if current.application != plan.application:
        what = f"the cluster has another application of this name, {current.application}"
        raise TargetUnsafe(what, subject=plan.name, remedy="restore to another cluster, or to files")
    if current.partitions != len(plan.partitions):
        what = f"the backup has {plural(len(plan.partitions), 'partition')}, the cluster has {current.partitions}"
        raise TargetUnsafe(what, subject=plan.name, remedy="the number of partitions is fixed")
    if not replace:
        remedy = "add --replace: the old topics are kept beside the new ones"
        raise TargetUnsafe(f"it is not empty: {current.topics.log} has records", subject=plan.name, remedy=remedy)


def check_stopped(config: ConnectionConfig, name: str, seconds: float = MEMBERS_LEAVE_S) -> None:
    """Wait until the group has no members. Raises TargetUnsafe, ClusterError."""
    admin, until = AdminClient(dict(config)), time.monotonic() + seconds
    while (members := _members(admin, name)) != 0:
        if time.monotonic() > until:
            what = f"its group has {plural(members, 'active member') if members else 'no coordinator'}"
            raise TargetUnsafe(what, subject=name, remedy="stop all processes of the application first")
        time.sleep(_POLL_S)


def _members(admin: AdminClient, group: str) -> int | None:
    """None while the cluster has no coordinator for the group."""
    try:
        described = admin.describe_consumer_groups([group], request_timeout=CALL_S)[group]
        return len(client_answer(described, group, CALL_S).members)
    except KafkaException as error:
        if error.args[0].code() == KafkaError.GROUP_ID_NOT_FOUND:
            return 0
        if error.args[0].code() in _NO_COORDINATOR:
            return None
        raise explained(error, group) from error


def restore_to_cluster(
    config: ConnectionConfig,
    plan: ApplicationRestorePlan,
    history: Callable[[], int],
    units: Callable[[int], list[ClusterUnit]],
    engine: Callable[[int], Engine],
    *,
    replace: bool,
    members_leave_s: float = MEMBERS_LEAVE_S,
) -> Steps[list[WrittenPartition]]:
    """`history` reserves a number, and `units` gives the work for it. The caller holds the backups.

    Raises TargetUnsafe, Locked if another restore began meanwhile, RestoreFailed, Damaged, ClusterError.
    """
    name = plan.name
    yield "writer"
    writer = HistoryWriter(config, name)
    before = yield from _forget_staged(config, name)
    number = history()
    before = msgspec.structs.replace(before, staging=(number,))
    topics = ApplicationTopics(name, number)
    yield "staging"
    writer.write(before)
    yield "topics"
    ensure_topics(config, topics, len(plan.partitions))
    yield "stage"
    wanted = units(number)
    written = engine(sum(unit.stage.bytes for unit in wanted)).map(
        write_partition, wanted, WrittenPartition, label="restore partitions", weight=lambda unit: unit.stage.bytes
    )
    starts = [one.start for one in written]
    yield "close"
    writer.write(msgspec.structs.replace(before, closed=True))
    try:
        yield "closed"
        check_target(survey(config, name), plan, replace=replace)
        check_stopped(config, name, members_leave_s)
        yield "fence"
        _fence(config, topics, len(plan.partitions))
        check_written(config, topics, starts)
    except LogkeepError:
        with suppress(LogkeepError):
            writer.write(before)
        raise
    yield "open"
    writer.write(
        HistoryDocument(
            repository="", application=plan.application, name=name, partitions=len(plan.partitions), history=number,
            starts=tuple(starts),
        )
    )  # fmt: skip
    yield "opened"
    return written


def _forget_staged(config: ConnectionConfig, name: str) -> Steps[HistoryDocument]:
    """Remove what interrupted restores left; the document without it."""
    document = read_document(config, name)
    for number in document.staging:
        yield f"remove history {number}"
        delete_topics(config, ApplicationTopics(name, number))
    return msgspec.structs.replace(document, staging=())


def _fence(config: ConnectionConfig, topics: ApplicationTopics, partitions: int) -> None:
    """End every leader that still runs, and every attempt to write a partition. Raises ClusterError."""
    for number in range(partitions):
        for transactional in (topics.transactional_id(number), transactional_id(topics, number)):
            producer = Producer({**config, "transactional.id": transactional})
            try:
                producer.init_transactions(CALL_S)
            except KafkaException as error:
                raise explained(error, transactional) from error


def check_written(config: ConnectionConfig, topics: ApplicationTopics, starts: Sequence[RestoredStart]) -> None:
    """Raises RestoreFailed if an aborted attempt has written after the records of the one that counts."""
    for number, start in enumerate(starts):
        with closing(CommittedReader(config, topics.log, number, start.base)) as reader:
            end = reader.bounds()[1]
        if end != start.end + 1:
            what = f"the log ends at {end}, not after the marker at {start.end}"
            raise RestoreFailed(what, subject=f"{topics.log}/{number}", remedy="run the restore again")


def _log_end(config: ConnectionConfig, current: CurrentApplication, partition: int) -> int:
    with closing(CommittedReader(config, current.topics.log, partition, current.start(partition).base)) as reader:
        return reader.bounds()[1]
