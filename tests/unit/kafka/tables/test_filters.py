"""Bounds of pushed filters: no row that fulfils all filters is ever left out."""

import operator
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from logkeep.kafka.tables.filters import Bounds, bounds_of
from logkeep.model.table_format import ColumnFilter

_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
_TESTS: dict[str, Any] = {
    "=": operator.eq,
    "<": operator.lt,
    "<=": operator.le,
    ">": operator.gt,
    ">=": operator.ge,
    "in": lambda row, values: row in values,
}
_NUMBERS = st.integers(-3, 12)
_TIMES = st.builds(lambda us: _EPOCH + timedelta(microseconds=us), st.integers(-4000, 12_000))
_VALUES = {"topic": st.sampled_from(["a", "b", "c"]), "partition": _NUMBERS, "offset": _NUMBERS, "timestamp": _TIMES}


@st.composite
def filters(draw: st.DrawFn) -> ColumnFilter:
    column, comparison = draw(st.sampled_from(sorted(_VALUES))), draw(st.sampled_from(sorted(_TESTS)))
    some = st.lists(_VALUES[column], min_size=1, max_size=3).map(tuple)
    return ColumnFilter(column, comparison, draw(some if comparison == "in" else _VALUES[column]))  # type: ignore[arg-type]


def _inside(row: dict[str, Any], ms: int, bounds: Bounds) -> bool:
    low = (bounds.start is None or row["offset"] >= bounds.start) and (bounds.since_ms is None or ms >= bounds.since_ms)
    high = (bounds.end is None or row["offset"] < bounds.end) and (bounds.until_ms is None or ms < bounds.until_ms)
    return bounds.has_log(row["topic"], row["partition"]) and low and high


@given(st.lists(filters(), max_size=5), st.sampled_from("abc"), st.integers(0, 3), _NUMBERS, st.integers(-3, 11))
def test_no_row_that_fulfils_all_filters_is_left_out(
    pushed: list[ColumnFilter], topic: str, partition: int, offset: int, ms: int
) -> None:
    time = _EPOCH + timedelta(milliseconds=ms)
    row = {"topic": topic, "partition": partition, "offset": offset, "timestamp": time}
    wanted = all(_TESTS[each.comparison](row[each.column], each.value) for each in pushed)
    assert not wanted or _inside(row, ms, bounds_of(pushed))


def test_bounds_are_tight_where_filters_are() -> None:
    found = bounds_of(
        [
            ColumnFilter("topic", "in", ("a", "b")),
            ColumnFilter("Topic", "=", "b"),
            ColumnFilter("partition", "=", 3),
            ColumnFilter("offset", ">", 9),
            ColumnFilter("offset", "<=", 20),
            ColumnFilter("timestamp", ">=", _EPOCH + timedelta(seconds=5)),
            ColumnFilter("timestamp", "<", _EPOCH + timedelta(seconds=6)),
        ]
    )
    assert found == Bounds(frozenset({"b"}), frozenset({3}), 10, 21, 5000, 6001)


@pytest.mark.parametrize(
    "each",
    [
        ColumnFilter("key", "=", b"k"),
        ColumnFilter("offset", "in", (1, None)),
        ColumnFilter("offset", "=", True),
        ColumnFilter("timestamp", "<", datetime(2026, 1, 1)),  # noqa: DTZ001 - a session without zones
        ColumnFilter("topic", "<", "b"),
        ColumnFilter("offset", "in", ()),
    ],
)
def test_what_is_not_understood_limits_nothing(each: ColumnFilter) -> None:
    assert bounds_of([each]) == Bounds()
