"""The plan for merging parts: never too many, order kept, little rewritten."""

from random import Random

import pytest
from hypothesis import given
from hypothesis import strategies as st

from logkeep.repository.parts import plan_parts
from tests.property.untimed import untimed

_Parts = list[list[int]]
"""Each part as the numbers of the backups whose rows it holds, and a size per backup beside it."""


def _append(parts: _Parts, sizes: list[int], rows: int, limit: int) -> tuple[_Parts, int]:
    """Carry a plan out; the second value is how many old rows were written again."""
    plan = plan_parts([sum(sizes[b] for b in part) for part in parts], rows, limit)
    assert [*plan.keep, *plan.merge] == list(range(len(parts)))
    sizes.append(rows)
    if not rows and not plan.merge:
        return parts, 0
    moved = [backup for index in plan.merge for backup in parts[index]]
    return [*(parts[i] for i in plan.keep), [*moved, len(sizes) - 1]], sum(sizes[b] for b in moved)


def _run(deltas: list[int], limit: int) -> float:
    """Append every delta; how often a row was rewritten on average."""
    parts: _Parts = []
    sizes: list[int] = []
    rewritten = 0
    for rows in deltas:
        parts, again = _append(parts, sizes, rows, limit)
        rewritten += again
        assert len(parts) <= limit
    assert [b for part in parts for b in part] == [b for b, rows in enumerate(sizes) if rows]
    return rewritten / max(1, sum(sizes))


def _shapes(chance: Random, count: int = 2000) -> dict[str, list[int]]:
    """How backups may grow, among them histories made to be bad for some rule that was tried."""
    numbers = range(count)
    return {
        "equal": [1000 for _ in numbers],
        "ones": [1 for _ in numbers],
        "varied": [int(10 ** chance.uniform(0, 5)) for _ in numbers],
        "tiny or large": [chance.choice((1, 100_000)) for _ in numbers],
        "growing": [n + 1 for n in numbers],
        "shrinking": [count - n for n in numbers],
        "a large base, then little": [10 if n else 1_000_000 for n in numbers],
        "now and then large": [50_000 if n % 97 == 0 else chance.randrange(1, 50) for n in numbers],
        "halving": [max(1, 2**20 >> (n % 21)) for n in numbers],
        "small, large, middle, then ones": [*[1] * 14, 10**6, 1000, *[1] * (count - 16)],
        "geometric, then ones": [*(10**6 * 2 ** (16 - n) for n in range(16)), *[1] * (count - 16)],
    }


@pytest.mark.parametrize("shape", _shapes(Random(7)))
def test_two_thousand_backups_rewrite_each_row_at_most_five_times(shape: str) -> None:
    average = _run(_shapes(Random(7))[shape], 16)
    print(f"{shape}: {average:.2f} rewrites per row")
    assert average <= 5


@untimed
@given(st.lists(st.integers(0, 100_000), max_size=150), st.integers(1, 16))
def test_any_appends_keep_limit_and_order(deltas: list[int], limit: int) -> None:
    _run(deltas, limit)


_SIZES = st.integers(1, 10**6) | st.sampled_from([1, 2, 1000, 10**6])


@untimed
@given(st.lists(_SIZES, max_size=300), st.integers(2, 16))
def test_any_appends_stay_below_the_proven_bound(deltas: list[int], limit: int) -> None:
    assert _run(deltas, limit) <= 2 * limit + len(deltas) / 2 ** (limit - 1)


@untimed
@given(st.lists(st.integers(0, 10**6), max_size=40), st.integers(0, 10**6), st.integers(1, 16))
def test_too_many_parts_from_elsewhere_are_brought_under_the_limit(existing: list[int], new: int, limit: int) -> None:
    plan = plan_parts(existing, new, limit)
    assert [*plan.keep, *plan.merge] == list(range(len(existing)))
    assert len(plan.keep) + bool(plan.merge or new) <= limit


def test_a_limit_of_zero_is_refused() -> None:
    with pytest.raises(ValueError, match="one part"):
        plan_parts([], 1, 0)
