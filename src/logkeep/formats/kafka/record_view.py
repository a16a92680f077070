"""Views of an archived log: which of its records a restore brings back, as a consumer would have read them.

A `View` is a range of offsets and the outcome of the log's transactions. Control records are never part of it. Whether
offsets are preserved does not change which records are visible, only what is sent for them (see `send_batches`).
"""

from collections.abc import Iterable, Iterator
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from logkeep.errors import Damaged
from logkeep.formats.kafka.batches import CONTROL, Batches, BatchStretch, Bytes
from logkeep.formats.kafka.buried_offsets import BuriedOffsets
from logkeep.formats.kafka.partitioner import Share
from logkeep.formats.kafka.records import Malformed, RecordColumns, decode
from logkeep.formats.kafka.transactions import SettledTransactions

Flags = npt.NDArray[np.bool_]


@dataclass(frozen=True)
class View:
    """The visible records of `[start, end)`."""

    start: int
    end: int
    settled: SettledTransactions | None = None
    """None: records of aborted and open transactions are visible too."""
    keep_offsets: bool = False
    before_ms: int | None = None
    """Records of this time or later are not visible; None: no limit."""
    share: Share | None = None
    """Only records of this share are visible; None: all."""
    buried: BuriedOffsets | None = None
    """Records at these offsets are not visible; None: there are none."""

    def touching(self, stretch: BatchStretch) -> BatchStretch:
        """The batches with an offset of the range between their first and last."""
        return stretch.touching(self.start, self.end)

    def visible(self, batches: Batches) -> Flags:
        """Whether the records of each batch are visible, at any offset."""
        if self.settled is not None:
            return self.settled.visible(batches)
        seen: Flags = (batches.headers["attributes"] & CONTROL) == 0
        return seen

    def inside(self, batches: Batches) -> Flags:
        """Whether all offsets of a batch are inside the range and its latest time is before the limit.

        With a share this is never known from the header.
        """
        if self.share is not None:
            return np.zeros(len(batches), np.bool_)
        whole: Flags = (batches.base_offsets >= self.start) & (batches.last_offsets < self.end)
        if self.buried is not None:
            whole &= ~self.buried.touches(batches.base_offsets, batches.last_offsets)
        return whole if self.before_ms is None else whole & (batches.headers["max_time_ms"] < self.before_ms)


def visible_records(stretches: Iterable[BatchStretch], view: View) -> Iterator[RecordColumns]:
    """The records of a view, in order. Each item is valid until the next.

    Give it the batches of a log in order, in stretches of any size. Raises Damaged for a batch that cannot be read.
    """
    for stretch in stretches:
        around = view.touching(stretch)
        batches = chosen(around.batches, view.visible(around.batches))
        yield from readable(around.buffer, batches, view)


def readable(buffer: Bytes, batches: Batches, view: View) -> Iterator[RecordColumns]:
    """The records in range of these visible batches. Raises Damaged."""
    for part in decode(buffer, batches) if len(batches) else ():
        if isinstance(part, Malformed):
            raise Damaged(str(part))
        within = part.within(view.start, view.end)
        if view.buried is not None:
            within = within.chosen(~view.buried.hides(within.offsets))
        if view.before_ms is not None:
            within = within.chosen(within.times_ms < view.before_ms)
        if view.share is not None:
            within = within.chosen(view.share.of(within))
        if len(within):
            yield within


def chosen(batches: Batches, which: Flags) -> Batches:
    return Batches(batches.headers[which], batches.positions[which])
