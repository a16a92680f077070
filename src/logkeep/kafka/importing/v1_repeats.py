"""Finds out whether records after the last entry of an index were read before, from the same file.

The tool writes a record, then its entry. A tool that was killed between the two, or whose entries a crash lost, appends
the record again. The second copy has the same bytes, and nothing is lost without it.

Only where parts of the file were read is kept, a few numbers for each; the records are read again to be compared.
"""

from bisect import bisect_right
from collections.abc import Callable, Iterator
from typing import NamedTuple

import numpy as np

from logkeep.formats.datasets.kafka_backup_v1 import reader as v1
from logkeep.formats.datasets.kafka_backup_v1 import v1_reader_kernels as k
from logkeep.formats.kafka.record_kernels import Bytes

Walk = Callable[[int, int, int], Iterator[tuple[v1.V1Records, int]]]
"""Records from a byte up to another one, above an offset, each part with the byte at which its data begins."""


class _Part(NamedTuple):
    offset: int
    start: int
    end: int


class ReadParts:
    """The parts of a file whose records were taken, in order."""

    def __init__(self, walk: Walk) -> None:
        self._walk, self._parts = walk, list[_Part]()

    def add(self, records: v1.V1Records, base: int) -> None:
        start = base + int(records.numbers[0, k.POSITION])
        self._parts.append(_Part(int(records.offsets[0]), start, end_of(records, base)))

    def repeated(self, records: v1.V1Records) -> int:
        """How many of these records, from the first on, are the same as those that were taken at their offsets."""
        count = 0
        while count < len(records):
            same = _same(records[count:], self._part_with(int(records.offsets[count])))
            if not same:
                break
            count += same
        return count

    def same_bytes(self, record: v1.V1Records) -> int:
        """How many bytes, from the first on, one record has in common with the one that was taken at its offset."""
        offset = int(record.offsets[0])
        taken = self._part_with(offset)
        row = int(np.searchsorted(taken.offsets, offset)) if taken is not None else 0
        if taken is None or row == len(taken) or int(taken.offsets[row]) != offset:
            return 0
        one, other = record_data(record, 0), record_data(taken, row)
        size = min(len(one), len(other))
        differs = one[:size] != other[:size]
        return int(differs.argmax()) if differs.any() else size

    def _part_with(self, offset: int) -> v1.V1Records | None:
        """The records that were taken with the one of this offset, if that was taken."""
        place = bisect_right(self._parts, offset, key=lambda part: part.offset) - 1
        if place < 0:
            return None
        part = self._parts[place]
        return next((records for records, _ in self._walk(part.start, part.end, part.offset - 1)), None)


def _same(records: v1.V1Records, taken: v1.V1Records | None) -> int:
    if taken is None:
        return 0
    most = int(np.searchsorted(records.offsets, taken.offsets[-1], "right"))
    rows = np.searchsorted(taken.offsets, records.offsets[:most])
    for count, row in enumerate(rows):
        if not np.array_equal(record_data(records, count), record_data(taken, int(row))):
            return count
    return most


def record_data(records: v1.V1Records, row: int) -> Bytes:
    """All bytes of one record."""
    start = int(records.numbers[row, k.POSITION])
    return records.data[start : start + int(records.numbers[row, k.LENGTH])]


def end_of(records: v1.V1Records, base: int) -> int:
    """The byte after the last record."""
    return base + int(records.numbers[-1, k.POSITION] + records.numbers[-1, k.LENGTH])
