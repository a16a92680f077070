"""Checks that everything in a live log is archived: compares batches first, then records.

A batch with equal bytes proves its records at once. One that differs was rewritten by compaction, which keeps offsets,
so each of its records must be archived at its offset with the same time, key, value and headers. Records that are
archived and no longer live are ignored: retention and compaction remove records.
"""

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from logkeep.formats.compare.digest import SMALLEST
from logkeep.formats.compare.log_compare_kernels import NOT_THERE, OTHER, SAME, match, same_batches
from logkeep.formats.kafka.batches import CONTROL, Batches, BatchStretch, Longs, walk
from logkeep.formats.kafka.records import Malformed, RecordColumns, decode


def warm() -> None:
    """Compile and store every kernel before parallel processes need it."""
    one = BatchStretch(SMALLEST, walk(SMALLEST).batches)
    other = BatchStretch(SMALLEST[:-5] + b"\2" + SMALLEST[-4:], one.batches)  # one millisecond later
    LogComparison().compare(one, one, 0, 1)
    LogComparison().compare(one, other, 0, 1)


END = BatchStretch(b"", walk(b"").batches)
"""What follows the last batch."""


@dataclass
class LogComparison:
    """The result of a comparison. Control records must be there too, but are not counted."""

    identical: int = 0
    """Records in batches with equal bytes."""
    equal: int = 0
    """Equal records in batches that differ."""
    missing: int = 0
    differing: int = 0
    first_missing: int = -1
    first_differing: int = -1
    unreadable: str = ""
    """The first live batch that differs and cannot be decoded."""

    def compare(self, live: BatchStretch, archived: BatchStretch, start: int, end: int) -> None:
        """Search every live record of `[start, end)` in the archived batches of the same offsets."""
        live, archived = live.touching(start, end), archived.touching(start, end)
        same = _identical(live, archived)
        for part in decode(live.buffer, _chosen(live.batches, ~same)):
            if isinstance(part, Malformed):
                self.unreadable = self.unreadable or str(part)
            else:
                self._count(part.within(start, end), archived)
        self.identical += _records(live, same, start, end)

    def _count(self, live: RecordColumns, archived: BatchStretch) -> None:
        if not len(live):
            return
        found = _match_records(live, archived)
        counted = ~live.control
        self.equal += int(np.count_nonzero((found == SAME) & counted))
        missing, differing = live.offsets[found == NOT_THERE], live.offsets[found == OTHER]
        if self.first_missing < 0 and len(missing):
            self.first_missing = int(missing[0])
        if self.first_differing < 0 and len(differing):
            self.first_differing = int(differing[0])
        self.missing, self.differing = self.missing + len(missing), self.differing + len(differing)


def _identical(live: BatchStretch, archived: BatchStretch) -> npt.NDArray[np.bool_]:
    """For each live batch, whether the same bytes are archived at its offset."""
    bases = archived.batches.base_offsets
    if not len(bases):
        return np.zeros(len(live.batches), np.bool_)
    index = np.minimum(np.searchsorted(bases, live.batches.base_offsets), len(bases) - 1)
    fits = (bases[index] == live.batches.base_offsets) & (archived.batches.sizes[index] == live.batches.sizes)
    there: Longs = np.where(fits, archived.batches.positions[index], -1)
    same = np.zeros(len(live.batches), np.uint8)
    same_batches(_plain(live), live.batches.positions, _plain(archived), there, live.batches.sizes, same)
    return same.astype(np.bool_)


def _records(live: BatchStretch, same: npt.NDArray[np.bool_], start: int, end: int) -> int:
    """Records of `[start, end)` in those batches. Only a batch that reaches over a border has to be decoded."""
    batches = _chosen(live.batches, same & ((live.batches.headers["attributes"] & CONTROL) == 0))
    inside = (batches.base_offsets >= start) & (batches.last_offsets < end)
    whole = int(batches.headers["records"][inside].sum(dtype=np.int64))
    over = decode(live.buffer, _chosen(batches, ~inside))
    return whole + sum(len(part.within(start, end)) for part in over if isinstance(part, RecordColumns))


def _match_records(live: RecordColumns, archived: BatchStretch) -> npt.NDArray[np.uint8]:
    """For each live record `SAME`, `OTHER` or `NOT_THERE`."""
    found = np.full(len(live), NOT_THERE, np.uint8)
    around = archived.touching(int(live.offsets[0]), int(live.offsets[-1]) + 1)
    for part in _readable(around):
        match(
            live.data, live.offsets, live.times_ms, live.spans,
            part.data, part.offsets, part.times_ms, part.spans, found,
        )  # fmt: skip
    return found


def _readable(stretch: BatchStretch) -> Iterator[RecordColumns]:
    """Batches of the archive that cannot be decoded are found by the verification level before this one."""
    return (part for part in decode(stretch.buffer, stretch.batches) if isinstance(part, RecordColumns))


def _chosen(batches: Batches, which: npt.NDArray[np.bool_]) -> Batches:
    return Batches(batches.headers[which], batches.positions[which])


def _plain(stretch: BatchStretch) -> npt.NDArray[np.uint8]:
    return np.frombuffer(memoryview(stretch.buffer).toreadonly(), np.uint8)
