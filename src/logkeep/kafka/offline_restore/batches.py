"""The archived batches of one log up to its end, and the batches that have to follow them.

Batches are unchanged, including the one with the log start, because a broker's log may start inside a batch. A batch
that crosses an earlier end is cut, and one with buried offsets loses these records, as compaction would remove them.
Where needed, an empty batch follows (if compaction left no batch before the end, the restored log must still end
there), and an abort marker for each open transaction. The archive alone determines all bytes: every replica gets the
same.
"""

from collections.abc import Iterator

import numpy as np

from logkeep.errors import Damaged
from logkeep.formats.kafka.batches import CONTROL, TRANSACTIONAL, Batches, BatchStretch, walk
from logkeep.formats.kafka.buried_offsets import BuriedOffsets
from logkeep.formats.kafka.restore.synthetic_batches import abort_marker, cut_batch, empty_batches, thinned_batch
from logkeep.formats.kafka.transactions import Settling
from logkeep.kafka.logs.burials import read_buried
from logkeep.kafka.offline_restore.values import OfflineRestoreLog
from logkeep.model.work import Progress
from logkeep.repository.chain.commits import SourceRef
from logkeep.repository.segments.log_batches import proven_batches


class LogBatches:
    """One log, read once from start to end. The attributes are complete when `stretches` is exhausted."""

    def __init__(self, place: SourceRef, planned: OfflineRestoreLog, progress: Progress) -> None:
        self._place, self._planned, self._progress = place, planned, progress
        self._settling = Settling()
        self._epochs: dict[int, int] = {}
        self._reached = planned.start
        self._latest_ms = -1
        self.markers = self.emptied = 0
        self.cut = False

    @property
    def end(self) -> int:
        """The log end, including the markers."""
        return self._planned.end + self.markers

    def stretches(self) -> Iterator[BatchStretch]:
        """All batches of the files. Raises Damaged when the archive is damaged."""
        for stretch in self._archived():
            self._note(stretch)
            yield stretch
        closing = self._closing()
        if closing:
            yield BatchStretch(closing, walk(closing).batches)

    def _archived(self) -> Iterator[BatchStretch]:
        after, buried = -1, read_buried(self._place, self._planned.buried)
        for segment in self._planned.segments:
            for buffer, batches in proven_batches(self._place, segment, after, self._progress):
                low, high = max(segment.start, self._planned.start), min(segment.end, self._planned.end)
                own = BatchStretch(buffer, batches).touching(low, high)
                if len(own.batches):
                    after = int(own.batches.last_offsets[-1])
                    for left in (own,) if buried is None else _without(own, buried):
                        yield from self._up_to_end(left)

    def _up_to_end(self, stretch: BatchStretch) -> Iterator[BatchStretch]:
        if stretch.last < self._planned.end:
            yield stretch
            return
        whole, last = stretch.batches[:-1], stretch.batches[-1:]
        if len(whole):
            yield BatchStretch(stretch.buffer, whole)
        self.cut = True
        made = cut_batch(stretch.buffer, last, self._planned.end)
        if made:
            yield BatchStretch(made, walk(made).batches)

    def _note(self, stretch: BatchStretch) -> None:
        batches = stretch.batches
        self._settling.take(stretch.buffer, batches)
        if self._settling.problems:
            raise Damaged(f"a marker cannot be read: {self._settling.problems[0]}", subject=str(self._planned.log))
        self._reached = int(batches.last_offsets[-1]) + 1
        self._latest_ms = max(self._latest_ms, int(batches.headers["max_time_ms"].max()))
        self._remember_epochs(batches)

    def _remember_epochs(self, batches: Batches) -> None:
        """Keep the epochs of producers with an open transaction."""
        attributes = batches.headers["attributes"]
        ours = np.flatnonzero(((attributes & TRANSACTIONAL) != 0) & ((attributes & CONTROL) == 0))
        headers = batches.headers[ours]
        self._epochs |= zip(headers["producer_id"].tolist(), headers["producer_epoch"].tolist(), strict=True)
        if self._epochs:
            still = {each.producer_id for each in self._settling.settled().open}
            self._epochs = {producer: epoch for producer, epoch in self._epochs.items() if producer in still}

    def _closing(self) -> bytes:
        end = self._planned.end
        self.emptied = max(end - self._reached, 0)
        made = empty_batches(self._reached, end)
        hanging = self._settling.settled().open
        self.markers = len(hanging)
        # With the time of the latest record, a search by time finds a record and never the marker.
        markers = (
            abort_marker(end + number, each.producer_id, self._epochs[each.producer_id], self._latest_ms)
            for number, each in enumerate(hanging)
        )
        return made + b"".join(markers)


def _without(stretch: BatchStretch, buried: BuriedOffsets) -> Iterator[BatchStretch]:
    """The stretch in pieces: batches with a buried offset are built again without it, others stay unchanged."""
    buffer, batches = stretch.buffer, stretch.batches
    touched = np.flatnonzero(buried.touches(batches.base_offsets, batches.last_offsets)).tolist()
    done = 0
    for at in touched:
        if at > done:
            yield BatchStretch(buffer, batches[done:at])
        made = thinned_batch(buffer, batches[at : at + 1], buried)
        if made:
            yield BatchStretch(made, walk(made).batches)
        done = at + 1
    if done < len(batches):
        yield BatchStretch(buffer, batches[done:])
