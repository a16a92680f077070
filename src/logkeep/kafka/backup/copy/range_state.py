"""The state of the copy of one range, and how a reply changes it. Decides; reads and writes nothing.

The range owns the batches whose base offset is in `[lo, hi)`; if it is the first of its partition, also the batch that
contains the log start. That holds whatever retention does meanwhile: every batch has exactly one owner. A batch at the
front that belongs to the neighbour is skipped, and so is everything from the first batch at or after `hi` on.

A leader may name a follower in our rack. A follower serves the same batches, but it may lag: that it has no more of
them means nothing about the log. Only the leader's answers about ends, gaps and lost records count; whatever a
follower refuses is requested from the leader, which then keeps this range.
"""

from dataclasses import dataclass

import numpy as np

from logkeep.errors import SourceDamaged
from logkeep.formats.kafka.batches import Batches, Longs, WalkEnd, walk
from logkeep.kafka.backup.units import CopyOutcome, CopyRange, RangeResult
from logkeep.kafka.client.fetch import FetchedPartition, PartitionFetch
from logkeep.kafka.logs.batch_traits import last_batch_of, traits_of
from logkeep.kafka.logs.brokers import Leader
from logkeep.kafka.logs.last_batch import LastBatch
from logkeep.kafka.logs.leader_epochs import EpochRun, Gap, note_epochs
from logkeep.kafka.logs.log_traits import LogTraits
from logkeep.kafka.logs.lost_offset import Cause, LogPosition, OffsetVerdict
from logkeep.model.ranges import Range

_BEHIND_REPLIES = 6
"""Empty replies in a row that a follower may send; for each it waits half a second for bytes from its leader."""


@dataclass(frozen=True)
class TakenBatches:
    """The batches of a reply that belong to the range."""

    batches: Batches
    """Back to back in the reply's records."""
    skip: Range | None
    """Offsets before them that the range does not claim."""


class RangeCopy:
    """One range that is being copied."""

    def __init__(self, wanted: CopyRange, broker: int) -> None:
        self.range = wanted
        self.leader = Leader(broker, wanted.leader_epoch)
        self.follower: int | None = None
        """The broker that is asked in place of the leader."""
        self.leader_only = False
        self._behind = 0
        self.offset = wanted.lo
        self.outcome: CopyOutcome | None = CopyOutcome.COPIED if wanted.lo >= wanted.hi else None
        self._owned_from = 0 if wanted.first else wanted.lo
        self._last_epoch, self._last_end = wanted.last_epoch, wanted.last_end
        self._cause, self._detail, self._common_end = Cause.NONE, "", -1
        self._gaps: list[Gap] = []
        self._epochs: list[EpochRun] = []
        self._seen = (-1, -1, -1)
        self._lost_from: int | None = None
        self._owned_end = wanted.lo
        self._empty_to = -1
        self._traits = LogTraits()
        self._last_batch: LastBatch | None = None

    @property
    def key(self) -> tuple[bytes, int]:
        """A request may name a partition only once."""
        return self.range.topic_id.bytes, self.range.partition

    @property
    def broker(self) -> int:
        """The broker to ask next."""
        return self.leader.broker if self.follower is None else self.follower

    @property
    def follower_lags(self) -> bool:
        """Whether the follower has lagged for so long that the leader should be asked."""
        return self.outcome is None and self._behind >= _BEHIND_REPLIES

    def follow(self, broker: int) -> None:
        """Ask a follower, as the leader proposed."""
        self.follower, self._behind = broker, 0

    def leave_follower(self) -> None:
        """From now on ask only the leader: what a follower could not serve once, it may refuse again."""
        self.follower, self._behind, self.leader_only = None, 0, True

    @property
    def state(self) -> tuple[int, CopyOutcome | None]:
        """A value that changes with every progress: two equal ones show a stall."""
        return self.offset, self.outcome

    @property
    def position(self) -> LogPosition:
        return LogPosition(self.range.topic_id, self.offset, self._last_epoch, self._last_end)

    def wanted(self) -> PartitionFetch:
        where = self.position
        return PartitionFetch(where.topic_id, self.range.partition, where.offset, self.leader.epoch, where.last_epoch)

    def take(self, fetched: FetchedPartition) -> TakenBatches:
        """Move forward over the batches of a good reply."""
        self._seen = (fetched.high_watermark, fetched.last_stable, fetched.log_start)
        batches = self._checked(fetched)
        lags = self.follower is not None and not len(batches) and fetched.high_watermark <= self.offset
        self._behind = self._behind + 1 if lags else 0
        bases, lasts = batches.base_offsets, batches.last_offsets
        if self._reaches_into_archive(bases, lasts):
            self.end(CopyOutcome.NEW_HISTORY, Cause.OTHER_PAST)
            return TakenBatches(batches[:0], None)
        skip = self._skipped(bases, lasts)
        start = max(int(np.searchsorted(lasts, self.offset)), int(np.searchsorted(bases, self._owned_from)))
        end = int(np.searchsorted(bases, self.range.hi))
        if end < len(batches) and self.offset <= self.range.hi:
            self._empty_to = int(bases[end])
        if end:
            self.offset = max(self.offset, int(lasts[end - 1]) + 1)
            self._last_epoch, self._last_end = int(batches.headers["leader_epoch"][end - 1]), self.offset
        if start < end:
            self._owned_end = int(lasts[end - 1]) + 1
        if end < len(batches) or self.offset >= self.range.hi:
            self.outcome = CopyOutcome.COPIED
        ours = batches[start:end]
        note_epochs(self._epochs, ours)
        self._traits = self._traits.joined(traits_of(ours))
        if len(ours):
            self._last_batch = last_batch_of(ours)
        return TakenBatches(ours, skip)

    def judge(self, verdict: OffsetVerdict) -> bool:
        """Apply the verdict on a refused offset; returns whether to continue. A new history ends the range.

        After retention the log start may be beyond `hi`, and still inside a batch of this range: only after one more
        fetch is it known how much is lost.
        """
        if verdict.cause.new_history:
            self._common_end = verdict.common_end
            self.end(CopyOutcome.NEW_HISTORY, verdict.cause)
        if verdict.gap is None:
            # It is the same log. A broker that reports it as diverging was misled by what compaction removed after
            # our last batch: it serves a request without an epoch.
            self._last_epoch = -1
            return False
        if self._lost_from is None:
            self._lost_from = self.offset
        self.offset, self._last_epoch, self._last_end = verdict.gap.end, -1, -1
        return True

    def end(self, outcome: CopyOutcome, cause: Cause = Cause.NONE, detail: str = "") -> None:
        self.outcome, self._cause, self._detail = outcome, cause, detail

    def claimed_to(self) -> int:
        """The end of what this range claims: at least `hi` if all was copied, otherwise what it reached."""
        if self.outcome is CopyOutcome.COPIED:
            return max(self.range.hi, self._owned_end)
        return self.offset if self._lost_from is None else self._lost_from

    def result(self) -> RangeResult:
        high_watermark, last_stable, log_start = self._seen
        return RangeResult(
            log=self.range.log,
            lo=self.range.lo,
            hi=self.range.hi,
            outcome=self.outcome or CopyOutcome.COPIED,
            cause=self._cause,
            detail=self._detail,
            reached=self.claimed_to(),
            empty_to=self._empty_to,
            common_end=self._common_end,
            gaps=tuple(self._gaps),
            epochs=tuple(self._epochs),
            high_watermark=high_watermark,
            last_stable=last_stable,
            log_start=log_start,
            traits=self._traits,
            last_batch=self._last_batch,
        )

    def _checked(self, fetched: FetchedPartition) -> Batches:
        walked = walk(fetched.records)
        subject = f"{self.range.log} near offset {self.offset}"
        if walked.stop is WalkEnd.DAMAGED:
            raise SourceDamaged(walked.reason, subject=subject)
        if walked.stop is WalkEnd.TORN and not len(walked.batches):
            raise SourceDamaged("a broker sent half a batch", subject=subject)
        if walked.stop is WalkEnd.OLD_FORMAT:
            self.end(CopyOutcome.OLD_FORMAT, detail=walked.reason)
        return walked.batches

    def _reaches_into_archive(self, bases: Longs, lasts: Longs) -> bool:
        """Whether the next batch begins before the end of the archive, which is the end of a batch: another past."""
        here = int(np.searchsorted(lasts, self.offset))
        return here < len(bases) and bool(bases[here] < self.range.archived_end)

    def _skipped(self, bases: Longs, lasts: Longs) -> Range | None:
        """Offsets at the front that the range does not claim: lost to retention, or inside a neighbour's batch."""
        here = int(np.searchsorted(lasts, self.offset))
        inside = here < len(bases) and bool(bases[here] < self.offset)
        if inside and bases[here] < self._owned_from:
            since, self._lost_from = self._lost_from, None
            return Range(self.offset if since is None else since, int(lasts[here]) + 1)
        if self._lost_from is None or not (len(bases) or self.offset >= self.range.hi):
            return None
        since, self._lost_from = self._lost_from, None
        ours = inside and bool(bases[here] < self.range.hi)
        lost = Range(since, max(int(bases[here]), since) if ours else max(min(self.offset, self.range.hi), since))
        if len(lost):
            self._gaps.append(Gap(lost.start, lost.end))
        return lost
