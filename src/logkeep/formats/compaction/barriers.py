"""Which records of a compacted log may go: the rule of a fold, and the digests that prove it. Pure; whole columns.

A *barrier* is the cut of a kept backup. A record goes if a later record of its key is seen by every kept backup that
sees it: so the latest record of every key is the same at every barrier, before and after. Records of transactions that
were undecided at a barrier stay, and so does everything from the end of the folded range on; neither counts as the
later record. Records that are buried in every kept backup that holds them go.

Keys are distinguished by a hash of 128 bits with secret seeds. A second hash proves that equal hashes are equal keys:
where it differs within one, all records stay.
"""

from collections.abc import Iterable
from dataclasses import dataclass
from functools import cached_property
from typing import Final, NamedTuple

import numpy as np
import numpy.typing as npt

from logkeep.formats.compaction import barrier_kernels as kernels
from logkeep.formats.kafka.batches import Longs
from logkeep.formats.kafka.records import RecordColumns

ROW: Final = np.dtype(
    [
        ("hash", "<u8"),
        ("check", "<u8"),
        ("content", "<u8"),
        ("offset", "<i8"),
        ("ordinal", "<i8"),
        ("other", "<u4"),
        ("rank", "<i2"),
        ("kind", "u1"),
        ("spare", "u1"),
    ]
)
"""A record: two lanes of its key's hash, a hash of all of it, its offset, its number in the log, the second hash, which
burial hides it, and the flags of the kernels. Every field is aligned: columns of rows are read in place."""
_ROW_WORDS: Final = ROW.itemsize // 8
Rows = npt.NDArray[np.void]
NO_COLUMN: Final = np.empty(0, np.int64)


class Barrier(NamedTuple):
    """The cut `[start, end)` of a kept backup."""

    backup: int
    start: int
    end: int


@dataclass(frozen=True)
class Barriers:
    """All kept cuts of one log, and the first backups of its burials, rising."""

    cuts: tuple[Barrier, ...]
    burials: tuple[int, ...] = ()

    @cached_property
    def table(self) -> Longs:
        return np.array(sorted(self.cuts, key=lambda cut: (cut.end, cut.backup)), np.int64).reshape(-1, 3)

    @cached_property
    def oldest(self) -> Longs:
        """By row of the table, the least backup from it on."""
        return np.ascontiguousarray(np.minimum.accumulate(self.table[::-1, kernels.ID])[::-1])

    @property
    def firsts(self) -> Longs:
        return np.array(self.burials, np.int64)

    @property
    def ends(self) -> list[int]:
        return sorted({cut.end for cut in self.cuts})

    @property
    def last(self) -> int:
        return max(cut.end for cut in self.cuts)


@dataclass(frozen=True)
class LatestDigest:
    """Of the latest records of all keys, as one backup sees them; in any order."""

    backup: int
    records: int
    first: int
    second: int

    def __str__(self) -> str:
        return f"lp1:{self.records}:{self.first:016x}{self.second:016x}"


class LatestSums:
    """Digests at all barriers, summed up over keys that are apart."""

    def __init__(self, barriers: Barriers, *, values_only: bool) -> None:
        self._barriers, self._values_only = barriers, values_only
        self._counts = np.zeros(len(barriers.table), np.int64)
        self._sums = np.zeros((len(barriers.table), 2), np.uint64)

    def add(self, rows: "SortedRows", undecided: "UndecidedRecords") -> None:
        barriers = self._barriers
        kernels.add_latest(
            rows.keys,
            rows.offsets,
            undecided.decided_at(rows.offsets, rows.kinds),
            rows.ranks,
            rows.kinds,
            np.ascontiguousarray(rows.rows["content"]),
            barriers.table,
            barriers.firsts,
            int(self._values_only),
            self._counts,
            self._sums,
        )

    def digests(self) -> tuple[LatestDigest, ...]:
        """In order of backups."""
        ids = self._barriers.table[:, kernels.ID].tolist()
        rows = zip(ids, self._counts.tolist(), *(self._sums[:, lane].tolist() for lane in (0, 1)), strict=True)
        return tuple(sorted((LatestDigest(*row) for row in rows), key=lambda each: each.backup))


@dataclass(frozen=True)
class UndecidedRecords:
    """Offsets of records whose transactions were undecided at a barrier, rising, and where they were decided."""

    offsets: Longs
    decided: Longs

    @classmethod
    def of(cls, some: Iterable[tuple[Longs, Longs]]) -> "UndecidedRecords":
        """Columns of offsets and of where they were decided, in the order of offsets."""
        each = list(some)
        return cls(
            np.concatenate([NO_COLUMN, *(offsets for offsets, _ in each)]),
            np.concatenate([NO_COLUMN, *(decided for _, decided in each)]),
        )

    def decided_at(self, offsets: Longs, kinds: npt.NDArray[np.uint8]) -> Longs:
        """By record, the offset after which backups see it."""
        found = offsets.copy()
        which = (kinds & kernels.UNDECIDED) != 0
        if which.any():
            found[which] = self.decided[np.searchsorted(self.offsets, offsets[which])]
        return found


@dataclass(frozen=True)
class SortedRows:
    """Rows by hash, key and offset."""

    rows: Rows
    begins: npt.NDArray[np.bool_]
    """Where another hash begins."""
    keys: npt.NDArray[np.bool_]
    """Where another key begins: the second hash differs too."""

    @classmethod
    def of(cls, rows: Rows) -> "SortedRows":
        """All rows of some keys, in the order of offsets."""
        order, again = _order(rows["hash"])
        made = cls._by(rows, order)
        if not made.keys[1:][again].any():
            return made
        # Two keys share the first bits of their hash.
        return cls._by(rows, np.lexsort((rows["offset"], rows["other"], rows["check"], rows["hash"])))

    @classmethod
    def _by(cls, rows: Rows, order: Longs) -> "SortedRows":
        # As rows of words: numpy copies elements of structured arrays one by one.
        rows = rows.view(np.uint64).reshape(len(rows), _ROW_WORDS).take(order, axis=0).reshape(-1).view(ROW)
        begins, keys = np.ones(len(rows), np.bool_), np.ones(len(rows), np.bool_)
        begins[1:] = (rows["hash"][1:] != rows["hash"][:-1]) | (rows["check"][1:] != rows["check"][:-1])
        keys[1:] = begins[1:] | (rows["other"][1:] != rows["other"][:-1])
        return cls(rows, begins, keys)

    @cached_property
    def offsets(self) -> Longs:
        return np.ascontiguousarray(self.rows["offset"])

    @cached_property
    def ranks(self) -> Longs:
        return self.rows["rank"].astype(np.int64)

    @cached_property
    def kinds(self) -> npt.NDArray[np.uint8]:
        return np.ascontiguousarray(self.rows["kind"])


def _order(hashes: npt.NDArray[np.uint64]) -> tuple[Longs, npt.NDArray[np.bool_]]:
    """Rows by the first bits of their hash, and in their own order where these are equal; and where they are.

    The number of the row takes the place of the last bits: numbers are sorted several times faster than their order is
    found.
    """
    last = np.uint64(max(1, (len(hashes) - 1).bit_length()))
    low = np.uint64((1 << int(last)) - 1)
    numbered = np.sort((hashes & ~low) | np.arange(len(hashes), dtype=np.uint64))
    firsts = numbered >> last
    return (numbered & low).astype(np.int64), firsts[1:] == firsts[:-1]


class Superseded(NamedTuple):
    """The numbers of records that go, and how many keys share a hash."""

    ordinals: Longs
    collisions: int


def superseded(rows: SortedRows, barriers: Barriers, *, drop_tombstones: bool) -> Superseded:
    """The records of these keys that no kept backup needs."""
    kept = np.zeros(len(rows.rows), np.uint8)
    collisions = kernels.mark_kept(
        rows.begins,
        np.ascontiguousarray(rows.rows["other"]),
        rows.offsets,
        rows.ranks,
        rows.kinds,
        barriers.table,
        barriers.firsts,
        barriers.oldest,
        int(drop_tombstones),
        kept,
    )
    return Superseded(rows.rows["ordinal"][kept == 0].astype(np.int64), collisions)


class KeptRecords:
    """One bit for every record of a log, by its number: whether it stays."""

    def __init__(self, records: int) -> None:
        self._bits = np.full((records + 7) // 8, 255, np.uint8)
        self.records, self.dropped = records, 0

    def drop(self, ordinals: Longs) -> None:
        """Each of them once."""
        if kernels.clear_bits(ordinals, self._bits):
            raise ValueError("a number is not that of a record")
        self.dropped += len(ordinals)

    def flags(self, first: int, count: int) -> npt.NDArray[np.bool_]:
        """Whether each record of a range stays."""
        bits = np.unpackbits(self._bits[first // 8 : (first + count + 7) // 8])
        return bits[first % 8 : first % 8 + count].astype(np.bool_)


def warm(records: RecordColumns) -> None:
    """Compile and store every kernel, with the argument types that are used."""
    content = np.empty(len(records), np.uint64)
    kernels.record_hashes(records.data, records.offsets, records.times_ms, records.spans, content)
    rows, barriers = SortedRows.of(np.zeros(1, ROW)), Barriers((Barrier(1, 0, 1),))
    LatestSums(barriers, values_only=False).add(rows, UndecidedRecords.of(()))
    KeptRecords(8).drop(superseded(rows, barriers, drop_tombstones=False).ordinals)
    one, kept = np.ones(1, np.int64), np.ones(1, np.bool_)
    kernels.thin_sections(records.data, 0 * one, one, 0 * one, kept, np.empty(1, np.uint8), one.copy(), one.copy())
