"""The cluster record of a backup: topics and configs, groups and their offsets, ACLs, quotas.

One document per backup, pinned by its manifest under the role `cluster`.
"""

from collections.abc import Iterable
from dataclasses import dataclass
from typing import ClassVar, Final

import msgspec

from logkeep.errors import BackupFailed
from logkeep.kafka.client.topology import TopicPartition
from logkeep.kafka.logs.last_batch import LastBatch
from logkeep.kafka.logs.log_traits import LogTraits
from logkeep.kafka.record.deletion_times import DeletionTimes
from logkeep.kafka.record.history_names import topic_id_of
from logkeep.model.ids import StoredId
from logkeep.model.segments import Collection, LogName
from logkeep.repository.backups.manifest import LARGEST_ATTACHMENT, LogCut
from logkeep.repository.chain.documents import SourceDocument


class OpenTransaction(msgspec.Struct, frozen=True, order=True):
    """A transaction that is open at the cut of one log."""

    topic: str
    partition: int
    producer_id: int
    first_offset: int

    @property
    def log(self) -> TopicPartition:
        return TopicPartition(self.topic, self.partition)


@dataclass(frozen=True)
class ArchivedReach:
    """How far a history of a log is archived."""

    history: str
    end: int
    last_epoch: int
    """Leader epoch of the last archived batch; -1 if there is none."""
    last_end: int = -1
    """The end of that batch; -1 means `end`."""
    start: int = 0
    """The first archived offset."""
    traits: LogTraits | None = None
    """The traits of the archived batches; None if they are not known."""
    last_batch: LastBatch | None = None
    """The last archived batch; None if there is none or it is not known."""
    deletions: DeletionTimes | None = None
    """None if the times are not known: an older release, or a salvage, made the backup."""


KIND: Final = "kafka"
"""The kind of a source that is a Kafka cluster."""
WITH_TIMES: Final = 3
"""The version of a record whose logs have the times that prove deletions: an earlier release ends at it."""
ROLE = "cluster"
APPLICATION_CUT: Final = "application-cut"
"""The role of the attachment of a backup with --application: a restore of it needs records before its end."""
_encoder = msgspec.json.Encoder(order="deterministic")


class TopicRecord(msgspec.Struct, frozen=True, forbid_unknown_fields=True, omit_defaults=True):
    name: str
    id: str
    internal: bool
    partitions: int
    replication_factor: int
    configs: dict[str, str]
    """The configs that were set on the topic itself."""
    inherited: dict[str, str] = {}
    """The configs that were set on the brokers for all topics, and differ from Kafka's defaults."""


class PartitionRecord(msgspec.Struct, frozen=True, forbid_unknown_fields=True, omit_defaults=True):
    """One partition at the cut."""

    topic: str
    partition: int
    history: str
    start: int
    end: int
    last_stable: int
    """The first offset of the first transaction that is open at the cut; `end` if there is none."""
    last_epoch: int
    """Leader epoch of the last archived batch; -1 if nothing is archived."""
    last_end: int = -1
    """The end of that batch: before `end` if compaction removed what is between; -1 if it is not known."""
    unproven_from: int = -1
    """Records from here on came from a dead broker's disk, above every known high watermark; -1: none did."""
    traits: LogTraits | None = None
    """Left out if not known: a part of the log was archived by an older release."""
    last_batch: LastBatch | None = None
    """The last archived batch. Left out if nothing is archived, or by an older release."""
    deletions: DeletionTimes | None = None
    """Left out by an older release, and by a salvage."""
    folded_to: int = 0
    """Below this offset the log was folded when the backup was taken; 0, and left out: it was not."""

    @property
    def log(self) -> LogName:
        return LogName(Collection.TOPICS, self.topic, self.history, self.partition)


class CommitRecord(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    topic: str
    partition: int
    offset: int
    """The offset that a restore uses: not above the cut."""
    committed: int
    """The offset that the group committed."""
    leader_epoch: int
    metadata: str


class GroupRecord(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    name: str
    kind: str
    state: str
    protocol_type: str
    commits: tuple[CommitRecord, ...]


class AclRecord(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    resource_type: str
    resource_name: str
    pattern: str
    principal: str
    host: str
    operation: str
    permission: str


class QuotaRecord(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    entity: tuple[tuple[str, str | None], ...]
    limits: tuple[tuple[str, float], ...]


class ClusterRecord(SourceDocument, frozen=True, kw_only=True, tag="kafka-cluster"):
    limit: ClassVar[int] = LARGEST_ATTACHMENT
    """Some four million group offsets."""
    newest: ClassVar[int] = WITH_TIMES

    id: StoredId
    cluster_id: str
    topics: tuple[TopicRecord, ...]
    logs: tuple[PartitionRecord, ...]
    open_transactions: tuple[OpenTransaction, ...]
    groups: tuple[GroupRecord, ...]
    acls: tuple[AclRecord, ...] | None
    quotas: tuple[QuotaRecord, ...]
    chosen: bool | msgspec.UnsetType = msgspec.UNSET
    """True: the user chose topics, and groups without an offset in them were left out; absent otherwise."""


def check_consistent(record: ClusterRecord, cut: Iterable[LogCut]) -> None:
    """Raise BackupFailed unless every log of the cut is, by topic id and number, a partition of a recorded topic."""
    partitions = {(t.name, t.id): t.partitions for t in record.topics}
    for each in cut:
        known = partitions.get((each.log.name, topic_id_of(each.log.history)), 0)
        if each.log.partition >= known:
            raise BackupFailed("the log belongs to no topic of the record", subject=str(each.log))


def reached_in(record: ClusterRecord) -> dict[TopicPartition, ArchivedReach]:
    """How far a backup reaches: where the next one continues."""
    return reached_by(record.logs)


def reached_by(logs: Iterable[PartitionRecord]) -> dict[TopicPartition, ArchivedReach]:
    return {
        TopicPartition(r.topic, r.partition): ArchivedReach(
            r.history, r.end, r.last_epoch, r.last_end, r.start, r.traits, r.last_batch, r.deletions
        )
        for r in logs
    }


def same_cluster(one: ClusterRecord, other: ClusterRecord) -> bool:
    """Whether two records are equal but for the id, the order, the states of groups, and what older releases left out.

    The last batch belongs to the end of its log, which is compared. Times of reads do not make two records differ; the
    offsets whose deletions are unproven do. A fold does not: it is in the chain.
    """
    return _essence(one) == _essence(other)


def _essence(record: ClusterRecord) -> dict[str, object]:
    stateless = tuple(msgspec.structs.replace(g, state="") for g in record.groups)
    lists = {
        "topics": record.topics,
        "logs": tuple(msgspec.structs.replace(r, last_batch=None, deletions=None, folded_to=0) for r in record.logs),
        "unproven": tuple(
            (r.topic, r.partition, r.deletions.unproven) for r in record.logs if r.deletions and r.deletions.unproven
        ),
        "open": record.open_transactions,
        "groups": stateless,
        "acls": record.acls or (),
        "quotas": record.quotas,
    }
    encoded = {name: sorted(map(_encoder.encode, each)) for name, each in lists.items()}
    return {**encoded, "cluster": record.cluster_id, "authorizer": record.acls is not None}
