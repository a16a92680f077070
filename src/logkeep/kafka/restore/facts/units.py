"""What a restore task is given, and what it says when it is done. Values only, all of them pickled or stored.

Each target partition is in exactly one unit. What is sent, in which batches and under which sequence numbers follows
from a `ReplayLog` and the archive alone: two attempts of the same unit send the same bytes, so that the broker can
tell a repetition from something new.
"""

from enum import StrEnum

import msgspec

from logkeep.kafka.client.settings import ClientSettings
from logkeep.model.segments import LogName, Segment
from logkeep.repository.chain.commits import SourceRef


class Offsets(StrEnum):
    """Where records stand in the target."""

    PRESERVE = "preserve"
    """At their own offsets; holes are filled by aborted transactions."""
    TRANSLATE = "translate"
    """One after the other behind `ReplayLog.base`."""


class RestoreIsolation(StrEnum):
    """Which records come back."""

    COMMITTED = "committed"
    """What a read-committed consumer would have seen of a log that ends at the cut, hanging transactions aside."""
    ALL = "all"
    """Aborted and open transactions too."""


class Producer(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """Under which idempotent producer a partition is written; stored with the plan before the first send."""

    producer_id: int
    epoch: int
    position: int
    """The target offset at which its sequence number 0 stands. With holes, only what is sent by it is counted."""


class SourceLog(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """One archived log of several that go into a partition; fields as those of `ReplayLog`."""

    log: LogName
    start: int
    end: int
    segments: tuple[Segment, ...]
    transactional: bool
    settled_to: int = -1


class ReplayLog(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """One archived log and the partition it is put into."""

    log: LogName
    start: int
    end: int
    """Source offsets `[start, end)` come back: the log start of the backup, and its cut or an earlier end."""
    segments: tuple[Segment, ...]
    """In order; they tile the range, but for known gaps."""
    transactional: bool
    """Whether the log may hold transactions; only then are its markers looked for first."""
    settled_to: int = -1
    """Up to which offset they are decided, where only the beginning of the log is looked at; -1: up to its end."""
    topic: str
    topic_id: str
    """Hex."""
    partition: int
    offsets: Offsets
    base: int
    """The target offset of the first thing that is sent: 0 with `preserve`, the log end of the plan otherwise."""
    producer: Producer
    transactional_id: str = ""
    """Under which holes are filled; empty with `translate`."""
    isolation: RestoreIsolation = RestoreIsolation.COMMITTED
    before_ms: int | None = None
    """Records of this time or a later one stay out, wherever they stand."""
    spread_over: int = 0
    """Over so many partitions records are spread by their keys, and this one gets its share; 0: all of them."""
    others: tuple[SourceLog, ...] = ()
    """Logs whose shares follow, one after the other; only where records are spread."""

    @property
    def size_bytes(self) -> int:
        """About what is sent."""
        whole = sum(s.plain_bytes for source in self.sources for s in source.segments)
        return whole // max(self.spread_over, 1)

    @property
    def sources(self) -> "tuple[ReplayLog, ...]":
        """Each archived log as if it were the only one."""
        alone = msgspec.structs.replace(self, others=()) if self.others else self
        return (alone, *(msgspec.structs.replace(alone, **msgspec.structs.asdict(other)) for other in self.others))

    def up_to(self, index: int, end: int) -> "ReplayLog":
        """The same with only the logs up to this one, which ends here."""
        kept = [source_of(log) for log in self.sources[: index + 1]]
        kept[index] = msgspec.structs.replace(kept[index], end=end, settled_to=kept[index].end)
        return msgspec.structs.replace(self, **msgspec.structs.asdict(kept[0]), others=tuple(kept[1:]))

    @property
    def target(self) -> str:
        return f"{self.topic}/{self.partition}"


def source_of(log: ReplayLog) -> SourceLog:
    """The first of its logs."""
    return SourceLog(
        log=log.log,
        start=log.start,
        end=log.end,
        segments=log.segments,
        transactional=log.transactional,
        settled_to=log.settled_to,
    )


class ReplayUnit(msgspec.Struct, frozen=True, kw_only=True):
    """What one task sends: partitions that had one leader when this was planned."""

    place: SourceRef
    settings: ClientSettings
    logs: tuple[ReplayLog, ...]
    bytes_per_s: int = 0
    """What this task may send; 0: no limit."""
    prove: bool = True

    @property
    def work_bytes(self) -> int:
        """What progress will count up to: everything is sent, and fetched back for the proof."""
        return sum(log.size_bytes for log in self.logs) * (2 if self.prove else 1)


class ReplayOutcome(StrEnum):
    """How the replay of one log ended. All but DONE leave the target as it is, and say why in `detail`."""

    DONE = "done"
    FOREIGN = "foreign-writer"
    """Somebody else writes there: an offset was taken, or the log is longer than what was sent."""
    MISPLACED = "marker-misplaced"
    """An abort marker stands where a record belongs: the topic must be deleted and made again."""
    FORGOTTEN = "producer-forgotten"
    """The broker does not remember our producer although it wrote: compare, then go on under a new one."""
    REFUSED = "refused"
    """The broker refuses a batch for good: too large, a time out of limits, a policy."""
    DENIED = "denied"
    DISK_FAILED = "disk-failed"
    """A broker cannot write to its disk, and in all the time that we waited nobody took over."""
    DAMAGED = "archive-damaged"
    GONE = "topic-gone"


class LogProof(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """The comparison of one restored partition with the archive."""

    records: int
    archive_digest: str
    target_digest: str
    """As `formats.digest.Digest` writes them."""
    first_difference: int = -1
    """The target offset of the first record that is not the archived one; -1: there is none."""
    detail: str = ""
    bytes: int = 0
    """Fetched from the target."""
    shares: tuple[int, ...] = ()
    """Where several logs have shares in the partition: how many records of each."""

    @property
    def good(self) -> bool:
        return self.first_difference < 0 and not self.detail


class SourceResult(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """What of one archived log came into a partition that several have shares in."""

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
    """That came back, whoever sent them: this attempt or an earlier one."""
    fillers: int = 0
    holes: int = 0
    sent_bytes: int = 0
    """By this attempt."""
    end: int = 0
    """The target offset after the last one; of a log in trouble, where it was last seen to end."""
    runs: bytes = b""
    """A `formats.run_map.RunMap`, encoded: which source offset stands where."""
    others: tuple[SourceResult, ...] = ()
    """Where several logs have shares in the partition: all but the first of them."""
    proof: LogProof | None = None

    @property
    def sources(self) -> tuple[SourceResult, ...]:
        """What came from where."""
        first = self.records - sum(other.records for other in self.others)
        return (SourceResult(log=self.log, records=first, runs=self.runs), *self.others)


class ReplayResult(msgspec.Struct, frozen=True, kw_only=True):
    logs: tuple[LogResult, ...]
