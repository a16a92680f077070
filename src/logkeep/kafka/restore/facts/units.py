"""Input and result values of restore tasks; all of them cross process borders.

Each target partition is in exactly one unit. A `ReplayLog` and the archive alone determine what is sent, in which
batches and under which sequence numbers. Two attempts of the same unit therefore send the same bytes, and the broker
can distinguish a repetition from a new batch.
"""

from enum import StrEnum

import msgspec

from logkeep.formats.kafka.restore.merge_batches import BatchMergeRule
from logkeep.formats.kafka.transactions import AbortedRange
from logkeep.kafka.client.settings import ClientSettings
from logkeep.kafka.client.topology import TopicPartition
from logkeep.model.segments import LogName, Segment
from logkeep.repository.chain.actions import ObjectRef
from logkeep.repository.chain.commits import SourceRef


class Offsets(StrEnum):
    """Which offsets records get in the target."""

    PRESERVE = "preserve"
    """Their original offsets; holes are filled by aborted transactions."""
    TRANSLATE = "translate"
    """Consecutive offsets from `ReplayLog.base` on."""


class RestoreIsolation(StrEnum):
    """Which records are restored."""

    COMMITTED = "committed"
    """What a read-committed consumer would have read of a log that ends at the cut, ignoring hanging transactions."""
    ALL = "all"
    """Records of aborted and open transactions too."""


class Producer(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """The idempotent producer that writes a partition; stored with the plan before the first send."""

    producer_id: int
    epoch: int
    position: int
    """The target offset of its sequence number 0. Sequence numbers count only what this producer sends, not holes."""


class SourceLog(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """A range of an archived log that goes into a partition."""

    log: LogName
    start: int
    end: int
    """Source offsets `[start, end)` are restored: the log start of the backup, and its cut or an earlier end."""
    segments: tuple[Segment, ...]
    """In order; they cover the range except for known gaps."""
    transactional: bool
    """Whether the log may hold transactions; only then are its markers read first."""
    settled_to: int = -1
    """Where only the beginning of the log is read: the offset up to which transactions are settled; -1: its end."""
    left_out: tuple[AbortedRange, ...] = ()
    """Parts of transactions that are not restored."""
    buried: tuple[ObjectRef, ...] = ()
    """Objects with offsets that are not restored, because their keys were deleted at the source."""


class ReplayLog(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """A target partition and the archived logs that are written to it."""

    sources: tuple[SourceLog, ...]
    """One log; or, where records are spread, several, whose shares follow one after the other."""
    topic: str
    topic_id: str
    """Hex."""
    partition: int
    offsets: Offsets
    base: int
    """The target offset of the first batch sent: 0 with `preserve`, otherwise the log end when it was planned."""
    producer: Producer
    transactional_id: str = ""
    """Used to fill holes; empty with `translate`."""
    isolation: RestoreIsolation = RestoreIsolation.COMMITTED
    before_ms: int | None = None
    """Records with this timestamp or a later one are left out, at any offset."""
    spread_over: int = 0
    """The number of partitions over which records are spread by their keys; this one gets its share. 0: no spread."""
    merge: BatchMergeRule | None = None
    """How small batches are merged; None: every batch is sent by itself."""

    @property
    def first(self) -> SourceLog:
        """The only source, unless records are spread."""
        return self.sources[0]

    @property
    def size_bytes(self) -> int:
        """About how many bytes are sent."""
        whole = sum(s.plain_bytes for source in self.sources for s in source.segments)
        return whole // max(self.spread_over, 1)

    def up_to(self, index: int, end: int) -> "ReplayLog":
        """A copy that ends at offset `end` of the source with this index; later sources are dropped."""
        last = self.sources[index]
        cut = msgspec.structs.replace(last, end=end, settled_to=max(last.end, last.settled_to))
        return msgspec.structs.replace(self, sources=(*self.sources[:index], cut))

    @property
    def key(self) -> TopicPartition:
        return TopicPartition(self.topic, self.partition)

    @property
    def target(self) -> str:
        return f"{self.topic}/{self.partition}"


class ReplayUnit(msgspec.Struct, frozen=True, kw_only=True):
    """What one task sends: partitions that had the same leader when this was planned."""

    place: SourceRef
    settings: ClientSettings
    logs: tuple[ReplayLog, ...]
    bytes_per_s: int = 0
    """The task's send limit; 0: no limit."""
    prove: bool = True

    @property
    def work_bytes(self) -> int:
        """The total that progress counts up to: all bytes are sent, and fetched back for the proof."""
        return sum(log.size_bytes for log in self.logs) * (2 if self.prove else 1)


class ReplayOutcome(StrEnum):
    """How the replay of one log ended. All but DONE leave the target as it is and give the reason in `detail`."""

    DONE = "done"
    FOREIGN = "foreign-writer"
    """Another client writes to the partition: it took an offset, or the log is longer than what was sent."""
    MISPLACED = "marker-misplaced"
    """An abort marker has the offset of a record: the topic must be deleted and created again."""
    FORGOTTEN = "producer-forgotten"
    """The broker has no state of our producer although it wrote: compare, then resume with a new producer."""
    REFUSED = "refused"
    """The broker refuses a batch permanently: too large, a timestamp out of limits, a policy."""
    DENIED = "denied"
    DISK_FAILED = "disk-failed"
    """A broker cannot write to its disk, and no other replica became leader while we waited."""
    DAMAGED = "archive-damaged"
    GONE = "topic-gone"


class LogProof(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """The comparison of one restored partition with the archive."""

    records: int
    archive_digest: str
    target_digest: str
    """Texts of `formats.compare.digest.Digest`."""
    first_difference: int = -1
    """The target offset of the first record that differs from the archive; -1: none differs."""
    detail: str = ""
    bytes: int = 0
    """How many bytes were fetched from the target."""
    shares: tuple[int, ...] = ()
    """Where several logs have shares in the partition: the number of records of each."""

    @property
    def good(self) -> bool:
        return self.first_difference < 0 and not self.detail


class SourceResult(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """What one archived log contributed to a partition in which several have shares."""

    log: LogName
    records: int
    runs: bytes


class LogResult(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    log: LogName
    topic: str
    partition: int
    outcome: ReplayOutcome
    detail: str = ""
    records: int = 0
    """Restored records, sent by this attempt or an earlier one."""
    fillers: int = 0
    holes: int = 0
    sent_bytes: int = 0
    """How many bytes this attempt sent."""
    end: int = 0
    """The target offset after the last record; after a failure, the log end that was read last."""
    runs: bytes = b""
    """An encoded `formats.run_map.RunMap`: source offsets to target offsets."""
    others: tuple[SourceResult, ...] = ()
    """Where several logs have shares in the partition: all except the first."""
    proof: LogProof | None = None

    @property
    def sources(self) -> tuple[SourceResult, ...]:
        """What each archived log contributed."""
        first = self.records - sum(other.records for other in self.others)
        return (SourceResult(log=self.log, records=first, runs=self.runs), *self.others)


class ReplayResult(msgspec.Struct, frozen=True, kw_only=True):
    logs: tuple[LogResult, ...]
