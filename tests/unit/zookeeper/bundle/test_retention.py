"""Which bundles are pruned."""

from datetime import UTC, datetime, timedelta

import pytest
from hypothesis import given
from hypothesis import strategies as st

from logkeep.zookeeper.bundle.retention import AgedBundle, BundleRetention, Fate, judge
from logkeep.zookeeper.model.condition import Condition, condition, quality

NOW = datetime(2026, 11, 16, 2, 0, tzinfo=UTC)


def aged(days: float, how: Condition = Condition.VALID) -> AgedBundle:
    return AgedBundle(name=f"b{days}", taken=NOW - timedelta(days=days), condition=how)


def fates(bundles: list[AgedBundle], rules: BundleRetention) -> dict[str, Fate]:
    return {verdict.name: verdict.fate for verdict in judge(bundles, rules, NOW)}


def test_the_defaults_keep_a_week_and_at_least_three() -> None:
    assert fates([aged(d) for d in (1, 2, 3, 7, 7.01, 30)], BundleRetention()) == {
        "b1": Fate.KEEP, "b2": Fate.KEEP, "b3": Fate.KEEP, "b7": Fate.KEEP, "b7.01": Fate.DELETE, "b30": Fate.DELETE,
    }  # fmt: skip
    assert fates([aged(d) for d in (20, 21, 22, 23)], BundleRetention()) == {
        "b20": Fate.PROTECTED, "b21": Fate.PROTECTED, "b22": Fate.PROTECTED, "b23": Fate.DELETE,
    }  # fmt: skip


def test_keep_min_count_counts_good_ones_only() -> None:
    bundles = [aged(20, Condition.DAMAGED), aged(21), aged(22, Condition.PARTIAL), aged(23)]
    assert fates(bundles, BundleRetention(keep_min_count=2)) == {
        "b20": Fate.SKIP, "b21": Fate.PROTECTED, "b22": Fate.PROTECTED, "b23": Fate.DELETE,
    }  # fmt: skip


def test_keep_count_is_an_upper_bound_over_the_floor() -> None:
    bundles = [aged(d) for d in (1, 2, 3, 4, 5)]
    found = fates(bundles, BundleRetention(keep_count=4, keep_min_count=2))
    assert found["b5"] is Fate.DELETE
    assert [f for f in found.values() if f is not Fate.DELETE] == [Fate.KEEP] * 4
    assert list(fates(bundles, BundleRetention(keep_count=1, keep_min_count=2)).values()).count(Fate.DELETE) == 3


def test_the_newest_good_one_stays_whatever_the_rules_say() -> None:
    assert fates([aged(90), aged(91)], BundleRetention(keep_min_count=0, keep_count=1)) == {
        "b90": Fate.PROTECTED, "b91": Fate.DELETE,
    }  # fmt: skip


def test_unverified_ones_fill_no_place_and_nothing_takes_them() -> None:
    bundles = [aged(1, Condition.UNVERIFIED), aged(30), aged(31, Condition.UNVERIFIED)]
    assert fates(bundles, BundleRetention(keep_count=1, keep_min_count=1, delete_damaged=True)) == {
        "b1": Fate.KEEP, "b30": Fate.PROTECTED, "b31": Fate.SKIP,
    }  # fmt: skip


def test_damaged_ones_go_only_when_that_is_wished_and_a_good_one_is_there() -> None:
    old, young = aged(30, Condition.DAMAGED), aged(1, Condition.DAMAGED)
    assert fates([old, young, aged(2)], BundleRetention()) == {"b30": Fate.SKIP, "b1": Fate.KEEP, "b2": Fate.KEEP}
    wished = BundleRetention(delete_damaged=True)
    assert fates([old, young, aged(2)], wished) == {"b30": Fate.DELETE, "b1": Fate.KEEP, "b2": Fate.KEEP}
    assert fates([old, young], wished) == {"b30": Fate.SKIP, "b1": Fate.KEEP}


def test_a_damaged_one_is_beyond_the_count_behind_as_many_good_ones() -> None:
    bundles = [aged(1), aged(2), aged(3, Condition.DAMAGED)]
    assert fates(bundles, BundleRetention(keep_count=2, keep_min_count=1))["b3"] is Fate.SKIP
    assert fates(bundles, BundleRetention(keep_count=3, keep_min_count=1))["b3"] is Fate.KEEP


def test_a_bundle_from_the_future_stays_and_protects_no_other_from_counting() -> None:
    found = fates([aged(-3), aged(20), aged(21)], BundleRetention(keep_min_count=1))
    assert found == {"b-3": Fate.KEEP, "b20": Fate.PROTECTED, "b21": Fate.DELETE}


def test_without_a_rule_nothing_goes() -> None:
    assert set(fates([aged(d) for d in range(500, 510)], BundleRetention(keep_days=0, keep_min_count=0)).values()) == {
        Fate.KEEP
    }


@given(
    ages=st.lists(st.tuples(st.integers(-5, 60), st.sampled_from(Condition)), max_size=12, unique_by=lambda a: a[0]),
    rules=st.builds(BundleRetention, keep_days=st.integers(0, 40), keep_count=st.integers(0, 6),
                    keep_min_count=st.integers(0, 5), delete_damaged=st.booleans()),
)  # fmt: skip
def test_what_always_holds(ages: list[tuple[int, Condition]], rules: BundleRetention) -> None:
    bundles = [aged(days, how) for days, how in ages]
    verdicts = judge(bundles, rules, NOW)
    assert sorted(v.name for v in verdicts) == sorted(b.name for b in bundles)
    assert all(v.reasons for v in verdicts)
    gone = {v.name for v in verdicts if v.fate is Fate.DELETE}
    good = sorted((b for b in bundles if b.good and b.taken <= NOW), key=lambda b: b.taken, reverse=True)
    assert not gone & {b.name for b in good[: max(rules.keep_min_count, 1)]}
    if not rules.delete_damaged:
        assert not gone & {b.name for b in bundles if not b.good}
    left = [b for b in good if b.name not in gone]
    if rules.keep_count:
        assert len(left) <= max(rules.keep_count, rules.keep_min_count, 1)
    if rules.keep_days:
        old = [b for b in left if NOW - b.taken > timedelta(days=rules.keep_days)]
        assert not set(old) - set(good[: max(rules.keep_min_count, 1)])
    if any(b.good for b in bundles):
        assert any(b.good for b in bundles if b.name not in gone)


@pytest.mark.parametrize(
    ("facts", "score", "word"),
    [
        ({"restorable": True}, 100, Condition.VALID),
        ({"restorable": True, "repaired_files": 1}, 95, Condition.PARTIAL),
        ({"restorable": True, "repaired_files": 9}, 80, Condition.PARTIAL),
        ({"restorable": True, "old_hole": True}, 70, Condition.PARTIAL),
        ({"restorable": True, "old_hole": True, "repaired_files": 4}, 50, Condition.PARTIAL),
        ({"restorable": False, "repaired_files": 1}, 0, Condition.DAMAGED),
    ],
)
def test_the_score(facts: dict[str, bool], score: int, word: Condition) -> None:
    assert (quality(**facts), condition(**facts)) == (score, word)


def test_a_damaged_file_that_nothing_needs_makes_it_partial() -> None:
    assert condition(restorable=True, damaged_files=1) is Condition.PARTIAL
