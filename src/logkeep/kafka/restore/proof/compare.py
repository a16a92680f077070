"""Proof of one restored partition: its records are fetched back and compared with the archive.

A consumer must read the same records in the same order from the target as from the archived log; with preserved
offsets also at the same offsets and from the same log start. Holes are filled by aborted transactions, so
transactional batches of a target with preserved offsets are not records, provided that none was committed.
Where the source showed the append time, a restored topic shows it as the record's own time: the number of such records
is in the archive's digest and is not a deviation.

A partition that has shares of several logs is compared with exactly these shares, selected by keys again.

When anything differs, both are read again from the last place that agrees, to name the first record that does.
"""

import time
from collections.abc import Iterator
from contextlib import ExitStack, closing
from dataclasses import dataclass
from functools import partial
from itertools import chain

import msgspec

from logkeep.errors import Damaged, NotAuthorised
from logkeep.formats.compare.first_difference import Deviation, first_deviation
from logkeep.formats.compare.record_compare import LogSide, PairedComparison, StreamComparison
from logkeep.formats.kafka.records import RecordColumns
from logkeep.formats.kafka.transactions import SettledTransactions
from logkeep.kafka.client.retry import Pause
from logkeep.kafka.logs.brokers import Brokers
from logkeep.kafka.logs.live import read_ahead
from logkeep.kafka.restore.facts.log_views import archived_batches, share_of, view_of
from logkeep.kafka.restore.facts.units import LogProof, Offsets, ReplayLog
from logkeep.kafka.restore.proof.target_log import Refuted, TargetLog
from logkeep.model.work import Progress
from logkeep.repository.chain.commits import SourceRef


def prove(
    log: ReplayLog,
    place: SourceRef,
    brokers: Brokers,
    settled: SettledTransactions | None,
    end: int,
    progress: Progress,
    pause: Pause = time.sleep,
    *,
    finished: bool = True,
    log_start: int | None = None,
) -> LogProof:
    """Compare the target, up to its offset `end`, with the archive. The result says what differs.

    A log that is not `finished` may still have fillers before its first record. `log_start`: the target's, if it is
    known already.

    Raises Damaged or another StoreError when the archive cannot be read, ClusterUnreachable or ClusterNotReady when
    the cluster does not answer.
    """
    target = TargetLog(log, brokers, end, progress, pause, log_start)
    return _Proof(log, place, settled, target, finished).run()


@dataclass(frozen=True)
class _Proof:
    log: ReplayLog
    place: SourceRef
    settled: SettledTransactions | None
    target: TargetLog
    finished: bool

    def run(self) -> LogProof:
        with ExitStack() as stack:
            twins = self._twins(stack)
            found = self._find_deviation(twins)
        return LogProof(
            records=twins.left_digest.records if twins.complete else 0,
            archive_digest=str(twins.left_digest) if twins.complete else "",
            target_digest=str(twins.right_digest) if twins.complete else "",
            first_difference=found.offset if found else -1,
            detail=found.what if found else "",
            bytes=self.target.fetched_bytes,
            shares=twins.shares if isinstance(twins, StreamComparison) else (),
        )

    def _twins(self, stack: ExitStack) -> PairedComparison | StreamComparison:
        if not self.log.spread_over:
            return PairedComparison(self._archive(stack), self.target.side(stack))
        return StreamComparison(
            [partial(share_of, self.place, self.log, source) for source in self.log.sources],
            lambda: _records(self.target.side(stack)),
        )

    def _find_deviation(self, twins: PairedComparison | StreamComparison) -> Deviation | None:
        """The first difference between the target and the archive."""
        try:
            return (None if twins.run().same else self._locate(*twins.border)) or self._check_start()
        except Refuted as error:
            return error.deviation
        except NotAuthorised as error:
            return Deviation(self.target.start, f"the target cannot be read back: {error.what}")
        except Damaged as error:
            if error.subject != self.target.name:
                raise
            return Deviation(self.target.start, f"the target holds a batch that cannot be read: {error.what}")

    def _archive(self, stack: ExitStack, start: int = -1) -> LogSide:
        """The archived records that the target should hold, from an offset on."""
        source = self.log.first if start < 0 else msgspec.structs.replace(self.log.first, start=start)
        view = view_of(self.place, self.log, source, self.settled)
        batches = stack.enter_context(closing(read_ahead(archived_batches(self.place, source), "archive")))
        return LogSide(batches, view, view.visible, f"the archive of {source.log}")

    def _archived(self, stack: ExitStack, start: int) -> Iterator[RecordColumns]:
        """The same records one by one."""
        if self.log.spread_over:
            return chain.from_iterable(share_of(self.place, self.log, source) for source in self.log.sources)
        return _records(self._archive(stack, start))

    def _locate(self, archived: int, restored: int) -> Deviation:
        """Search for the first record that differs, from these offsets on."""
        with ExitStack() as stack:
            ours, theirs = self._archived(stack, archived), _records(self.target.side(stack, restored))
            kept = self.log.offsets is Offsets.PRESERVE
            found = first_deviation(ours, theirs, self.target.end, keep_offsets=kept)
        return found or Deviation(self.target.start, "the target changed while it was compared: compare it again")

    def _check_start(self) -> Deviation | None:
        """Check the log start. Fetched records do not show it: a fetch returns the deleted part of the first batch."""
        if not self.finished:
            return None
        kept, first, begins = self.log.offsets is Offsets.PRESERVE, self.target.start, self.target.begins()
        if begins == first or (not kept and (begins < first or first == self.target.end)):
            return None
        return Deviation(begins, f"the log begins at offset {begins} instead of {first}")


def _records(side: LogSide) -> Iterator[RecordColumns]:
    return side.records(side.parts())
