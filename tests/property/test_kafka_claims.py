"""Units read one log at different times, while compaction and retention work on it: the joined claims still tile it.

The model is a list of batches. Before each unit reads, some batches are compacted away and the log start may move,
also into the middle of a batch. Units go through the product's own range, writer and join.
"""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from itertools import pairwise
from uuid import UUID

import pytest
from hypothesis import given
from hypothesis import strategies as st

from logkeep.formats.kafka.batch_index import decode
from logkeep.kafka.backup.claims import Joined, join_claims
from logkeep.kafka.backup.copy.range_state import RangeCopy
from logkeep.kafka.backup.units import CopyRange, CopyResult
from logkeep.kafka.client.fetch import Code, FetchedPartition
from logkeep.kafka.logs.lost_offset import LogFacts, explain
from logkeep.model.ranges import Range
from logkeep.model.segments import Segment
from logkeep.repository.backups.cut_coverage import untiled
from logkeep.repository.backups.manifest import KnownGap, LogCut
from logkeep.repository.chain import layout
from logkeep.repository.chain.commits import SourceRef
from logkeep.repository.segments.writer import SegmentLimits, SegmentWriter
from logkeep.store.memory import MemoryStore
from tests.property.untimed import many
from tests.support.kafka.handmade_batches import Batch, dense

TOPIC = UUID(int=7)


@dataclass(frozen=True)
class Log:
    """What a broker has at one moment."""

    batches: tuple[Batch, ...]
    start: int
    end: int

    def fetch(self, offset: int, count: int) -> FetchedPartition | None:
        """As many batches from `offset` on; None: out of range."""
        if not self.start <= offset <= self.end:
            return None
        served = [b for b in self.batches if b.last >= offset][:count]
        data = b"".join(b.encode() for b in served)
        return FetchedPartition(TOPIC, 0, Code.NONE, self.end, self.end, self.start, None, -1, -1, memoryview(data))


@dataclass(frozen=True)
class Read:
    """One unit and the log as it found it."""

    wanted: CopyRange
    log: Log
    count: int
    segment_bytes: int
    compacted: frozenset[Batch]
    """What the cleaner has removed by then."""


@st.composite
def logs(draw: st.DrawFn) -> Log:
    """Batches of any width with holes of any width between them, and a log start that cares for no batch."""
    batches: list[Batch] = []
    at = draw(st.integers(0, 5))
    for width, hole, epoch in draw(
        st.lists(st.tuples(st.integers(1, 6), st.integers(0, 2), st.integers(0, 1)), min_size=1, max_size=7)
    ):
        batches.append(dense(at, width, epoch=epoch + len(batches) // 4))
        at += width + hole
    end = batches[-1].last + 1
    return Log(tuple(batches), draw(st.integers(batches[0].base, min(batches[0].last + 12, end))), end)


@st.composite
def histories(draw: st.DrawFn) -> tuple[Log, list[Read]]:
    """A log at the cut, and its units in the order they were read, each with the log of that moment."""
    log = whole = draw(logs())
    borders = sorted({log.start, log.end, *draw(st.lists(st.integers(log.start, log.end), min_size=1, max_size=4))})
    ranges = [CopyRange("orders", TOPIC, 0, lo, hi, "history", first=lo == whole.start) for lo, hi in pairwise(borders)]
    reads: list[Read] = []
    gone: set[Batch] = set()
    steps = draw(st.sampled_from([[0], [0, 0, 1, 4, 11]]))
    for wanted in draw(st.permutations(ranges)):
        log, cleaned = _later(log, steps, draw)
        gone |= cleaned
        size = draw(st.sampled_from([1, 150, 10_000]))
        reads.append(Read(wanted, log, draw(st.integers(1, 4)), size, frozenset(gone)))
    return whole, reads


def _later(log: Log, steps: list[int], draw: st.DrawFn) -> tuple[Log, set[Batch]]:
    """Some time passes; what the cleaner took. The last batch is never compacted; the start only grows."""
    gone = {batch for batch in log.batches[:-1] if draw(st.integers(0, 2)) == 0}
    start = min(log.start + draw(st.sampled_from(steps)), log.end)
    return Log(tuple(b for b in log.batches if b not in gone and b.last >= start), start, log.end), gone


def _copy(read: Read, place: SourceRef, tokens: "_Tokens") -> CopyResult:
    copy = RangeCopy(read.wanted, 1)
    writer = SegmentWriter(place, read.wanted.log, read.wanted.lo, SegmentLimits(read.segment_bytes), 0, tokens)
    while copy.outcome is None:
        fetched = read.log.fetch(copy.offset, read.count)
        if fetched is None:
            verdict = explain(copy.position, LogFacts(TOPIC, read.log.start, read.log.end))
            assert copy.judge(verdict)
            continue
        taken = copy.take(fetched)
        if taken.skip:
            writer.skip(taken.skip.start, taken.skip.end)
        writer.write(fetched.records, taken.batches)
    writer.finish(copy.claimed_to())
    return CopyResult(unit="u", ranges=(copy.result(),), segments=tuple(writer.segments))


class _Tokens:
    def __init__(self) -> None:
        self._next = 0

    def __call__(self) -> str:
        self._next += 1
        return f"{self._next:016x}"


def _rows(place: SourceRef, piece: Segment) -> list[tuple[int, int]]:
    """Base and last offset of every batch in an object."""
    if not piece.has_object:
        return []
    rows = decode(place.store.get(layout.index_of(place.source, piece.log, piece.first, piece.token), 1 << 20)).rows
    return list(zip(rows["base_offset"].tolist(), rows["last_offset"].tolist(), strict=True))


def _visible(place: SourceRef, joined: Sequence[Segment]) -> list[tuple[int, int]]:
    """Those that a reader of the archive sees."""
    return [(base, last) for s in joined for base, last in _rows(place, s) if last >= s.start and base < s.end]


@many
@given(histories())
def test_joined_claims_tile_the_cut_and_show_every_batch_once(history: tuple[Log, list[Read]]) -> None:
    whole, reads = history
    place, tokens = SourceRef(MemoryStore(), "r", "prod"), _Tokens()
    copied = [_copy(read, place, tokens) for read in reads]
    if not reads:
        return
    (joined,) = join_claims(copied)
    known = [KnownGap(joined.log, g.start, g.end, "retention") for g in joined.gaps]
    claims = {joined.log: [Range(s.start, s.end) for s in joined.segments]}
    assert list(untiled([LogCut(joined.log, whole.start, whole.end)], known, claims)) == []
    visible = _visible(place, joined.segments)
    assert visible == sorted(set(visible)), "a batch is seen twice or out of order"
    assert set(visible) <= {(b.base, b.last) for b in whole.batches}
    held = [row for s in joined.segments for row in _rows(place, s)]
    assert len(held) == len(set(held)), "a batch has two owners"
    survivors = {(b.base, b.last) for b in reads[-1].log.batches}
    assert survivors <= set(visible)
    _admits_every_loss(whole, reads, set(visible), joined.gaps)


def _admits_every_loss(whole: Log, reads: list[Read], visible: set[tuple[int, int]], gaps: tuple[Range, ...]) -> None:
    """A record that is neither archived nor in a gap was compacted, not lost to retention."""
    compacted = {b for read in reads for b in read.compacted}
    for batch in set(whole.batches) - compacted:
        if (batch.base, batch.last) not in visible:
            lost = range(max(batch.base, whole.start), batch.last + 1)
            assert all(any(g.start <= o < g.end for g in gaps) for o in lost), batch
    if not any(read.log.start > whole.start for read in reads):
        assert not gaps, "a gap, though retention never came"


@many
@given(logs(), st.integers(1, 5), st.sampled_from([1, 150, 10_000]))
def test_one_unit_archives_a_quiet_log_as_it_is(log: Log, count: int, segment_bytes: int) -> None:
    wanted = CopyRange("orders", TOPIC, 0, log.start, log.end, "history", first=True)
    place = SourceRef(MemoryStore(), "r", "prod")
    copied = _copy(Read(wanted, log, count, segment_bytes, frozenset()), place, _Tokens())
    segments, result = copied.segments, copied.ranges[0]
    expected = [b for b in log.batches if b.last >= log.start]
    stored = b"".join(place.store.get(layout.segment("prod", s), 1 << 20) for s in segments if s.has_object)
    assert stored == b"".join(b.encode() for b in expected)
    changed = [b for a, b in pairwise(expected) if a.epoch != b.epoch]
    epochs = [(b.epoch, b.base) for b in [*expected[:1], *changed]]
    assert [(e.epoch, e.offset) for e in result.epochs] == epochs
    ends = [*(a.last + 1 for a, b in pairwise(expected) if a.epoch != b.epoch), *(b.last + 1 for b in expected[-1:])]
    assert [e.end for e in result.epochs] == ends
    assert sum(s.records for s in segments) == sum(b.count for b in expected)
    for piece in segments[:-1]:
        assert piece.stored_bytes >= segment_bytes


FIRST, ACROSS, LAST = dense(0, 10), dense(10, 5), dense(15, 5)
"""The second reaches over the border between the units [0, 12) and [12, 20)."""


def _two_units(first: Log, second: Log) -> tuple[Joined, list[CopyResult]]:
    place, tokens = SourceRef(MemoryStore(), "r", "prod"), _Tokens()
    whole = CopyRange("orders", TOPIC, 0, 0, 20, "history", first=True)
    wanted = [replace(whole, hi=12), replace(whole, lo=12, first=False)]
    logs = zip(wanted, (first, second), strict=True)
    copied = [_copy(Read(w, log, 9, 10_000, frozenset()), place, tokens) for w, log in logs]
    return join_claims(copied)[0], copied


def _log(*batches: Batch, start: int = 0) -> Log:
    return Log(batches, start, 20)


@pytest.mark.parametrize(
    ("first", "second", "claims", "gaps", "reached"),
    [
        pytest.param(_log(FIRST, ACROSS, LAST), _log(FIRST, ACROSS, LAST), [(0, 15), (15, 20)], [], 15, id="quiet"),
        pytest.param(_log(FIRST, LAST), _log(FIRST, ACROSS, LAST), [(0, 12), (12, 20)], [], 12, id="gone-before-first"),
        pytest.param(
            _log(FIRST, ACROSS, LAST), _log(FIRST, LAST), [(0, 15), (15, 20)], [], 15, id="gone-before-second"
        ),
        pytest.param(_log(LAST, start=15), _log(ACROSS, LAST), [(15, 20)], [(0, 15)], 12, id="lost-with-the-border"),
        pytest.param(
            _log(ACROSS, LAST, start=12),
            _log(FIRST, ACROSS, LAST),
            [(10, 15), (15, 20)],
            [(0, 10)],
            15,
            id="start-at-the-border",
        ),
        pytest.param(
            _log(ACROSS, LAST, start=14),
            _log(ACROSS, LAST, start=14),
            [(10, 15), (15, 20)],
            [(0, 10)],
            15,
            id="start-behind-the-border",
        ),
        pytest.param(
            _log(FIRST, ACROSS, LAST), _log(LAST, start=18), [(0, 15), (15, 20)], [], 15, id="start-moved-later"
        ),
    ],
)
def test_what_can_happen_at_a_border(
    first: Log, second: Log, claims: list[tuple[int, int]], gaps: list[tuple[int, int]], reached: int
) -> None:
    joined, copied = _two_units(first, second)
    assert [(s.start, s.end) for s in joined.segments] == claims
    assert [(g.start, g.end) for g in joined.gaps] == gaps
    assert copied[0].ranges[0].reached == reached


def test_what_retention_took_is_no_evidence_that_nothing_was_there() -> None:
    _, (first, _) = _two_units(_log(LAST, start=15), _log(LAST, start=15))
    assert first.ranges[0].empty_to == -1
    _, (first, _) = _two_units(_log(FIRST, LAST), _log(FIRST, LAST))
    assert first.ranges[0].empty_to == 15
