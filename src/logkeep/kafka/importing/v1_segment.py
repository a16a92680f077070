"""Reads one segment of kafka-backup-v1: by its index where that matches the records, otherwise record by record.

Entries of the index count as long as positions rise and fit the file, and the record at each has the entry's length and
offset. Bytes between two entries are those of a torn write. Where entries do not fit, the records are walked up to the
next one that does; after the last entry whole records are taken, and the rest is a torn tail. Those that were read
before are counted. Any other whole record there whose offset does not rise is no torn write: the file is refused.
"""

from collections.abc import Generator, Iterator
from dataclasses import dataclass

import numpy as np

from logkeep.errors import Damaged
from logkeep.formats.datasets.kafka_backup_v1 import reader as v1
from logkeep.formats.datasets.kafka_backup_v1 import v1_reader_kernels as k
from logkeep.formats.kafka.record_kernels import Longs
from logkeep.kafka.importing.reader import OVERLAPPING, ReadNotes
from logkeep.kafka.importing.v1_repeats import ReadParts, end_of, record_data
from logkeep.store.base import Store

WINDOW_BYTES = 16 << 20
_INDEX_BYTES = v1.ENTRY_BYTES << 18
_OFFSET_BYTES = 8
_ANY_SIZE = 1 << 62
_MOST_UNFIT = 100
"""After so many places where the index does not fit, the rest of it is not used: each costs a read."""
_MOST_REPEATS = 100
"""After so many places where a tail begins again it is no work of a tool that was killed: each costs two reads."""
_FALL_REMEDY = "copy the file and its index again from where they were written, or take them out of the dataset"
TORN_BYTES, TORN_TAIL, UNINDEXED, INDEX_UNFIT = "torn-bytes", "torn-tail", "records-not-indexed", "index-inconsistent"


@dataclass(frozen=True)
class V1SegmentReader:
    """The two files of a segment. `index` is empty where there is none."""

    store: Store
    records: str
    size: int
    index: str = ""
    index_size: int = 0

    def scan(self, notes: ReadNotes, above: int = -1) -> Iterator[tuple[v1.V1Records, int]]:
        """All records with offsets above `above`, each part with the byte of the file at which its data begins.

        The others were read from another segment: they are counted, as are those that the file has again. Raises
        Damaged for offsets that do not rise, and are not those of such records.
        """
        for records, base in self._all(notes.after(above)):
            known = int(np.searchsorted(records.offsets, above, "right"))
            notes.add(OVERLAPPING, known, self.records)
            if known < len(records):
                yield records[known:], base

    def last_listed(self) -> int:
        """The offset in the last whole entry of the index; -1: there is none. Reads eight bytes."""
        count = max(self.index_size - 1, 0) // v1.ENTRY_BYTES
        if not count:
            return -1
        stored = self.store.get_range(self.index, 1 + (count - 1) * v1.ENTRY_BYTES, 8)
        return int.from_bytes(stored, "big", signed=True)

    def has_record(self) -> bool:
        """Whether it has a whole record. Reads no more than the first one if the index names it."""
        indexed = self.index_size > v1.ENTRY_BYTES
        first = v1.segment_entries(self.store.get_range(self.index, 1, v1.ENTRY_BYTES) if indexed else b"", 0)
        if len(first) and k.fitting_entries(first, self.size, -1, 1):
            at, length = int(first[0, 1]), int(first[0, 2])
            if not len(v1.read_at(self._bytes(at, at + length), at, first)[1]):
                return True
        return next(self.scan(ReadNotes()), None) is not None

    def _all(self, notes: ReadNotes) -> Iterator[tuple[v1.V1Records, int]]:
        if self.size:  # a tool that was killed leaves files without a byte
            v1.check_magic(self.store.get_range(self.records, 0, 1), self.records)
        at, above, unfit, listed, parts = 1, -1, 0, np.empty(0, np.int64), ReadParts(self._walk)
        for entries in self._entry_blocks(notes) if self.index_size else ():
            if unfit > _MOST_UNFIT:
                listed = np.concatenate((listed[:1], entries[[0, -1], 0]))
                continue
            row = 0
            while row < len(entries):
                chunk = _window(entries[row:])
                base = int(chunk[0, 1])
                records, bad = v1.read_at(self._bytes(base, int(chunk[-1, 1] + chunk[-1, 2])), base, chunk)
                fit = int(bad[0]) if len(bad) else len(chunk)
                if fit:
                    at, above = self._torn_between(chunk[:fit], at, notes), int(chunk[fit - 1, 0])
                    parts.add(records[:fit], base)
                    yield records[:fit], base
                if not len(bad):
                    row += len(chunk)
                    continue
                notes.add(INDEX_UNFIT, 1, f"{self.index}, the entry of offset {int(chunk[fit, 0])}")
                after = _next_fitting(bad, fit, len(chunk))
                unfit += 1 if after is not None else _MOST_UNFIT + 1
                if after is None or unfit > _MOST_UNFIT:
                    unfit, listed = _MOST_UNFIT + 1, entries[row + fit :, 0]
                    break
                stop, expected = int(chunk[after, 1]), chunk[fit:after, 0]
                at, above = yield from self._region(at, stop, above, int(chunk[after, 0]), expected, parts, notes)
                row += after
        yield from self._tail(at, above, listed, parts, notes)

    def _entry_blocks(self, notes: ReadNotes) -> Iterator[Longs]:
        """Entries that rise and fit, also those after a torn one: the tool appends after it, so they are shifted."""
        at, last, shifts = 1, (-1, 1), 0
        v1.check_magic(self.store.get_range(self.index, 0, 1), self.index)
        while self.index_size - at >= v1.ENTRY_BYTES:
            data = self.store.get_range(self.index, at, min(self.index_size - at, _INDEX_BYTES))
            some = v1.segment_entries(data, 0)
            count = int(k.fitting_entries(some, self.size, *last))
            if count:
                last = int(some[count - 1, 0]), int(some[count - 1, 1] + some[count - 1, 2])
                yield some[:count]
            at += count * v1.ENTRY_BYTES
            if count == len(some):
                continue
            shift = self._shift(data[count * v1.ENTRY_BYTES :], last) if shifts < _MOST_UNFIT else 0
            if not shift:
                self._note_unfit(some[count:], at, last, notes)
                return
            at, shifts = at + shift, shifts + 1

    def _note_unfit(self, entries: Longs, at: int, last: tuple[int, int], notes: ReadNotes) -> None:
        """Entries that do not fit. Those that are only after the end of the file were records, which are lost."""
        notes.add(INDEX_UNFIT, 1, f"{self.index}, byte {at}")
        if beyond := int(k.fitting_entries(entries, _ANY_SIZE, *last)):
            reason = f"{self.records} ends before records that its index lists"
            notes.lose(int(entries[0, 0]), int(entries[beyond - 1, 0]) + 1, reason)

    def _shift(self, data: bytes, last: tuple[int, int]) -> int:
        """How many bytes to skip to reach an entry whose record has the entry's offset; 0: there is none."""
        for shift in range(1, v1.ENTRY_BYTES):
            entry = v1.segment_entries(data[shift : shift + v1.ENTRY_BYTES], 0)
            if len(entry) and k.fitting_entries(entry, self.size, *last):
                stored = self.store.get_range(self.records, int(entry[0, 1]), 8)
                if int.from_bytes(stored, "big") == int(entry[0, 0]):
                    return shift
        return 0

    def _bytes(self, start: int, end: int) -> bytes:
        return self.store.get_range(self.records, start, end - start)

    def _torn_between(self, entries: Longs, at: int, notes: ReadNotes) -> int:
        """Count bytes between entries; the byte after the last."""
        if not len(entries):
            return at
        ends = entries[:, 1] + entries[:, 2]
        between = entries[:, 1] - np.concatenate(([at], ends[:-1]))
        if torn := int(between.sum()):
            first = int(np.flatnonzero(between)[0])
            notes.add(TORN_BYTES, torn, f"{self.records}, before byte {int(entries[first, 1])}")
        return int(ends[-1])

    def _region(
        self, at: int, stop: int, above: int, below: int, listed: Longs, parts: ReadParts, notes: ReadNotes
    ) -> Generator[tuple[v1.V1Records, int], None, tuple[int, int]]:
        """Walk the records between two fitting entries; returns where it ended and the last offset."""
        found = list[Longs]()
        for records, base in self._walk(at, stop, above):
            kept = records[: int(np.searchsorted(records.offsets, below))]
            if len(kept):
                found.append(kept.offsets)
                at, above = end_of(kept, base), int(kept.offsets[-1])
                parts.add(kept, base)
                yield kept, base
            if len(kept) < len(records):
                break
        notes.add(TORN_BYTES, stop - at, f"{self.records}, byte {at}")
        there = np.concatenate([np.empty(0, np.int64), *found])
        missing = np.setdiff1d(listed, there)
        between = np.searchsorted(there, missing)
        for group in np.unique(between):
            lost = missing[between == group]
            reason = f"the index lists records at byte {at} of {self.records}, and they cannot be read"
            notes.lose(int(lost[0]), int(lost[-1]) + 1, reason)
        return stop, above

    def _tail(
        self, at: int, above: int, listed: Longs, parts: ReadParts, notes: ReadNotes
    ) -> Iterator[tuple[v1.V1Records, int]]:
        """Records after the last entry that fits, without those that were read before."""
        for again in range(_MOST_REPEATS + 1):
            for records, base in self._walk(at, self.size, above):
                at, above = end_of(records, base), int(records.offsets[-1])
                parts.add(records, base)
                if self.index:
                    first = base + int(records.numbers[0, k.POSITION])
                    notes.add(UNINDEXED, len(records), f"{self.records}, byte {first}")
                yield records, base
            if self._is_zero_from(at + _OFFSET_BYTES):
                break
            count, end = self._repeated(at, above, parts) if again < _MOST_REPEATS else (0, at)
            if not count:
                self._refuse_fall(at, above, parts)
                break
            notes.add(OVERLAPPING, count, f"{self.records}, byte {at}")
            at = end
        notes.add(TORN_TAIL, max(self.size - at, 0), f"{self.records}, byte {at}")  # a file may lack its first byte
        if len(listed) and int(listed[-1]) > above:
            reason = f"the index lists records after byte {at} of {self.records}, and they cannot be read"
            notes.lose(max(above + 1, int(listed[0])), int(listed[-1]) + 1, reason)

    def _repeated(self, at: int, above: int, parts: ReadParts) -> tuple[int, int]:
        """How many records from byte `at` on were read before, and the byte after them."""
        total = 0
        for records, base in self._walk(at, self.size, -1):
            known = records[: int(np.searchsorted(records.offsets, above, "right"))]
            count = parts.repeated(known)
            if count:
                total, at = total + count, end_of(known[:count], base)
            if count < len(records):
                break
        return total, at

    def _refuse_fall(self, at: int, above: int, parts: ReadParts) -> None:
        """Raise Damaged for a whole record where the walk ended. A file system may fill a torn tail with zeros, which
        look like one; so does a record that was torn the second time."""
        records, _ = next(self._walk(at, self.size, -1), (None, 0))
        if records is None or not record_data(records, 0).any():
            return
        if self._is_zero_from(at + max(parts.same_bytes(records[:1]), _OFFSET_BYTES)):
            return
        what = f"the record at byte {at} has offset {int(records.offsets[0])}, and those before it reach {above}"
        raise Damaged(what, subject=self.records, remedy=_FALL_REMEDY)

    def _is_zero_from(self, at: int) -> bool:
        """Whether nothing but zeros is from a byte on: also of a record that was torn inside of its offset."""
        while at < self.size:
            data = self._bytes(at, min(at + WINDOW_BYTES, self.size))
            if data.count(0) < len(data):
                return False
            at += len(data)
        return True

    def _walk(self, at: int, stop: int, above: int) -> Iterator[tuple[v1.V1Records, int]]:
        """Records that follow each other, up to `stop` or to bytes that are none."""
        room = WINDOW_BYTES
        while at < stop:
            data = self._bytes(at, min(at + room, stop))
            walked, here = v1.walk(data, 0, len(data), above), 0
            while len(walked.records):
                above, here = int(walked.records.offsets[-1]), walked.at
                yield walked.records, at
                if walked.why != k.FULL:
                    break
                walked = v1.walk(data, here, len(data), above)
            torn_here = walked.why == k.TORN and at + len(data) < stop
            if walked.why == k.BAD or (walked.why == k.TORN and not torn_here):
                return
            if torn_here and not here:
                if room >= k.LARGEST_RECORD_BYTES:
                    return
                room *= 4
                continue
            at, room = at + here, WINDOW_BYTES


def _window(entries: Longs) -> Longs:
    """The first entries, of some megabytes of records; at least one."""
    ends = entries[: v1.ROWS, 1] + entries[: v1.ROWS, 2]
    return entries[: max(int(np.searchsorted(ends, int(entries[0, 1]) + WINDOW_BYTES, "right")), 1)]


def _next_fitting(bad: Longs, fit: int, count: int) -> int | None:
    """The first row after `fit` that is not bad."""
    left = np.setdiff1d(np.arange(fit, count), bad)
    return int(left[0]) if len(left) else None
