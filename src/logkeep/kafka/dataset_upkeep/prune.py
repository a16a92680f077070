"""Deletes the oldest segments of a dataset by the age of their records.

Of each partition, segments go from the oldest on, as long as the largest time of a record in them is older than the
limit. The last one always stays. A segment in which no record has a time stays, and so do all after it.
"""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, NamedTuple

from logkeep.formats.datasets.kafka_backup_v1.files import MAGIC, ListedSegment, partition_index_name, segment_name
from logkeep.formats.datasets.kafka_backup_v1.reader import listed_segments
from logkeep.kafka.datasets.documents import put_document, without_files
from logkeep.kafka.datasets.target import DatasetTarget
from logkeep.kafka.record.dataset_document import DatasetDocument, DatasetLog
from logkeep.kafka.record.deletion_times import rule_of
from logkeep.kafka.retention.guarantee import guarantee_of
from logkeep.kafka.retention.rules import NO_LIMIT

if TYPE_CHECKING:
    from logkeep.kafka.record.documents import TopicRecord


class DatasetSegment(NamedTuple):
    """The files of one segment."""

    first: int
    """The offset in its name."""
    names: tuple[str, ...]
    """Names of its files, in the order in which they are deleted."""
    size_bytes: int


class TopicPolicy(NamedTuple):
    """What is known of a topic's retention, and what follows."""

    keep_ms: int | None
    """Records younger than this stay; None: all stay."""
    reason: str


@dataclass(frozen=True)
class PrunedPartition:
    topic: str
    partition: int
    segments: tuple[DatasetSegment, ...]
    """Deleted, or to be deleted."""
    kept: int
    reason: str
    """Why nothing, or nothing more, is deleted."""

    @property
    def size_bytes(self) -> int:
        return sum(each.size_bytes for each in self.segments)


NO_TIME = -1
"""The largest time of a segment in which no record has a time."""


def topic_policy(
    topic: "TopicRecord | None", older_than_ms: int | None, *, configs_known: bool, by_source: bool, named: bool
) -> TopicPolicy:
    """What may be deleted of a topic. `topic`: None if the dataset does not have its configs. `configs_known`: it has
    those of the brokers too; otherwise only what is set on the topic counts. `named`: the user named it. Pure."""
    if topic is not None and rule_of(topic).compacts:
        return TopicPolicy(None, "it is compacted")
    own = topic.configs if topic is not None else {}
    if by_source and not configs_known and "retention.ms" not in own:
        return TopicPolicy(None, "the dataset does not say its retention.ms; use --older-than")
    if not configs_known and not named and "cleanup.policy" not in own:
        return TopicPolicy(None, "the dataset does not say whether it is compacted; name it with --topics")
    if topic is None or not by_source:
        return TopicPolicy(older_than_ms, "")
    keeps = guarantee_of(topic, brokers_known=configs_known)
    if not keeps.deletes or keeps.time_ms >= NO_LIMIT:
        return TopicPolicy(None, "its source keeps it forever")
    return TopicPolicy(keeps.time_ms, "")


def plan_prune(
    segments: Sequence[DatasetSegment], limit_ms: int, latest: Callable[[DatasetSegment], int]
) -> tuple[tuple[DatasetSegment, ...], str]:
    """The segments that are deleted, and why the next one stays. Pure, if `latest`, which returns the largest time in a
    segment, is."""
    for count, segment in enumerate(segments):
        if count == len(segments) - 1:
            return tuple(segments[:count]), "the last segment of a partition stays"
        found = latest(segment)
        if found == NO_TIME:
            return tuple(segments[:count]), f"no record of the segment from offset {segment.first} has a time"
        if found >= limit_ms:
            return tuple(segments[:count]), ""
    return (), ""


def delete_segments(
    target: DatasetTarget, document: DatasetDocument | None, planned: Sequence[PrunedPartition]
) -> Iterator[str]:
    """Delete the planned segments; yields the name of each deleted file. Raises Damaged for an index that cannot be
    read, and StoreDenied, before anything is changed.

    The document, and a partition index of kafka-backup-v1, forget the segments first: a run that is killed leaves
    segments that the next one deletes.
    """
    gone = [each for each in planned if each.segments]
    shorter = [(each, _shorter_index(target, each)) for each in gone]
    if gone and target.directory is None:
        target.remove(f"{gone[0].segments[0].names[0]}.none")  # StoreDenied, before an index forgets what stays
    if document is not None:
        deleted = {DatasetLog(each.topic, each.partition): each.segments[-1].first for each in gone}
        if (left := without_files(document, deleted)) != document:
            put_document(target, left)
    for each, index in shorter:
        if index is not None:
            target.put(*index)
        for name in (name for segment in each.segments for name in segment.names):
            target.remove(name)
            yield name


def _shorter_index(target: DatasetTarget, pruned: PrunedPartition) -> tuple[str, bytes] | None:
    """Name and content of the partition index without the segments that go; None if the format has none."""
    name = f"{pruned.topic}/{partition_index_name(pruned.partition)}"
    data = target.read(name)
    if data is None:
        return None
    listed, _ = listed_segments(data, pruned.partition, name)
    gone = {each.first for each in pruned.segments}
    left = [ListedSegment(segment_name(pruned.partition, s.named), s.first) for s in listed if s.named not in gone]
    return name, MAGIC + b"".join(each.encoded() for each in left)
