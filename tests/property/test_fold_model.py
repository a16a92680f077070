"""Random logs, folded: every kept backup has the same latest record of each key, judged by a model written apart."""

from dataclasses import replace

import numpy as np
import pytest

from logkeep.formats.compaction.barriers import Barrier, Barriers
from logkeep.formats.kafka.batches import walk
from logkeep.formats.kafka.buried_offsets import BuriedOffsets, encode_runs
from logkeep.kafka.fold.fold_task import fold_log
from logkeep.kafka.fold.units import FoldOutcome, FoldUnit, TombstoneRule
from logkeep.model.segments import Collection, LogName, Segment
from logkeep.model.time import random_token
from logkeep.repository.backups.burials import put_burial
from logkeep.repository.chain.commits import SourceRef
from logkeep.repository.segments.reader import StoredLog
from logkeep.repository.segments.writer import SegmentLimits, SegmentWriter
from logkeep.store.memory import MemoryStore
from tests.soak_counts import soak_count
from tests.support.kafka.fold_logs import (
    FoldedCase,
    OneBatch,
    latest_per_key,
    parsed,
    random_case,
    without_tombstones,
)

LOG = LogName(Collection.TOPICS, "state", "a" * 32, 0)
COUNTS = [240, pytest.param(soak_count(10_000), id="soak", marks=[pytest.mark.soak, pytest.mark.timeout(3600)])]


def stored(case: FoldedCase, place: SourceRef) -> tuple[Segment, ...]:
    rows: list[Segment] = []
    for start, end, data in case.rows:
        writer = SegmentWriter(place, LOG, start, SegmentLimits(1 << 30), 0, random_token)
        if data:
            writer.write(memoryview(data), walk(data).batches)
        writer.finish(end)
        rows += writer.segments
    return tuple(rows)


def unit_of(case: FoldedCase, place: SourceRef) -> FoldUnit:
    firsts = sorted(case.burials)
    runs = [encode_runs(BuriedOffsets.of(np.array(sorted(case.burials[first]), np.int64))) for first in firsts]
    buried = tuple((put_burial(place, data, random_token()),) for data in runs)
    return FoldUnit(place, LOG, stored(case, place), Barriers(case.cuts, tuple(firsts)), buried)


def read_back(unit: FoldUnit, done: FoldOutcome) -> list[OneBatch]:
    instead = dict(done.replaced)
    rows = [instead.get(row.token, row) for row in unit.rows]
    assert [(r.start, r.end) for r in rows] == [(r.start, r.end) for r in unit.rows]
    return [b for row in rows if row.has_object for b in parsed(bytes(StoredLog.of(unit.place, row).whole(1 << 30)))]


def place() -> SourceRef:
    return SourceRef(MemoryStore(), "0" * 32, "prod")


def folded(case: FoldedCase, **changes: object) -> tuple[FoldUnit, FoldOutcome, list[OneBatch]]:
    unit = replace(unit_of(case, place()), **changes)  # type: ignore[arg-type]  # fields of a unit
    done = fold_log(unit, lambda _: None)
    assert (done.problem, done.skipped) == ("", "")
    assert done.before is not None
    assert done.after is None or done.after.latest == done.before.latest
    return unit, done, read_back(unit, done)


def assert_same(case: FoldedCase, after: list[OneBatch], *, values_only: bool = False) -> None:
    before = case.batches
    for cut in case.cuts:
        was, now = (latest_per_key(log, cut, case.buried(cut.backup)) for log in (before, after))
        if values_only:
            was, now = without_tombstones(was), without_tombstones(now)
        assert now == was, f"backup {cut.backup}"


def assert_whole_or_thinner(case: FoldedCase, after: list[OneBatch]) -> None:
    """A batch is the old one byte for byte, or has fewer records and the same place, epoch and producer."""
    old = {batch.base: batch for batch in case.batches}
    for batch in after:
        was = old[batch.base]
        if batch.data != was.data:
            assert 0 < len(batch.records) < len(was.records)
            assert set(batch.records) < set(was.records)
            assert (batch.last, batch.producer, batch.data[12:16]) == (was.last, was.producer, was.data[12:16])
            assert batch.data[21:35] == was.data[21:35], "codec, flags, last offset delta and base time"


@pytest.mark.parametrize("count", COUNTS)
def test_every_kept_backup_is_the_same(count: int) -> None:
    dropped = 0
    for seed in range(count):
        case = random_case(seed)
        _, done, after = folded(case)
        assert_same(case, after)
        assert_whole_or_thinner(case, after)
        dropped += len(done.replaced)
    assert dropped > count // 4
    print(f"fold: {count:,} logs, every kept cut equal")


@pytest.mark.parametrize("count", COUNTS)
def test_tombstones_that_may_go_bring_no_key_back(count: int) -> None:
    """Cuts are old enough for some tombstones and not for others; a group has read up to some offset."""
    dropped = 0
    for seed in range(count // 3):
        case = random_case(seed + 1_000_000)
        cuts = tuple((cut.end, 60 + 10 * number) for number, cut in enumerate(case.cuts))
        rule = TombstoneRule(case.cuts[-1].end - seed % 5, 20, cuts)
        _, _, with_them = folded(case)
        _, _, after = folded(case, tombstones=rule)
        assert_same(case, after, values_only=True)
        assert_whole_or_thinner(case, after)
        dropped += sum(len(b.records) for b in with_them) - sum(len(b.records) for b in after)
    assert dropped > count // 15


@pytest.mark.parametrize("bits", [8, 72])
def test_keys_with_one_hash_lose_nothing(bits: int) -> None:
    """A hash of 8 bits is the same for many keys."""
    collisions = 0
    for seed in range(60):
        case = random_case(seed + 2_000_000)
        _, done, after = folded(case, hash_bits=bits)
        assert_same(case, after)
        collisions += done.collisions
    assert (collisions > 0) == (bits == 8)


def test_slices_in_temporary_files_decide_the_same() -> None:
    for seed in range(30):
        case = random_case(seed + 3_000_000)
        assert folded(case)[2] == folded(case, memory_bytes=2_000)[2]


def test_only_what_a_kept_backup_needs_stays() -> None:
    """Without transactions and burials: the latest records at every cut, and the last batch below it."""
    cases = 0
    for seed in range(150):
        case = random_case(seed + 4_000_000)
        if case.burials or any(batch.transactional for batch in case.batches) or case.cuts[-1].end < case.rows[-1][1]:
            continue
        _, _, after = folded(case)
        whole = [replace_start(cut) for cut in case.cuts]
        needed = {record[0] for cut in whole for record in latest_per_key(case.batches, cut, ()).values()}
        for cut in case.cuts:
            below = [batch for batch in case.batches if batch.base < cut.end]
            needed |= {offset for offset, _, _ in below[-1].records} if below else set()
        assert {offset for batch in after for offset, _, _ in batch.records} == needed
        cases += 1
    assert cases > 15


def replace_start(cut: Barrier) -> Barrier:
    """The log start of a backup does not decide what goes."""
    return cut._replace(start=0)


def test_records_younger_than_the_compaction_lag_stay() -> None:
    for seed in range(100):
        case = random_case(seed + 5_000_000)
        _, _, after = folded(case, young_ms=60)
        young = next((b.base for b in case.batches if int.from_bytes(b.data[35:43], "big", signed=True) >= 60), None)
        assert_same(case, after)
        if young is not None:
            assert [b.data for b in after if b.base >= young] == [b.data for b in case.batches if b.base >= young]


def test_a_barrier_left_out_is_noticed() -> None:
    """The model would notice a fold that forgets one kept backup."""
    wrong = 0
    for seed in range(100):
        case = random_case(seed + 6_000_000)
        if len(case.cuts) > 1:
            _, _, after = folded(replace(case, cuts=case.cuts[1:]))
            cut, buried = case.cuts[0], case.buried(case.cuts[0].backup)
            wrong += latest_per_key(after, cut, buried) != latest_per_key(case.batches, cut, buried)
    assert wrong > 10
