"""Compares the records of a dataset with the archived records at the same offsets, in whole columns."""

from collections.abc import Iterator

import numpy as np
import pyarrow as pa

from logkeep.formats.datasets.arrow import SCHEMA
from logkeep.formats.datasets.binary_spans import numbers
from logkeep.kafka.scan.read import read_range
from logkeep.kafka.scan.values import ScanRange


class ArchivedOverlap:
    """The archived records of one log, read once, beside those of the dataset."""

    def __init__(self, archived: ScanRange) -> None:
        self._start, self._end = archived.start, archived.end
        self._batches: Iterator[pa.RecordBatch] = read_range(archived)
        self._held = list[pa.RecordBatch]()
        self.unarchived = 0
        """Records of the dataset inside the archived range whose offsets the archive lacks."""
        self.differs_at = -1
        """The first offset at which both have different records; -1: none was found."""

    def compare(self, records: pa.RecordBatch) -> None:
        """Compare one batch. The caller passes batches in the order of their offsets."""
        offsets = numbers(records, "offset")
        first, after = (int(i) for i in np.searchsorted(offsets, (self._start, self._end)))
        if first == after or self.differs_at >= 0:
            return
        here, offsets = records.slice(first, after - first), offsets[first:after]
        there = self._between(int(offsets[0]), int(offsets[-1]))
        _, mine, theirs = np.intersect1d(offsets, numbers(there, "offset"), assume_unique=True, return_indices=True)
        self.unarchived += len(offsets) - len(mine)
        one, other = here.take(pa.array(mine)), there.take(pa.array(theirs))
        if not one.equals(other):
            self.differs_at = int(offsets[mine[_first_difference(one, other)]])

    def _between(self, first: int, last: int) -> pa.RecordBatch:
        """The archived records of these offsets."""
        while not self._held or int(numbers(self._held[-1], "offset")[-1]) < last:
            following = next(self._batches, None)
            if following is None:
                break
            self._held.append(following)
        self._held = [b for b in self._held if int(numbers(b, "offset")[-1]) >= first]
        found = pa.Table.from_batches(self._held, SCHEMA).combine_chunks().to_batches()
        joined = found[0] if found else pa.RecordBatch.from_pylist([], SCHEMA)
        low, high = (int(i) for i in np.searchsorted(numbers(joined, "offset"), (first, last + 1)))
        return joined.slice(low, high - low)


def _first_difference(one: pa.RecordBatch, other: pa.RecordBatch) -> int:
    low, high = 0, one.num_rows
    while high - low > 1:
        middle = (low + high) // 2
        if one.slice(low, middle - low).equals(other.slice(low, middle - low)):
            low = middle
        else:
            high = middle
    return low
