"""Which segments may become one object, and which are worth it."""

from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from logkeep.kafka.merge import of_topics
from logkeep.model.segments import Codec, Collection, LogName, Proof, Segment
from logkeep.repository.upkeep.merge_plan import MergeRule, plan_merges
from tests.property.untimed import many

LOG = LogName(Collection.TOPICS, "orders", "a", 0)
RULE = MergeRule(100)


def row(start: int, end: int, size: int = 10, **more: object) -> Segment:
    fields: dict[str, object] = {
        "log": LOG,
        "first": start,
        "token": f"{start:08x}{end:08x}",
        "records": 1,
        "plain_bytes": size,
        "base_time_ms": -1,
        "max_time_ms": -1,
        "sha256": "0" * 64,
        "plain_sha256": "0" * 64,
    }
    return Segment(start=start, end=end, stored_bytes=size, **{**fields, **more})  # type: ignore[arg-type]  # made by hand


def spans(rows: list[Segment], starts: tuple[int, ...] = (0,), rule: MergeRule = RULE) -> list[list[int]]:
    """Where the pieces of each run begin."""
    return [[s.start for s in run] for run in plan_merges(rows, {LOG: starts}, rule, of_topics)]


def test_neighbours_are_merged_up_to_the_target() -> None:
    rows = [row(i, i + 1, 30) for i in range(7)]
    assert spans(rows) == [[0, 1, 2], [3, 4, 5]]


def test_nothing_is_merged_over_a_gap() -> None:
    assert spans([row(0, 5), row(5, 9), row(10, 12), row(12, 15)]) == [[0, 5], [10, 12]]


def test_a_range_without_an_object_goes_along() -> None:
    empty = row(5, 9, 0, has_object=False)
    assert spans([row(0, 5), empty, row(9, 12)]) == [[0, 5, 9]]
    assert spans([row(0, 5), empty]) == [], "one object is merged with nothing"


@pytest.mark.parametrize(
    "other",
    [
        {"log": LogName(Collection.TOPICS, "orders", "b", 0)},
        {"log": LogName(Collection.TOPICS, "orders", "a", 1)},
        {"codec": Codec.ZSTD},
        {"proof": Proof.UNPROVEN},
        {"stored_bytes": 100},
    ],
)
def test_only_like_is_merged_with_like(other: dict[str, object]) -> None:
    size = int(str(other.pop("stored_bytes", 10)))
    assert spans([row(0, 5), row(5, 9, size, **other)]) == []


@pytest.mark.parametrize(("start", "merged"), [(4, True), (5, False), (8, False), (9, True)])
def test_no_backup_begins_between_the_pieces(start: int, merged: bool) -> None:
    """One that begins at 5 needs the second piece and not the first, and the first may become garbage."""
    assert bool(spans([row(0, 5), row(5, 9)], (0, start))) is merged


def test_positions_that_two_rows_hold_are_left_alone() -> None:
    """A log that was left out for a while and copied anew; an object whose row another backup has shortened."""
    anew = row(3, 7, token="f" * 16)
    assert spans([row(0, 5), row(5, 9), anew, row(9, 12), row(12, 14)]) == [[9, 12]]
    shortened = row(5, 7, token=row(5, 9).token)
    assert spans([row(0, 5), row(5, 9), shortened]) == []


def test_a_large_piece_is_not_copied_for_the_sake_of_small_ones() -> None:
    assert spans([row(0, 5, 60), row(5, 6, 3), row(6, 7, 3)]) == [[5, 6]]
    assert spans([row(0, 5, 60), row(5, 6, 3)]) == []


def test_few_pieces_wait_for_more() -> None:
    rows = [row(i, i + 1, 1) for i in range(7)]
    assert spans(rows, rule=MergeRule(100, least=8)) == []
    assert spans([*rows, row(7, 8, 1)], rule=MergeRule(100, least=8)) == [list(range(8))]


def test_a_byte_is_copied_a_few_times_and_not_once_per_round() -> None:
    """A thousand rounds, merged as they come: what is copied in all stays near the size times its logarithm."""
    rows: list[Segment] = []
    copied = 0
    for i in range(1000):
        rows.append(row(i, i + 1, 1))
        for run in plan_merges(rows, {}, MergeRule(1 << 20, least=8), of_topics):
            copied += sum(s.stored_bytes for s in run)
            merged = row(run[0].start, run[-1].end, sum(s.stored_bytes for s in run))
            rows = [*(s for s in rows if s not in run), merged]
    assert len(rows) < 64
    assert copied < 1000 * 12


@many
@given(
    st.lists(st.tuples(st.integers(0, 30), st.integers(1, 6), st.integers(0, 60), st.booleans()), max_size=14),
    st.lists(st.integers(0, 40), max_size=4),
    st.integers(2, 4),
)
def test_whatever_is_merged_matters_to_no_backup(
    drawn: list[tuple[int, int, int, bool]], starts: list[int], least: int
) -> None:
    rows = [
        row(s, s + n, size if has else 0, has_object=has, token=f"{i:016x}")
        for i, (s, n, size, has) in enumerate(drawn)
    ]
    for run in plan_merges(rows, {LOG: starts}, MergeRule(100, least), of_topics):
        low, high = run[0].start, run[-1].end
        assert all(a.end == b.start for a, b in pairwise(run))
        assert not any(s not in run and s.start < high and s.end > low for s in rows)
        assert not any(run[0].end <= start < high for start in starts)
        assert sum(s.stored_bytes for s in run) <= 100
        assert sum(s.has_object for s in run) >= least
