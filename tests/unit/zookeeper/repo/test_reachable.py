"""What goes when backups go: intervals without other intervals."""

from itertools import pairwise

from hypothesis import given
from hypothesis import strategies as st

from logkeep.zookeeper.repo.reachable import without

_SPANS = st.lists(st.tuples(st.integers(0, 40), st.integers(0, 12)).map(lambda p: (p[0], p[0] + p[1])), max_size=6)


@given(_SPANS, _SPANS)
def test_exactly_the_numbers_of_one_and_of_no_other(
    spans: list[tuple[int, int]], others: list[tuple[int, int]]
) -> None:
    left = without(spans, others)
    assert _numbers(left) == sorted(set(_numbers(spans)) - set(_numbers(others)))
    assert all(a[1] < b[0] for a, b in pairwise(left))


def _numbers(spans: list[tuple[int, int]]) -> list[int]:
    return sorted(number for first, last in spans for number in range(first, last + 1))
