"""What a cluster must have and allow before a backup can be restored into it. Pure.

What the archive does not know is reported as unknown.
"""

from collections.abc import Sequence
from typing import TYPE_CHECKING

import msgspec

from logkeep.kafka.admin.topics import config_number

if TYPE_CHECKING:
    from logkeep.kafka.record.contents import TopicReport
    from logkeep.kafka.record.documents import ClusterRecord


class RestoreNeeds(msgspec.Struct, frozen=True, kw_only=True):
    topics: int
    partitions: int
    replicas: int
    """Logs on disks: partitions times replication factor."""
    brokers: int
    """How many brokers are needed: as many as the largest replication factor."""
    disk_bytes: int
    """Bytes of the logs, unpacked, times replication factor; the brokers' indexes need more."""
    largest_batch_bytes: int | None
    """The least `max.message.bytes`; null: this archive does not know it."""
    max_message_bytes: dict[str, int]
    """The `max.message.bytes` of topics on which it was set at the source: none of their batches is larger."""
    codecs: tuple[str, ...] | None
    """Compression codecs of the producers; null: this archive does not know them."""
    features: tuple[str, ...]
    permissions: tuple[str, ...]


def restore_needs(topics: "Sequence[TopicReport]", record: "ClusterRecord") -> RestoreNeeds:
    own = [t for t in topics if not t.internal]
    names = {t.name for t in own}
    logs = [log for log in record.logs if log.topic in names]
    known = [log.traits for log in logs if log.traits is not None]
    every = len(known) == len(logs)
    return RestoreNeeds(
        topics=len(own),
        partitions=sum(t.partitions for t in own),
        replicas=sum(t.partitions * t.replication_factor for t in own),
        brokers=max((t.replication_factor for t in own), default=0),
        disk_bytes=sum(t.plain_bytes * t.replication_factor for t in own),
        largest_batch_bytes=max((t.largest_batch_bytes for t in known), default=0) if every else None,
        max_message_bytes={t.name: limit for t in own if (limit := config_number(t.configs, "max.message.bytes")) >= 0},
        codecs=tuple(sorted({codec for t in known for codec in t.codecs})) if every else None,
        features=tuple(_features(own, record, sum(t.transactional for t in known))),
        permissions=tuple(_permissions(record)),
    )


def _features(topics: "Sequence[TopicReport]", record: "ClusterRecord", transactional: int) -> list[str]:
    """What is special about these logs, and what it means for a restore."""
    compacted = sum("compact" in t.configs.get("cleanup.policy", "") for t in topics)
    append_time = sum(t.configs.get("message.timestamp.type") == "LogAppendTime" for t in topics)
    late = sum(any(log.start > 0 for log in t.logs) for t in topics)
    share = sum(g.kind == "share" for g in record.groups)
    counted = (
        (compacted, "topics", "compacted, offsets have holes"),
        (append_time, "topics", "append times, a plain producer would stamp new ones"),
        (late, "topics", "begin after offset 0"),
        (transactional, "logs", "records of transactions, with markers"),
        (len(record.open_transactions), "transactions", "open at the cut, count as aborted"),
        (share, "groups", "share groups, the target needs share.version 1"),
    )
    return [f"{things} ({number}): {what}" for number, things, what in counted if number]


def _permissions(record: "ClusterRecord") -> list[str]:
    """The permissions that a restore of all of this needs."""
    wanted = ["topics: CREATE, DESCRIBE, WRITE, READ", "topics: ALTER_CONFIGS, DESCRIBE_CONFIGS"]
    wanted.append("transactional ids logkeep-restore-*: DESCRIBE, WRITE")
    if record.groups:
        wanted.append("groups: READ")
    if record.acls:
        wanted.append("cluster: DESCRIBE, ALTER (ACLs)")
    if record.quotas:
        wanted.append("cluster: DESCRIBE_CONFIGS, ALTER_CONFIGS (quotas)")
    return wanted
