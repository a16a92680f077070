"""The task that folds one log: reads it, decides, writes its rows again, and reads everything back from the store.

The archive is read once for its transactions and once for its records. Each record becomes a row in memory: hashes,
its offset and some flags. These rows are divided by key into slices that fit into memory, and `superseded` decides
which records are removed. Segments that lose a record are written again, one at a time. Then the new segments are read
from the store, with other seeds, and the latest record of each key at every kept cut is compared with what the old
segments had.
"""

import numpy as np

from logkeep.errors import Damaged, ObjectMissing, OldMessageFormat, SourceDamaged, UnsafeName
from logkeep.formats.compaction.barriers import ROW, KeptRecords, LatestSums, Rows, SortedRows, superseded
from logkeep.formats.kafka.batches import CONTROL, Longs
from logkeep.kafka.fold.fold_input import (
    CollectedRows,
    FoldInput,
    FoldSurvey,
    NotFoldable,
    RowMaker,
    collect_rows,
    survey_log,
)
from logkeep.kafka.fold.rewrite import LogRewriter
from logkeep.kafka.fold.units import FoldOutcome, FoldUnit, LogSum
from logkeep.kafka.logs.burials import read_buried
from logkeep.model.segments import Segment
from logkeep.model.time import TokenSource, random_token
from logkeep.model.work import Progress

_SORTED_ROW_BYTES = 4 * ROW.itemsize
UNPROVEN = "it has transactions, and its deletions are not proven"


def fold_log(unit: FoldUnit, progress: Progress) -> FoldOutcome:
    """Fold one log. Raises only what another attempt can cure."""
    return fold_with(unit, progress, random_token)


def fold_with(unit: FoldUnit, progress: Progress, tokens: TokenSource) -> FoldOutcome:
    """The same with randomness as an argument."""
    try:
        return _fold(unit, progress, tokens)
    except NotFoldable as reason:
        return FoldOutcome(log=unit.log, skipped=str(reason))
    except (Damaged, ObjectMissing, UnsafeName, SourceDamaged, OldMessageFormat) as error:
        return FoldOutcome(log=unit.log, problem=error.what, where=error.subject)


def _fold(unit: FoldUnit, progress: Progress, tokens: TokenSource) -> FoldOutcome:
    archived = FoldInput(unit.place, unit.rows, progress)
    survey = survey_log(archived, unit.barriers, unit.young_ms)
    if survey.transactions.any and not unit.proven:
        raise NotFoldable(UNPROVEN)
    kept = KeptRecords(survey.batch_records)
    with collect_rows(archived, _row_maker(unit, survey, 0), _slices(unit)) as found:
        collisions, latest = _decide(unit, found, kept)
        before = _log_sum(unit.rows, found, latest)
    _drop_aborted(FoldInput(unit.place, unit.rows, _silent), survey, kept)
    span = unit.rows[0].start, _span_end(unit, survey)
    if not kept.dropped:
        return FoldOutcome(
            log=unit.log, start=span[0], end=span[1], before=before, unkeyed=found.unkeyed, collisions=collisions
        )
    replaced = LogRewriter(archived, survey, kept, tokens).run()
    return FoldOutcome(
        log=unit.log,
        start=span[0],
        end=span[1],
        replaced=tuple(replaced),
        before=before,
        after=_read_back(unit, survey, dict(replaced)),
        unkeyed=found.unkeyed,
        collisions=collisions,
    )


def _silent(_: int) -> None:
    """The progress of a second read: its bytes were counted before."""


def _row_maker(unit: FoldUnit, survey: FoldSurvey, first_seed: int) -> RowMaker:
    buried = [found for refs in unit.buried if (found := read_buried(unit.place, refs)) is not None]
    one, two, three = unit.seeds[first_seed : first_seed + 3]
    return RowMaker(survey, unit.barriers, buried, (one, two, three), unit.hash_bits, unit.tombstones)


def _slices(unit: FoldUnit) -> int:
    return max(1, -(-sum(row.records for row in unit.rows) * _SORTED_ROW_BYTES // unit.memory_bytes))


def _decide(unit: FoldUnit, found: CollectedRows, kept: KeptRecords) -> tuple[int, LatestSums]:
    """Drop what no kept backup needs, and sum up what they have."""
    drop_tombstones = unit.tombstones is not None
    latest = LatestSums(unit.barriers, values_only=drop_tombstones)

    def decide(rows: Rows) -> int:
        ordered = SortedRows.of(rows)
        gone = superseded(ordered, unit.barriers, drop_tombstones=drop_tombstones)
        kept.drop(gone.ordinals)
        latest.add(ordered, found.undecided)
        return gone.collisions

    # Free a slice before the next one is read.
    return sum(map(decide, found.slices)), latest


def _drop_aborted(archived: FoldInput, survey: FoldSurvey, kept: KeptRecords) -> None:
    """Drop the records of aborted transactions, unless the transaction was open at a kept cut."""
    if not survey.transactions.settled.aborted:
        return
    first = 0
    for _, stretch in archived.stretches():
        batches = stretch.batches
        counts = batches.headers["records"].astype(np.int64)
        gone = survey.transactions.aborted(batches) & ~survey.transactions.open_at_a_cut(batches)
        gone &= (batches.last_offsets < survey.fold_end) & ((batches.headers["attributes"] & CONTROL) == 0)
        gone &= ~np.isin(batches.base_offsets, np.array([base for base, _ in survey.anchors], np.int64))
        kept.drop(_numbers(first + np.cumsum(counts) - counts, counts, gone))
        first += int(counts.sum())


def _numbers(firsts: Longs, counts: Longs, which: "np.ndarray[tuple[int], np.dtype[np.bool_]]") -> Longs:
    """The numbers of all records of some batches."""
    some = counts[which]
    before = np.repeat(np.cumsum(some) - some, some)
    return np.repeat(firsts[which], some) + np.arange(int(some.sum())) - before


def _span_end(unit: FoldUnit, survey: FoldSurvey) -> int:
    """The offset from which every offset is a restore point again. The marker of a transaction in the folded range may
    be beyond its end."""
    return unit.barriers.last if survey.transactions.any else survey.fold_end


def _log_sum(rows: "tuple[Segment, ...] | list[Segment]", found: CollectedRows, latest: LatestSums) -> LogSum:
    return LogSum(
        records=found.digest.records,
        stored_bytes=sum(row.stored_bytes for row in rows),
        digest=str(found.digest),
        latest=tuple((each.backup, each.records, str(each)) for each in latest.digests()),
    )


def _read_back(unit: FoldUnit, before: FoldSurvey, replaced: dict[str, Segment]) -> LogSum:
    """What the store has now, read with other seeds. A log without transactions must still have none."""
    rows = [replaced.get(row.token, row) for row in unit.rows]
    archived = FoldInput(unit.place, rows, _silent)
    survey = survey_log(archived, unit.barriers, None) if before.transactions.any else before
    with collect_rows(archived, _row_maker(unit, survey, 3), _slices(unit)) as found:
        return _log_sum(rows, found, found.sums(unit.barriers, values_only=unit.tombstones is not None))
