"""The inline engine keeps the promises of `Engine.map`, without any process."""

import os
import signal
import threading
import time
from contextlib import suppress

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from logkeep.engine.inline import InlineEngine
from logkeep.engine.stop import SignalStop
from logkeep.errors import Interrupted, StoreBusy, StoreFull, TaskFailed, Terminated
from logkeep.model.work import Progress


class Result(msgspec.Struct, frozen=True):
    number: int


class Sink:
    """Remembers what an engine told."""

    def __init__(self) -> None:
        self.calls: list[tuple[object, ...]] = []

    def start(self, label: str, total_bytes: int, total_units: int) -> None:
        self.calls.append(("start", label, total_bytes, total_units))

    def update(self, done_bytes: int, done_units: int, failed_attempts: int) -> None:
        self.calls.append((done_bytes, done_units, failed_attempts))

    def waiting(self, reason: str) -> None: ...

    def finish(self) -> None:
        self.calls.append(("finish",))


class FailingTask:
    """Raises the given errors, one per attempt, then succeeds."""

    def __init__(self, *errors: Exception) -> None:
        self._errors = list(errors)
        self.attempts = 0

    def __call__(self, unit: int, progress: Progress) -> Result:
        self.attempts += 1
        progress(10)
        if self._errors:
            raise self._errors.pop(0)
        return Result(unit)


def _map(task: FailingTask, sink: Sink | None = None, stop: SignalStop | None = None) -> list[Result]:
    engine = InlineEngine(sink=sink, stop=stop, clock=lambda: 0.0)
    return engine.map(task, [7], Result, label="x", weight=lambda unit: unit)


@given(st.lists(st.integers(0, 50)))
def test_heaviest_units_start_first_and_results_come_in_the_order_of_the_units(units: list[int]) -> None:
    started: list[int] = []

    def task(unit: int, _progress: Progress) -> Result:
        started.append(unit)
        return Result(unit * 2)

    results = InlineEngine().map(task, units, Result, label="x", weight=lambda unit: unit)
    assert results == [Result(unit * 2) for unit in units]
    assert started == sorted(units, reverse=True)


def test_units_of_equal_weight_keep_their_order() -> None:
    started: list[str] = []

    def task(unit: str, _progress: Progress) -> Result:
        started.append(unit)
        return Result(0)

    InlineEngine().map(task, ["c", "a", "b"], Result, label="x", weight=lambda _unit: 1)
    assert started == ["c", "a", "b"]


def test_what_a_retry_can_cure_is_tried_again_and_counted_once() -> None:
    sink = Sink()
    task = FailingTask(StoreBusy("slow down"), ConnectionError("gone"), StoreBusy("slow down"))
    assert _map(task, sink) == [Result(7)]
    assert task.attempts == 4
    assert sink.calls[0] == ("start", "x", 7, 1)
    assert sink.calls[-2:] == [(10, 1, 3), ("finish",)]


def test_after_four_attempts_the_tasks_own_error_comes_back() -> None:
    task = FailingTask(*[StoreBusy("slow down", subject="bucket", remedy="wait") for _ in range(5)])
    with pytest.raises(StoreBusy, match="bucket: slow down") as caught:
        _map(task)
    assert (task.attempts, caught.value.remedy) == (4, "wait")


def test_what_no_retry_can_cure_is_tried_once() -> None:
    task = FailingTask(StoreFull("no space", subject="disk"))
    with pytest.raises(StoreFull, match="disk: no space"):
        _map(task)
    assert task.attempts == 1


def test_an_unforeseen_error_becomes_one_line() -> None:
    task = FailingTask(*[ValueError("two\nlines") for _ in range(4)])
    with pytest.raises(TaskFailed, match=r"^ValueError: two lines \(test_inline\.py:\d+\)$"):
        _map(task)


def test_updates_come_at_most_four_times_a_second() -> None:
    sink = Sink()
    now_s = iter(range(1000))

    def task(unit: int, progress: Progress) -> Result:
        for _ in range(100):
            progress(1)
        return Result(unit)

    # Each look at the clock is 10 ms after the one before.
    engine = InlineEngine(sink=sink, clock=lambda: next(now_s) / 100)
    engine.map(task, [1], Result, label="x", weight=lambda unit: unit)
    updates = [call for call in sink.calls if isinstance(call[0], int)]
    assert len(updates) == 6
    assert updates[-1] == (100, 1, 0)


@pytest.mark.parametrize(("number", "kind"), ((signal.SIGINT, Interrupted), (signal.SIGTERM, Terminated)))
def test_a_signal_ends_a_task_that_waits(number: int, kind: type[Interrupted]) -> None:
    def task(_unit: int, _progress: Progress) -> Result:
        os.kill(os.getpid(), number)
        time.sleep(600)
        raise AssertionError("slept on")

    before = [signal.getsignal(each) for each in (signal.SIGINT, signal.SIGTERM)]
    with pytest.raises(kind) as caught:
        InlineEngine().map(task, [1, 2], Result, label="x", weight=lambda unit: unit)
    assert type(caught.value) is kind
    assert [signal.getsignal(each) for each in (signal.SIGINT, signal.SIGTERM)] == before


def test_a_soft_stop_lets_the_round_finish() -> None:
    def task(unit: int, progress: Progress) -> Result:
        os.kill(os.getpid(), signal.SIGTERM)
        progress(1)
        return Result(unit)

    with SignalStop(soft=True) as stop:
        results = InlineEngine(stop=stop).map(task, [1], Result, label="x", weight=lambda unit: unit)
        assert results == [Result(1)]
        assert stop.requested
        assert not stop.cancelled
        with pytest.raises(Terminated):
            InlineEngine(stop=stop).map(task, [1], Result, label="x", weight=lambda unit: unit)


def test_no_new_unit_starts_after_a_stop() -> None:
    stop = SignalStop()
    started: list[int] = []

    def task(unit: int, _progress: Progress) -> Result:
        started.append(unit)
        stop.request()
        return Result(unit)

    with pytest.raises(Interrupted):
        InlineEngine(stop=stop).map(task, [1, 2, 3], Result, label="x", weight=lambda unit: unit)
    assert started == [3]


def test_a_task_cannot_swallow_a_signal() -> None:
    def task(unit: int, _progress: Progress) -> Result:
        with suppress(Interrupted):
            os.kill(os.getpid(), signal.SIGINT)
            time.sleep(600)
        return Result(unit)

    with pytest.raises(Interrupted):
        InlineEngine().map(task, [1], Result, label="x", weight=lambda unit: unit)


def test_waiting_ends_with_the_wish_to_stop() -> None:
    """Signals arrive in the thread that waits; nobody may have to wait for the rest of an hour."""
    with SignalStop(soft=True) as stop:
        threading.Timer(0.05, os.kill, (os.getpid(), signal.SIGTERM)).start()
        stop.wait(3600.0)
        assert stop.requested
        assert not stop.cancelled
        stop.wait(3600.0)


def test_inside_of_a_round_only_the_second_wish_raises_also_after_an_engine_was_used() -> None:
    with SignalStop(soft=True) as stop, stop.raising():
        InlineEngine(stop=stop).map(FailingTask(), [1], Result, label="one", weight=lambda _: 0)
        signal.raise_signal(signal.SIGTERM)
        with pytest.raises(Terminated):
            signal.raise_signal(signal.SIGTERM)
