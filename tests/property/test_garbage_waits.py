"""The times at which `prune` promises to free garbage are those at which it does."""

from datetime import UTC, datetime, timedelta

from hypothesis import given
from hypothesis import strategies as st

from logkeep.repository.upkeep.garbage import GarbagePlan, GarbageRules, decide
from logkeep.repository.upkeep.garbage_waits import WaitReason
from logkeep.repository.upkeep.marks import StoredMark
from logkeep.store.base import ObjectInfo

NOW = datetime(2026, 11, 18, tzinfo=UTC)
GRAIN = timedelta(milliseconds=5)
hours = st.integers(0, 48).map(lambda number: timedelta(hours=number))
objects = st.lists(hours, max_size=8).map(
    lambda ages: [ObjectInfo(f"o{at}", at + 1, NOW - age, "v") for at, age in enumerate(ages)]
)
named = st.frozensets(st.sampled_from([f"o{at}" for at in range(8)]))
marks = st.lists(st.tuples(hours, named), max_size=3).map(
    lambda found: [StoredMark(f"m{at}", NOW - age, names) for at, (age, names) in enumerate(found)]
)
rules = st.builds(GarbageRules, age=hours, interval=hours)


def after(plan: GarbagePlan, known: list[StoredMark], now: datetime) -> list[StoredMark]:
    """The marks after a run."""
    return [*known, StoredMark(f"{now}", now, frozenset(info.name for info in plan.to_mark))]


@given(objects, marks, rules)
def test_all_garbage_is_freed_now_or_has_a_time(
    garbage: list[ObjectInfo], known: list[StoredMark], rule: GarbageRules
) -> None:
    plan = decide(garbage, known, rule, NOW)
    now = {*plan.to_sweep, *(() if rule.interval else plan.to_mark)}
    assert sum(wait.objects for wait in plan.waits) == len(garbage) - len(now)
    assert sum(wait.stored_bytes for wait in plan.waits) == sum(o.size for o in garbage if o not in now)
    assert all(NOW < wait.first <= wait.last for wait in plan.waits)


@given(objects, marks, rules)
def test_marked_garbage_is_freed_at_its_time_and_not_before(
    garbage: list[ObjectInfo], known: list[StoredMark], rule: GarbageRules
) -> None:
    plan = decide(garbage, known, rule, NOW)
    left = [info for info in garbage if info not in plan.to_sweep]
    for wait in (wait for wait in plan.waits if wait.why is WaitReason.MARKED):
        marked = after(plan, known, NOW)
        assert len(decide(left, marked, rule, wait.last).to_sweep) == wait.objects
        assert decide(left, marked, rule, wait.first).to_sweep
        assert not decide(left, marked, rule, wait.first - 3 * GRAIN).to_sweep


@given(objects, marks, rules)
def test_young_garbage_is_freed_by_two_runs(
    garbage: list[ObjectInfo], known: list[StoredMark], rule: GarbageRules
) -> None:
    plan = decide(garbage, known, rule, NOW)
    for wait in (wait for wait in plan.waits if wait.why is WaitReason.YOUNG):
        first_run = wait.last - rule.interval
        marked = after(plan, known, NOW)
        second = after(decide(garbage, marked, rule, first_run), marked, first_run)
        assert len(decide(garbage, second, rule, wait.last).to_sweep) == len(garbage)
        early = decide(garbage, marked, rule, wait.first - rule.interval - 3 * GRAIN)
        assert len(garbage) - len(after_all(early, garbage, marked)) == wait.objects, "none of them is marked yet"


def after_all(plan: GarbagePlan, garbage: list[ObjectInfo], known: list[StoredMark]) -> set[str]:
    """Garbage that a run has marked or finds marked."""
    marked = {name for mark in known for name in mark.names} | {info.name for info in plan.to_mark}
    return marked & {info.name for info in garbage}
