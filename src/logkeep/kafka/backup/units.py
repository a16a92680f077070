"""Units of copying and their results: values that cross process borders.

A unit is a list of ranges of partitions that one broker leads. It has everything that a task needs, is picklable, and
holds no secret: `Brokers` knows where to read those.
"""

from dataclasses import dataclass, field
from enum import StrEnum
from typing import Protocol
from uuid import UUID

import msgspec

from logkeep.kafka.client.fetch import FetchLimits
from logkeep.kafka.logs.brokers import Brokers
from logkeep.kafka.logs.last_batch import LastBatch
from logkeep.kafka.logs.leader_epochs import EpochRun, Gap
from logkeep.kafka.logs.log_traits import LogTraits
from logkeep.kafka.logs.lost_offset import Cause
from logkeep.kafka.logs.read_times import ReadTimes
from logkeep.model.segments import Codec, Collection, LogName, Segment
from logkeep.repository.backups.catch_ups import CatchUpReceipt, CatchUpStep, put_catch_up_receipt
from logkeep.repository.backups.journal import UnitReceipt, put_receipt
from logkeep.repository.chain.commits import SourceRef

DEFAULT_SEGMENT_BYTES = 256 << 20


@dataclass(frozen=True)
class CopyRange:
    """Offsets `[lo, hi)` of one partition in one history."""

    topic: str
    topic_id: UUID
    partition: int
    lo: int
    hi: int
    history: str
    """The name under which the log is archived: the topic id, with a suffix after a truncation."""
    leader_epoch: int = -1
    last_epoch: int = -1
    """The leader epoch of the last archived batch before `lo`; -1 if nothing is archived or it is not known."""
    last_end: int = -1
    """The end of that batch: before `lo` if compaction removed what is between; -1 means `lo`."""
    first: bool = False
    """Whether the range owns the batch that contains `lo` even if it begins earlier: true at the log start."""
    archived_end: int = -1
    """The end of what is archived before `lo`, which is always the end of a batch; -1 if `lo` continues no archive."""
    size_bytes: int = 0
    """About how much there is to copy: for the order of units and for reserving space."""

    @property
    def log(self) -> LogName:
        return LogName(Collection.TOPICS, self.topic, self.history, self.partition)


@dataclass(frozen=True)
class CopyUnit:
    """What one task copies."""

    name: str
    """Also the name of the receipt; the same plan gives the same name."""
    place: SourceRef
    backup: int
    run: str
    broker: int
    ranges: tuple[CopyRange, ...]
    brokers: Brokers
    segment_bytes: int = DEFAULT_SEGMENT_BYTES
    limits: FetchLimits = field(default_factory=FetchLimits)
    codec: Codec = Codec.NONE
    """How segments are stored."""
    catch_up: str = ""
    """The catch-up that it is a part of; empty: it is a part of the backup."""

    @property
    def size_bytes(self) -> int:
        return sum(r.size_bytes for r in self.ranges)


class CopyOutcome(StrEnum):
    """How the copy of one range ended."""

    COPIED = "copied"
    """Everything that was there up to `hi`. There may be gaps."""
    NEW_HISTORY = "new-history"
    DENIED = "denied"
    OLD_FORMAT = "old-format"


class RangeResult(msgspec.Struct, frozen=True, kw_only=True):
    log: LogName
    lo: int
    hi: int
    outcome: CopyOutcome
    cause: Cause = Cause.NONE
    detail: str = ""
    reached: int
    """The offset after the last one that the range claims: at least `hi` if everything was copied."""
    empty_to: int = -1
    """Nothing was between `reached` and this offset when the range was read; -1 if that is not known."""
    common_end: int = -1
    """With a new history: the offset up to which the old one is still valid, if that is known."""
    gaps: tuple[Gap, ...] = ()
    """What retention removed while this range was read; `claims.join` finally decides what is missing."""
    epochs: tuple[EpochRun, ...] = ()
    high_watermark: int = -1
    last_stable: int = -1
    log_start: int = -1
    """High watermark, last stable offset and log start in the last good reply; -1 if there was none."""
    traits: LogTraits | None = None
    """The traits of the batches that were copied; None in receipts of older releases."""
    last_batch: LastBatch | None = None
    """The last batch that was copied; None if there was none, and in receipts of older releases."""
    times: ReadTimes | None = None
    """When the unit's ranges were read; None if that is not known, and in receipts of older releases."""
    retention_ms: int = -1
    """For ranges of a catch-up, the topic's `delete.retention.ms` at that time; -1: that of the backup counts."""


class CopyResult(msgspec.Struct, frozen=True, kw_only=True):
    """The segments of all ranges of a unit, before their claims are joined with those of other units."""

    unit: str
    ranges: tuple[RangeResult, ...]
    segments: tuple[Segment, ...]

    @property
    def complete(self) -> bool:
        return all(r.outcome is CopyOutcome.COPIED for r in self.ranges)


class NamedUnit(Protocol):
    """What a receipt needs of its unit, whether that copies from a broker or from a disk."""

    @property
    def name(self) -> str: ...
    @property
    def place(self) -> SourceRef: ...
    @property
    def backup(self) -> int: ...
    @property
    def run(self) -> str: ...


def receipt_of(unit: NamedUnit, result: CopyResult) -> UnitReceipt:
    """The receipt of a finished unit: enough to rebuild its result in another process."""
    return UnitReceipt(
        repository=unit.place.repository,
        source=unit.place.source,
        id=unit.backup,
        run=unit.run,
        unit=unit.name,
        segments=result.segments,
        note=msgspec.json.encode(result.ranges).decode(),
    )


def put_copied(unit: CopyUnit, result: CopyResult, token: str) -> None:
    """Store the receipt of a finished unit, in the journal of its backup or of its catch-up."""
    receipt = receipt_of(unit, result)
    if not unit.catch_up:
        put_receipt(unit.place, receipt, token)
        return
    copied = CatchUpReceipt(
        repository=receipt.repository,
        source=receipt.source,
        catch_up=unit.catch_up,
        step=CatchUpStep.COPIED,
        run=receipt.run,
        unit=receipt.unit,
        segments=receipt.segments,
        note=receipt.note,
    )
    put_catch_up_receipt(unit.place, copied, token)


def result_of(receipt: UnitReceipt | CatchUpReceipt) -> CopyResult:
    """The result of a unit that an earlier run finished. Raises msgspec.ValidationError for a foreign note."""
    ranges = msgspec.json.decode(receipt.note, type=tuple[RangeResult, ...])
    return CopyResult(unit=receipt.unit, ranges=ranges, segments=receipt.segments)
