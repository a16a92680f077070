"""What the cluster record keeps of a log to prove that no deletion was missed. Values; pure.

Compaction removes a tombstone, and the end marker of a transaction, `delete.retention.ms` after a cleaner met it at the
earliest. A backup that reads later than that may never see it, and its archive then restores a deleted key.
"""

from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING

import msgspec

from logkeep.kafka.client.topology import is_internal
from logkeep.model.clock_time import ClockName
from logkeep.model.ranges import Range

if TYPE_CHECKING:
    from logkeep.kafka.record.documents import ClusterRecord, PartitionRecord, TopicRecord

UNPROVEN = "deletions-unproven"
_DEFAULT_RETENTION_MS = 86_400_000
_NO_END = 2**63 - 1
_MARGIN_SHARE = 20
_LEAST_MARGIN_MS = 60_000


class DeletionTimes(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True, omit_defaults=True):
    cut_ms: int
    """When the end of the log was read, or a little earlier: what was deleted later is not below the cut."""
    clock: ClockName
    """The clock of all times here."""
    read_begin_ms: int = -1
    read_end_ms: int = -1
    """The smallest and the largest time in all receipts of this log that the backup used; -1: none, or not known."""
    retention_ms: int
    """The smallest `delete.retention.ms` known since the backup before."""
    unproven_from: int = -1
    unproven_to: int = -1
    """Deletions in these offsets may have been missed; -1: none."""
    buried: int = 0
    """Archived offsets of this log that the chain buries in this backup: fewer in the chain mean that it lost some."""
    host: str = ""
    """The machine whose own clock it is; empty for the cluster's clock."""

    @property
    def unproven(self) -> Range | None:
        return Range(self.unproven_from, self.unproven_to) if self.unproven_from >= 0 else None


@dataclass(frozen=True)
class CleanupRule:
    """How a topic is cleaned."""

    compacts: bool
    retention_ms: int
    """How long brokers keep a tombstone at least."""


def cleanup_rule(own: Mapping[str, str], inherited: Mapping[str, str]) -> CleanupRule:
    """The rule that follows from the configs of a topic, and from those of the brokers."""
    configs = {**inherited, **own}
    retention = configs.get("delete.retention.ms", "")
    return CleanupRule(
        "compact" in configs.get("cleanup.policy", "delete").split(","),
        min(int(retention), _NO_END) if retention.isdecimal() else _DEFAULT_RETENTION_MS,
    )


def rule_of(topic: "TopicRecord") -> CleanupRule:
    return cleanup_rule(topic.configs, topic.inherited)


def margin_ms(retention_ms: int) -> int:
    """How long before the end of the retention everything must have been read."""
    return max(retention_ms // _MARGIN_SHARE, _LEAST_MARGIN_MS)


def least_left_s(
    logs: "Iterable[PartitionRecord]", compacted: Collection[str], now_ms: int, seen_ms: int = -1
) -> float | None:
    """How many seconds are left to read new offsets of these topics within the time bound; below 0: it has passed.

    `seen_ms`: when a run last found that nothing was new. None: no log of these topics has times.
    """
    times = [log.deletions for log in logs if log.topic in compacted and log.deletions is not None]
    left = (each.retention_ms - margin_ms(each.retention_ms) - (now_ms - max(each.cut_ms, seen_ms)) for each in times)
    return min(left) / 1000 if times else None


def compacted_topics_of(record: "ClusterRecord") -> set[str]:
    """The compacted topics whose deletions are proven: not Kafka's own, which are archived for their history."""
    return {t.name for t in record.topics if rule_of(t).compacts and not is_internal(t.name, t.internal)}
