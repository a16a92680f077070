"""Partitions are put into tasks: each once, none split, all of a task with one leader."""

from hypothesis import given
from hypothesis import strategies as st

from logkeep.kafka.restore.replay.bundles import SIDE_BY_SIDE, TOGETHER_BYTES, TOGETHER_LOGS, bundles

LOGS = st.lists(
    st.tuples(st.integers(0, 3), st.one_of(st.integers(0, 10), st.integers(0, 3 * TOGETHER_BYTES))), max_size=200
)


@given(LOGS, st.integers(1, 8))
def test_every_log_is_in_one_bundle_of_its_leader(logs: list[tuple[int, int]], at_once: int) -> None:
    numbered = [(leader, size, number) for number, (leader, size) in enumerate(logs)]
    made = bundles(numbered, lambda log: log[0], lambda log: log[1], at_once)
    assert sorted(log for bundle in made for log in bundle) == sorted(numbered)
    for bundle in made:
        assert bundle
        assert len({leader for leader, _, _ in bundle}) == 1
        assert len(bundle) <= TOGETHER_LOGS
        together = sum(size for _, size, _ in bundle)
        assert len(bundle) <= SIDE_BY_SIDE or together <= TOGETHER_BYTES
        fair = max(sum(size for _, size in logs) // at_once, 1)
        assert len(bundle) == 1 or together <= fair * 17 / 16, "more than its share"
    sizes = [sum(size for _, size, _ in bundle) for bundle in made]
    assert sizes == sorted(sizes, reverse=True)


@given(st.integers(2, 40), st.integers(2, 8))
def test_equal_logs_keep_all_tasks_busy(count: int, at_once: int) -> None:
    made = bundles([1000] * count, lambda _: 1, lambda size: size, at_once)
    assert len(made) >= min(count, at_once)


@given(st.lists(st.integers(9_900, 10_100), min_size=2, max_size=8), st.integers(2, 4))
def test_nearly_equal_logs_are_shared_as_if_they_were_equal(sizes: list[int], at_once: int) -> None:
    """Two tasks for four partitions of two workers, not three: requests carry a batch of each."""
    made = bundles(sizes, lambda _: 1, lambda size: size, at_once)
    equal = bundles([10_000] * len(sizes), lambda _: 1, lambda size: size, at_once)
    assert sorted(map(len, made)) == sorted(map(len, equal))
