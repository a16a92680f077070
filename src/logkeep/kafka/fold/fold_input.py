"""Reads the archived batches of one log for a fold: what its transactions did, and one row for every record."""

import contextlib
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Final

import numpy as np

from logkeep.errors import Damaged
from logkeep.formats.compaction import barrier_kernels as kernels
from logkeep.formats.compaction.barriers import ROW, Barriers, LatestSums, Rows, SortedRows, UndecidedRecords
from logkeep.formats.compaction.cut_transactions import CutSettling, CutTransactions
from logkeep.formats.compaction.record_rows import hashed_rows
from logkeep.formats.compare.digest import NOTHING, Digest, digest_of
from logkeep.formats.kafka.batches import CONTROL, DELETE_HORIZON, TRANSACTIONAL, Batches, BatchStretch, Longs
from logkeep.formats.kafka.buried_offsets import BuriedOffsets
from logkeep.formats.kafka.record_kernels import KEY_SIZE, VALUE_SIZE
from logkeep.formats.kafka.records import Flags, Malformed, RecordColumns, decode
from logkeep.kafka.fold.units import TombstoneRule
from logkeep.kafka.logs.row_slices import RowSlices
from logkeep.model.segments import Segment
from logkeep.model.work import Progress
from logkeep.repository.chain import layout
from logkeep.repository.chain.commits import SourceRef
from logkeep.repository.segments.log_batches import proven_batches

_NO_LIMIT: Final = 2**63 - 1


class NotFoldable(Exception):
    """Nothing is wrong with the log, but a fold cannot keep its promise. The text says why."""


@dataclass(frozen=True)
class FoldInput:
    """The rows of one log, in order."""

    place: SourceRef
    rows: Sequence[Segment]
    progress: Progress

    def stretches(self) -> Iterator[tuple[int, BatchStretch]]:
        """All batches of the rows, with the number of their row. Raises Damaged with the object's name."""
        after = -1
        for number, row in enumerate(self.rows):
            for stretch in self.of_row(row, after):
                after = stretch.last
                yield number, stretch

    def of_row(self, row: Segment, after: int = -1) -> Iterator[BatchStretch]:
        """The batches that one row covers. The SHA-256 of the object and the CRC of every batch are compared."""
        if not row.has_object:
            return
        for buffer, batches in proven_batches(self.place, row, -1, self.progress, ahead=True):
            own = BatchStretch(buffer, batches).touching(row.start, row.end) if len(batches) else None
            if own is None or not len(own.batches):
                continue
            if own.batches.base_offsets[0] <= after or own.last >= row.end:
                raise NotFoldable("a batch belongs to two rows")
            after = own.last
            yield own

    def name(self, row: Segment) -> str:
        return layout.segment(self.place.source, row)


@dataclass(frozen=True)
class FoldSurvey:
    """What the headers and markers of a log show."""

    transactions: CutTransactions
    batch_records: int
    """The number of records in all batches, with control records: every record has a number below it."""
    fold_end: int
    """The fold keeps all records from this offset on."""
    row_records: Mapping[str, int]
    """How many of these records each row has, by the token of the row."""
    anchors: tuple[tuple[int, int], ...]
    """First and last offset of the last batch below each kept cut. This batch stays unchanged: the next backup of the
    log is compared with it."""


def survey_log(archived: FoldInput, barriers: Barriers, young_ms: int | None) -> FoldSurvey:
    """Read the headers and markers of a log. Raises Damaged, and NotFoldable."""
    ends, settling = barriers.ends, CutSettling(ends=barriers.ends)
    anchors, young = dict[int, tuple[int, int]](), _NO_LIMIT
    records = {row.token: 0 for row in archived.rows}
    for number, stretch in archived.stretches():
        batches = stretch.batches
        settling.take(stretch.buffer, batches)
        if settling.problems:
            raise Damaged(
                f"a transaction marker cannot be read: {settling.problems[0]}",
                subject=archived.name(archived.rows[number]),
            )
        records[archived.rows[number].token] += int(batches.headers["records"].sum(dtype=np.int64))
        young = min(young, _first_young(batches, young_ms))
        for end in ends[int(np.searchsorted(ends, batches.base_offsets[0], side="right")) :]:
            at = int(np.searchsorted(batches.base_offsets, end)) - 1
            anchors[end] = int(batches.base_offsets[at]), int(batches.last_offsets[at])
    outcome = settling.outcome()
    fold_end = min(barriers.last, outcome.first_open, young)
    return FoldSurvey(outcome, sum(records.values()), fold_end, records, tuple(sorted(set(anchors.values()))))


def _first_young(batches: Batches, young_ms: int | None) -> int:
    if young_ms is None:
        return _NO_LIMIT
    young = np.flatnonzero(batches.headers["max_time_ms"] >= young_ms)
    return int(batches.base_offsets[young[0]]) if len(young) else _NO_LIMIT


@dataclass(frozen=True)
class RowMaker:
    """How the records of a log become rows."""

    survey: FoldSurvey
    barriers: Barriers
    buried: Sequence[BuriedOffsets]
    """The buried offsets of each of `barriers.burials`."""
    seeds: tuple[int, int, int]
    hash_bits: int
    tombstones: TombstoneRule | None = None

    def rows(self, records: RecordColumns, ordinals: Longs, seen: Flags) -> Rows:
        """One row for each record that is `seen`: a backup sees it or may see it."""
        rows = hashed_rows(records, self.seeds, self.hash_bits)
        rows["ordinal"] = ordinals
        rows["rank"] = self._ranks(records.offsets)
        rows["kind"] = self._kinds(records)
        return rows if seen.all() else rows[seen]

    def _ranks(self, offsets: Longs) -> Longs:
        ranks = np.full(len(offsets), len(self.buried), np.int64)
        for rank in reversed(range(len(self.buried))):
            ranks[self.buried[rank].hides(offsets)] = rank
        return ranks

    def _kinds(self, records: RecordColumns) -> Longs:
        offsets = records.offsets
        tombstone = (records.spans[:, VALUE_SIZE] < 0) & (records.spans[:, KEY_SIZE] >= 0)
        undecided = self.survey.transactions.open_at_a_cut(records.batches)[records.batch]
        beyond = offsets >= self.survey.fold_end
        protected = beyond | _inside(self.survey.anchors, offsets)
        flags = [(tombstone, kernels.TOMBSTONE), (undecided, kernels.UNDECIDED)]
        flags += [(protected, kernels.PROTECTED), (beyond, kernels.BEYOND)]
        if self.tombstones is not None:
            flags.append((tombstone & _old(records, self.tombstones), kernels.OLD))
        kinds = np.zeros(len(records), np.int64)
        for which, flag in flags:
            kinds[which] |= flag
        return kinds


def _inside(ranges: Sequence[tuple[int, int]], offsets: Longs) -> Flags:
    firsts, lasts = np.array([a for a, _ in ranges], np.int64), np.array([b for _, b in ranges], np.int64)
    at = np.searchsorted(firsts, offsets, side="right") - 1
    found: Flags = (
        (at >= 0) & (offsets <= lasts[np.maximum(at, 0)]) if len(firsts) else np.zeros(len(offsets), np.bool_)
    )
    return found


def _old(records: RecordColumns, rule: TombstoneRule) -> Flags:
    """Tombstones that were past their retention at every kept cut that holds them, and behind every group."""
    cuts = sorted(rule.cuts)
    ends = np.array([end for end, _ in cuts], np.int64)
    times = np.array([time for _, time in cuts], np.int64)
    earliest = np.append(np.minimum.accumulate(times[::-1])[::-1], 0)
    held_ms = earliest[np.searchsorted(ends, records.offsets, side="right")]
    headers = records.batches.headers
    horizon = (headers["attributes"] & DELETE_HORIZON) != 0
    due_ms = np.where(
        horizon[records.batch],
        headers["base_time_ms"].astype(np.int64)[records.batch],
        np.minimum(records.times_ms, _NO_LIMIT - rule.retention_ms) + rule.retention_ms,
    )
    known = horizon[records.batch] | (records.times_ms >= 0)
    found: Flags = known & (due_ms <= held_ms) & (records.offsets < rule.below)
    return found


@dataclass
class CollectedRows:
    """The rows of a log in slices, and what was counted while they were made."""

    slices: RowSlices
    digest: Digest = NOTHING
    unkeyed: int = 0
    undecided: UndecidedRecords = field(default_factory=lambda: UndecidedRecords.of(()))

    def sums(self, barriers: Barriers, *, values_only: bool) -> LatestSums:
        """The digests of the latest records at every barrier."""
        latest = LatestSums(barriers, values_only=values_only)
        for ordered in map(SortedRows.of, self.slices):
            latest.add(ordered, self.undecided)
        return latest


@contextlib.contextmanager
def collect_rows(archived: FoldInput, row_maker: RowMaker, slices: int) -> Iterator[CollectedRows]:
    """Decode every record. Raises Damaged with the object's name."""
    with contextlib.closing(RowSlices(slices, ROW)) as kept:
        found, undecided, first = CollectedRows(kept), list[tuple[Longs, Longs]](), 0
        for number, stretch in archived.stretches():
            try:
                _collect(stretch, row_maker, first, found, undecided)
            except Damaged as error:
                raise Damaged(error.what, subject=archived.name(archived.rows[number])) from error
            first += int(stretch.batches.headers["records"].sum(dtype=np.int64))
        found.undecided = UndecidedRecords.of(undecided)
        yield found


def _collect(
    stretch: BatchStretch, row_maker: RowMaker, first: int, found: CollectedRows, undecided: list[tuple[Longs, Longs]]
) -> None:
    batches = stretch.batches
    counts = batches.headers["records"].astype(np.int64)
    firsts = first + np.cumsum(counts) - counts
    data = (batches.headers["attributes"] & CONTROL) == 0
    chosen = Batches(batches.headers[data], batches.positions[data])
    transactions = row_maker.survey.transactions
    if not transactions.any and (batches.headers["attributes"] & (CONTROL | TRANSACTIONAL)).any():
        raise Damaged("it has transactions that were not there before")
    for part in decode(stretch.buffer, chosen) if len(chosen) else ():
        if isinstance(part, Malformed):
            raise Damaged(str(part))
        found.digest = found.digest.then(digest_of(part))
        seen = ~transactions.aborted(part.batches)[part.batch]
        rows = row_maker.rows(part, _ordinals(part, batches, firsts), seen)
        found.slices.add(rows)
        found.unkeyed += int(np.count_nonzero(seen & (part.spans[:, KEY_SIZE] < 0)))
        late = seen & transactions.open_at_a_cut(part.batches)[part.batch]
        if late.any():
            undecided.append((part.offsets[late].copy(), transactions.decided_at(part.batches)[part.batch][late]))


def _ordinals(part: RecordColumns, batches: Batches, firsts: Longs) -> Longs:
    """The number of each record in the log."""
    counts = part.batches.headers["records"].astype(np.int64)
    within = np.arange(len(part)) - (np.cumsum(counts) - counts)[part.batch]
    return firsts[np.searchsorted(batches.base_offsets, part.batches.base_offsets)][part.batch] + within
