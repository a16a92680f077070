"""Which verification of a backup counts: no weaker one hides a deeper one, and damage remains until disproved."""

from datetime import UTC, datetime, timedelta

from hypothesis import assume, given
from hypothesis import strategies as st

from logkeep.model.ids import BackupId
from logkeep.repository.backups.verdicts import DAMAGED, GOOD, LEVELS, depth, proven_depth, verdict, verdicts
from logkeep.repository.chain.layout import VerificationName, verification, verified

BEGIN = datetime(2026, 11, 18, tzinfo=UTC)
UNKNOWN = "semantic"
"""A level of a later release."""

levels = st.sampled_from([*LEVELS, UNKNOWN])
runs = st.tuples(levels, st.sampled_from([GOOD, DAMAGED]))
histories = st.lists(runs, min_size=1, max_size=12)


def name(minute: int, run: tuple[str, str], backup: int = 1) -> VerificationName:
    """As it comes back from a listing."""
    when = (BEGIN + timedelta(minutes=minute)).strftime("%Y%m%dT%H%M%S%fZ")
    parsed = verified(verification("prod", BackupId(backup), when, *run, "0" * 16))
    assert parsed is not None
    return parsed


def names(history: list[tuple[str, str]]) -> list[VerificationName]:
    return [name(minute, run) for minute, run in enumerate(history)]


def needed_depth(bad: VerificationName) -> int:
    """What a source has is no damage of the archive: `records` is enough."""
    return depth("records" if bad.level == "source" else bad.level)


def disproves(good: VerificationName, bad: VerificationName) -> bool:
    return good.verdict == GOOD and good.time > bad.time and proven_depth(good.level) >= needed_depth(bad)


@given(histories)
def test_damage_remains_until_a_later_run_as_deep_is_good(history: list[tuple[str, str]]) -> None:
    run = names(history)
    bad = [one for one in run if one.verdict == DAMAGED]
    remaining = [one for one in bad if not any(disproves(later, one) for later in run)]
    found = verdict(run)
    assert list(found.damage) == remaining
    assert found.damaged == bool(remaining)
    if remaining:
        assert found.counts in remaining
        assert depth(found.level) == max(depth(one.level) for one in remaining)


@given(histories)
def test_without_damage_the_deepest_run_since_the_last_damage_counts(history: list[tuple[str, str]]) -> None:
    run = names(history)
    found = verdict(run)
    assume(not found.damaged)
    last_bad = max((one.when for one in run if one.verdict == DAMAGED), default="")
    since = [one for one in run if one.when > last_bad]
    deepest = max(proven_depth(one.level) for one in since)
    assert found.counts == [one for one in since if proven_depth(one.level) == deepest][-1]


@given(histories, levels)
def test_a_weaker_good_run_changes_nothing(history: list[tuple[str, str]], level: str) -> None:
    before = verdict(names(history))
    assume(proven_depth(level) < (needed_depth(before.counts) if before.damaged else proven_depth(before.level)))
    after = verdict(names([*history, (level, GOOD)]))
    assert (after.damaged, after.counts) == (before.damaged, before.counts)


@given(histories, runs)
def test_a_run_that_finds_damage_makes_any_backup_damaged(history: list[tuple[str, str]], run: tuple[str, str]) -> None:
    bad = (run[0], DAMAGED)
    assert verdict(names([*history, bad])).damaged
    assert set(verdict(names(history)).damage) <= set(verdict(names([*history, bad])).damage)


@given(histories)
def test_a_whole_run_at_the_deepest_level_ends_all_known_damage(history: list[tuple[str, str]]) -> None:
    assume(all(level != UNKNOWN for level, _ in history))
    found = verdict(names([*history, (LEVELS[-1], GOOD)]))
    assert (found.damaged, found.level) == (False, LEVELS[-1])


@given(st.permutations(range(8)), st.lists(runs, min_size=8, max_size=8))
def test_the_order_of_a_listing_does_not_matter(order: list[int], history: list[tuple[str, str]]) -> None:
    run = names(history)
    assert verdict(run[at] for at in order) == verdict(run)


@given(histories, histories)
def test_each_backup_is_judged_by_its_own_runs(first: list[tuple[str, str]], second: list[tuple[str, str]]) -> None:
    one, two = names(first), [name(minute, run, backup=2) for minute, run in enumerate(second)]
    assert verdicts([*two, *one]) == {BackupId(1): verdict(one), BackupId(2): verdict(two)}


@given(runs)
def test_at_the_same_moment_damage_counts(run: tuple[str, str]) -> None:
    assert verdict([name(0, (run[0], GOOD)), name(0, (run[0], DAMAGED))]).damaged
