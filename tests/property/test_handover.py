"""Wherever the hand-over happens: each unit runs once, results are those of one engine, and no limit is exceeded."""

import tempfile
import threading
from pathlib import Path
from threading import Lock

import msgspec
from hypothesis import given, settings
from hypothesis import strategies as st

from logkeep.engine.inline import InlineEngine
from logkeep.model.work import Progress
from tests.support.late_engine import LARGE, ThreadedLateEngine, auto_engine


class Square(msgspec.Struct, frozen=True):
    number: int
    square: int


def square(unit: int, progress: Progress) -> Square:
    progress(unit)
    return Square(unit, unit * unit)


class Watched:
    """A task that opens the way for the late engine when this process begins its n-th unit, or at its end."""

    def __init__(self, late: ThreadedLateEngine, at_unit: int, *, inside: bool) -> None:
        self._late, self._at_unit, self._inside = late, at_unit, inside
        self._main = threading.current_thread()
        self._lock = Lock()
        self._running = 0
        self.begun: list[tuple[bool, int]] = []
        self.most_at_once = 0

    def __call__(self, unit: int, progress: Progress) -> Square:
        here = threading.current_thread() is self._main
        with self._lock:
            self.begun.append((here, unit))
            self._running += 1
            self.most_at_once = max(self.most_at_once, self._running)
        if here and sum(1 for each, _ in self.begun if each) == self._at_unit:
            self._late.may_start.set()
            if self._inside:  # until Spark has taken the rest, if there is any
                self._late.took_over.wait(0.2)
        done = square(unit, progress)
        with self._lock:
            self._running -= 1
        return done


@settings(max_examples=40, deadline=None)
@given(st.data(), st.lists(st.integers(0, 10**6), min_size=2, max_size=12), st.integers(2, 4), st.booleans())
def test_every_hand_over_gives_the_results_of_one_engine(
    data: st.DataObject, units: list[int], workers: int, inside: bool
) -> None:
    late = ThreadedLateEngine(workers)
    at_unit = data.draw(st.integers(0, len(units) + 1), "the hand-over happens at this unit")
    if at_unit == 0:
        late.may_start.set()
    task = Watched(late, at_unit, inside=inside)
    with tempfile.TemporaryDirectory() as cache:
        engine = auto_engine(late, Path(cache))
        at_once = engine.at_once(len(units))
        found = engine.map(task, units, Square, label="square", weight=lambda unit: LARGE + unit)
    assert found == InlineEngine().map(square, units, Square, label="square", weight=lambda unit: unit)
    assert sorted(unit for _, unit in task.begun) == sorted(units), "each was begun once"
    here = [unit for each, unit in task.begun if each]
    assert sum(late.parts) == len(units) - len(here), "the late engine got the rest, and nothing else"
    assert len(late.parts) <= 1
    assert here == sorted(units, reverse=True)[: len(here)], "the heaviest first"
    assert task.most_at_once <= at_once == min(workers, len(units))
    assert late.took_over.wait(0) or len(here) == len(units)
