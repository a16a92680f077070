"""What of an archived log is wanted back, and its records as a consumer would have seen them.

A `View` is a range of offsets and what became of the log's transactions. Control records are never part of it. Whether
offsets are to be kept makes no difference to which records are seen, only to what is sent for them (see `outgoing`).
"""

from collections.abc import Iterable, Iterator
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from logkeep.errors import Damaged
from logkeep.formats.compare.log_compare import BatchStretch
from logkeep.formats.kafka.batches import CONTROL, Batches, Bytes
from logkeep.formats.kafka.partitioner import Share
from logkeep.formats.kafka.records import Malformed, RecordColumns, decode
from logkeep.formats.kafka.transactions import SettledTransactions

Flags = npt.NDArray[np.bool_]


@dataclass(frozen=True)
class View:
    """The records of `[start, end)` that count."""

    start: int
    end: int
    settled: SettledTransactions | None = None
    """None: records of aborted and open transactions count too."""
    keep_offsets: bool = False
    before_ms: int | None = None
    """Records of this time or a later one do not count, wherever they stand; None: any time will do."""
    share: Share | None = None
    """Only records with keys of this share count; None: all keys."""

    def touching(self, stretch: BatchStretch) -> BatchStretch:
        """The batches with an offset of the range between their first and last."""
        return stretch.touching(self.start, self.end)

    def visible(self, batches: Batches) -> Flags:
        """Whether the records of each batch count, wherever they lie."""
        if self.settled is not None:
            return self.settled.visible(batches)
        seen: Flags = (batches.headers["attributes"] & CONTROL) == 0
        return seen

    def inside(self, batches: Batches) -> Flags:
        """Whether no offset of a batch lies outside of the range, and no time, as its header tells it, too late.

        Where only a share counts, no header tells whether all of a batch does.
        """
        if self.share is not None:
            return np.zeros(len(batches), np.bool_)
        whole: Flags = (batches.base_offsets >= self.start) & (batches.last_offsets < self.end)
        return whole if self.before_ms is None else whole & (batches.headers["max_time_ms"] < self.before_ms)


def visible_records(stretches: Iterable[BatchStretch], view: View) -> Iterator[RecordColumns]:
    """The records of a view, in order. What one step shows is valid until the next.

    Give it the batches of a log in order, in stretches of any size. Raises Damaged for a batch that cannot be read.
    """
    for stretch in stretches:
        around = view.touching(stretch)
        batches = chosen(around.batches, view.visible(around.batches))
        yield from readable(around.buffer, batches, view)


def readable(buffer: Bytes, batches: Batches, view: View) -> Iterator[RecordColumns]:
    """The records in range of these batches, all of which count. Raises Damaged."""
    for part in decode(buffer, batches) if len(batches) else ():
        if isinstance(part, Malformed):
            raise Damaged(str(part))
        within = part.within(view.start, view.end)
        if view.before_ms is not None:
            within = within.chosen(within.times_ms < view.before_ms)
        if view.share is not None:
            within = within.chosen(view.share.of(within))
        if len(within):
            yield within


def chosen(batches: Batches, which: Flags) -> Batches:
    return Batches(batches.headers[which], batches.positions[which])
