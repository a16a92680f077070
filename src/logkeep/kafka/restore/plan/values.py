"""The plan of a restore as a value: what the user asked for, and what is stored before anything is changed. Pure.

A `RestorePlan` and the archive determine all bytes that are sent. A resumed restore reads the stored plan and decides
nothing again.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property

import msgspec

from logkeep.errors import LogkeepError
from logkeep.formats.kafka.restore.merge_batches import BatchMergeRule
from logkeep.formats.kafka.transactions import AbortedRange
from logkeep.kafka.admin.topics import config_number
from logkeep.kafka.client.topology import TopicPartition
from logkeep.kafka.restore.facts.units import Offsets, RestoreIsolation
from logkeep.kafka.restore.plan.topics import TopicPlan
from logkeep.kafka.restore.plan.torn_transactions import TearReport, TornTransactions
from logkeep.model.findings import Finding
from logkeep.model.segments import LogName
from logkeep.repository.chain.actions import ObjectRef
from logkeep.repository.chain.fold import Burial, FoldedLog

PARTS = ("data", "configs", "groups", "acls", "quotas")
DEFAULT_PARTS = ("data", "configs", "groups")


@dataclass(frozen=True)
class PlanOptions:
    """What the user asked for, apart from the selection of logs."""

    offsets: Offsets | None = None
    """Whether offsets are kept; None: they are kept if that is fast enough."""
    isolation: RestoreIsolation = RestoreIsolation.COMMITTED
    parts: tuple[str, ...] = DEFAULT_PARTS
    groups: tuple[str, ...] = ()
    into_existing: bool = False
    replication_factor: int | None = None
    prove: bool = True
    until_ms: int | None = None
    by_record: bool = False
    """Leave out every record from that time on, instead of ending each log before the first one."""
    keep_all: bool = False
    """Leave retention off after the restore."""
    whole_transactions: bool = False
    """Leave out what is restored of a transaction that the cut tears, or possibly tears."""


class PlannedLog(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """One archived log and its target partition."""

    log: LogName
    start: int
    end: int
    transactional: bool
    topic: str
    partition: int
    base: int
    records: int
    """Upper bound: aborted transactions are counted. Where records are spread, an equal part."""
    bytes: int
    before_ms: int | None = None
    """Records with this time or a later one are left out, at any offset."""
    spread_over: int = 0
    """The number of partitions over which records are spread by their keys; this one gets a share. 0: no spread."""
    left_out: tuple[AbortedRange, ...] | msgspec.UnsetType = msgspec.UNSET
    """Parts of transactions that are not restored, because the cut tears them. Absent: none."""
    buried: tuple[ObjectRef, ...] | msgspec.UnsetType = msgspec.UNSET
    """Objects with offsets that are not restored, because their keys were deleted at the source. Absent: none."""
    merge: BatchMergeRule | msgspec.UnsetType = msgspec.UNSET
    """How small batches are merged; absent in plans of earlier releases, which sent every batch by itself."""
    fold: int | msgspec.UnsetType = msgspec.UNSET
    """The generation of the chain that folded it last. Absent: it was not folded."""
    settled_to: int | msgspec.UnsetType = msgspec.UNSET
    """The offset up to which transactions count as they ended. Absent: the end."""

    @property
    def target(self) -> TopicPartition:
        return TopicPartition(self.topic, self.partition)


class RestorePlan(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True, dict=True):
    """Stored as the body of the restore's plan document."""

    cluster_id: str
    """The target's cluster id."""
    offsets: Offsets
    why: str
    """The reason why offsets are kept or not."""
    isolation: RestoreIsolation
    prove: bool
    parts: tuple[str, ...]
    groups: tuple[str, ...]
    """Patterns; empty: all."""
    names: dict[str, str]
    """Source topic to target topic."""
    topics: tuple[TopicPlan, ...]
    logs: tuple[PlannedLog, ...]
    """For a repartitioned topic, one for each pair of an archived log and a partition; those of one partition are in
    the order of their records in it."""
    torn: tuple[TornTransactions, ...] | msgspec.UnsetType = msgspec.UNSET
    """Transactions that the cut tears. Absent: none, or there is no point in time."""
    whole_transactions: bool | msgspec.UnsetType = msgspec.UNSET
    """Present, and true: these transactions are left out everywhere."""

    @property
    def targets(self) -> tuple[TopicPartition, ...]:
        """All partitions that are written to, without duplicates."""
        return tuple(dict.fromkeys(log.target for log in self.logs))

    @cached_property
    def _limits(self) -> dict[str, int]:
        """`max.message.bytes` of each target topic while it is restored; 0: not known."""
        return {topic.name: max(config_number(topic.while_restoring, "max.message.bytes"), 0) for topic in self.topics}

    def merge_rule(self, log: PlannedLog) -> BatchMergeRule | None:
        """How small batches of a log are merged: never to more than its topic takes."""
        limit = self._limits.get(log.topic, 0)
        if not log.merge or not limit:
            return None
        return msgspec.structs.replace(log.merge, most_bytes=min(log.merge.most_bytes, limit))

    @property
    def merges(self) -> bool:
        """Whether an earlier release would send other batches."""
        return any(log.merge for log in self.logs)

    @property
    def buries(self) -> bool:
        """Whether an earlier release would bring deleted keys back."""
        return any(log.buried for log in self.logs)

    @property
    def records(self) -> int:
        return sum(log.records for log in self.logs)

    @property
    def bytes(self) -> int:
        return sum(log.bytes for log in self.logs)


@dataclass(frozen=True)
class CheckedPlan:
    """A plan with its findings and refusals."""

    plan: RestorePlan
    seconds: float
    """Expected duration."""
    findings: tuple[Finding, ...]
    refusals: tuple[LogkeepError, ...]
    """Why it must not start; empty if it may."""


def with_tears(plan: RestorePlan, tears: TearReport, *, whole: bool) -> RestorePlan:
    """The plan with the transactions that it tears. With `whole`, nothing of them is restored."""
    if not tears.torn or not plan.logs:
        return plan
    if not whole:
        return msgspec.structs.replace(plan, torn=tears.torn)
    logs = [
        msgspec.structs.replace(log, left_out=tears.ranges[log.log]) if log.log in tears.ranges else log
        for log in plan.logs
    ]
    return msgspec.structs.replace(plan, torn=tears.torn, whole_transactions=True, logs=tuple(logs))


def with_buried(plan: RestorePlan, burials: Mapping[LogName, Sequence[Burial]]) -> RestorePlan:
    """The plan without records that the chain buries in this backup."""
    logs = [
        msgspec.structs.replace(log, buried=tuple(b.object for b in burials[log.log])) if log.log in burials else log
        for log in plan.logs
    ]
    return msgspec.structs.replace(plan, logs=tuple(logs)) if burials else plan


def with_folds(plan: RestorePlan, folds: Mapping[LogName, FoldedLog]) -> RestorePlan:
    """The plan with the fold of each log that it restores: after another one, it cannot be resumed."""
    logs = [
        msgspec.structs.replace(log, fold=folds[log.log].generation) if log.log in folds else log for log in plan.logs
    ]
    return msgspec.structs.replace(plan, logs=tuple(logs)) if folds else plan
