"""When garbage is marked, and when it is deleted."""

from datetime import UTC, datetime, timedelta

from logkeep.repository.upkeep.garbage import GarbageRules, decide
from logkeep.repository.upkeep.marks import StoredMark
from logkeep.store.base import ObjectInfo

NOW = datetime(2026, 11, 15, 10, 30, tzinfo=UTC)


def info(name: str, age_h: float) -> ObjectInfo:
    return ObjectInfo(name, 10, NOW - timedelta(hours=age_h), "v")


def test_garbage_is_marked_when_old_and_swept_when_marked_long_enough() -> None:
    marks = [
        StoredMark("m1", NOW - timedelta(hours=5), frozenset({"a", "live-again"})),
        StoredMark("m2", NOW - timedelta(hours=3), frozenset({"b"})),
    ]
    garbage = [info("a", 30), info("b", 30), info("old", 25), info("young", 23)]
    plan = decide(garbage, marks, GarbageRules(), NOW)
    assert [o.name for o in plan.to_sweep] == ["a"]
    assert [o.name for o in plan.to_mark] == ["old"]
    assert (plan.waiting, plan.spent_marks) == (2, ("m1",))
