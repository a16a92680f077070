"""`--engine auto`: which engine a `map` runs on, and how many units run at the same time."""

from collections.abc import Callable
from pathlib import Path

import msgspec
import pytest

from logkeep.engine.auto import AutoEngine, EngineChoice
from logkeep.engine.choice import Circumstances
from logkeep.engine.inline import InlineEngine
from logkeep.engine.speeds_file import SpeedsFile
from logkeep.model.work import Progress
from logkeep.store.base import Store
from logkeep.store.local.store import LocalStore
from logkeep.store.retrying import RetryingStore
from logkeep.store.throttled import ThrottledStore, TokenBucket
from tests.support.late_engine import ThreadedLateEngine

GB = 10**9


class Made(msgspec.Struct, frozen=True):
    number: int


def task(unit: int, _progress: Progress) -> Made:
    return Made(unit)


@pytest.fixture
def spark() -> ThreadedLateEngine:
    late = ThreadedLateEngine()
    late.may_start.set()
    return late


@pytest.fixture
def auto(spark: ThreadedLateEngine, tmp_path: Path) -> Callable[[int], AutoEngine]:
    choice = EngineChoice(SpeedsFile(tmp_path), lambda: Circumstances(workers=2))
    return lambda expected_bytes: AutoEngine(InlineEngine(), lambda: spark, choice, expected_bytes=expected_bytes)


@pytest.mark.parametrize(
    ("sizes", "on_spark"),
    (
        ([116 << 20] * 4, False),
        ([20 * GB], False),
        ([5 * GB] * 4, True),
        ([], False),
    ),
)
def test_each_map_is_chosen_by_its_units(
    auto: Callable[[int], AutoEngine], spark: ThreadedLateEngine, sizes: list[int], on_spark: bool
) -> None:
    done = auto(0).map(task, sizes, Made, label="copy", weight=lambda size: size)
    assert [each.number for each in done] == sizes
    assert spark.begun == on_spark


def test_units_without_a_weight_share_the_expected_bytes(
    auto: Callable[[int], AutoEngine], spark: ThreadedLateEngine
) -> None:
    auto(20 * GB).map(task, [1, 2, 3], Made, label="survey", weight=lambda _: 0)
    assert spark.begun == 1
    auto(GB).map(task, [1, 2, 3], Made, label="survey", weight=lambda _: 0)
    assert spark.begun == 1


class Limited(msgspec.Struct, frozen=True):
    """A unit that holds its store somewhere."""

    number: int
    place: tuple[Store, str]


def rate_of(unit: Limited, _progress: Progress) -> Made:
    store = unit.place[0]
    assert isinstance(store, RetryingStore)
    return Made(vars(vars(store.inner)["_upload"])["_rate"])


@pytest.mark.parametrize("each_bytes", [20 * GB, 1], ids=["both engines", "this process"])
def test_the_processes_of_a_map_keep_a_rate_limit_together(
    spark: ThreadedLateEngine, tmp_path: Path, each_bytes: int
) -> None:
    choice = EngineChoice(SpeedsFile(tmp_path), lambda: Circumstances(workers=2))
    engine = AutoEngine(InlineEngine(), lambda: spark, choice, expected_bytes=0, limited=True)
    store = RetryingStore(ThrottledStore(LocalStore(tmp_path), TokenBucket(8_000)))
    units = [Limited(number, (store, "prod")) for number in range(3)]
    rates = engine.map(rate_of, units, Made, label="merge", weight=lambda _: each_bytes)
    assert {made.number for made in rates} == ({4_000} if each_bytes > 1 else {8_000})


def test_limits_that_were_divided_for_one_engine_are_not_used_by_the_other(
    auto: Callable[[int], AutoEngine], spark: ThreadedLateEngine
) -> None:
    engine = auto(GB)
    assert engine.at_once(8) == 1
    engine.map(task, [1, 2, 3], Made, label="copy", weight=lambda _: 20 * GB)
    assert spark.begun == 0, "each of its units would have the whole limit"
    engine = auto(20 * GB)
    assert engine.at_once(8) == 2
    engine.map(task, [1, 2, 3], Made, label="copy", weight=lambda _: 1)
    assert spark.begun == 2, "as promised"
    engine.map(task, [1, 2, 3], Made, label="copy", weight=lambda _: 1)
    assert spark.begun == 2, "a promise is for one map"
    assert engine.at_once(1) == 1
