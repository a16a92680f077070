"""The engine of threads keeps the promises of `Engine.map`, and really works on several units at a time."""

import os
import signal
import threading

import msgspec
import pytest

from logkeep.engine.stop import SignalStop
from logkeep.engine.threads import ThreadedEngine
from logkeep.errors import Interrupted, StoreBusy, StoreFull, TaskFailed, Terminated
from logkeep.model.work import Progress


class Result(msgspec.Struct, frozen=True):
    number: int


class Sink:
    def __init__(self) -> None:
        self.started: tuple[str, int, int] | None = None
        self.last = (0, 0, 0)
        self.finished = 0

    def start(self, label: str, total_bytes: int, total_units: int) -> None:
        self.started = (label, total_bytes, total_units)

    def update(self, done_bytes: int, done_units: int, failed_attempts: int) -> None:
        self.last = (done_bytes, done_units, failed_attempts)

    def waiting(self, reason: str) -> None: ...

    def finish(self) -> None:
        self.finished += 1


def _square(unit: int, progress: Progress) -> Result:
    progress(unit)
    return Result(unit * unit)


def test_results_come_in_the_order_of_the_units_and_all_bytes_are_told() -> None:
    sink = Sink()
    units = [3, 1, 2, 9, 5]
    found = ThreadedEngine(3, sink=sink).map(_square, units, Result, label="x", weight=lambda u: u)
    assert [r.number for r in found] == [u * u for u in units]
    assert sink.started == ("x", 20, 5)
    assert (sink.last, sink.finished) == ((20, 5, 0), 1)


@pytest.mark.parametrize("parallel", [1, 2, 4])
def test_so_many_units_run_at_the_same_time_and_no_more(parallel: int) -> None:
    """Each waits until as many are inside as there may be: with fewer it would never end."""
    barrier, inside, most = threading.Barrier(parallel, timeout=60), threading.Semaphore(parallel), []

    def task(unit: int, _progress: Progress) -> Result:
        most.append(inside.acquire(blocking=False))
        barrier.wait()
        inside.release()
        return Result(unit)

    ThreadedEngine(parallel).map(task, list(range(2 * parallel)), Result, label="x", weight=lambda _: 1)
    assert all(most)


def test_what_a_retry_can_cure_is_tried_again_and_counted_once() -> None:
    sink, errors = Sink(), [StoreBusy("slow"), StoreBusy("slow")]

    def task(unit: int, progress: Progress) -> Result:
        progress(10)
        if errors:
            raise errors.pop()
        return Result(unit)

    assert ThreadedEngine(2, sink=sink).map(task, [7], Result, label="x", weight=lambda _: 10) == [Result(7)]
    assert sink.last == (10, 1, 2)


@pytest.mark.parametrize(("error", "kind"), [(StoreFull("full"), StoreFull), (ValueError("odd"), TaskFailed)])
def test_the_first_error_ends_it(error: Exception, kind: type[Exception]) -> None:
    def task(unit: int, _progress: Progress) -> Result:
        if unit == 1:
            raise error
        return Result(unit)

    with pytest.raises(kind):
        ThreadedEngine(2).map(task, [1, 2, 3], Result, label="x", weight=lambda u: -u)


@pytest.mark.parametrize(("number", "kind"), [(signal.SIGINT, Interrupted), (signal.SIGTERM, Terminated)])
def test_a_signal_ends_all_units_at_their_next_word(number: signal.Signals, kind: type[Interrupted]) -> None:
    def task(unit: int, progress: Progress) -> Result:
        if unit == 0:
            os.kill(os.getpid(), number)
        while True:
            progress(0)

    with pytest.raises(kind):
        ThreadedEngine(2).map(task, [0, 1, 2, 3], Result, label="x", weight=lambda _: 1)


def test_no_new_unit_starts_after_a_stop() -> None:
    stop, seen = SignalStop(), []

    def task(unit: int, _progress: Progress) -> Result:
        seen.append(unit)
        stop.request()
        return Result(unit)

    with pytest.raises(Interrupted):
        ThreadedEngine(1, stop=stop).map(task, [1, 2, 3], Result, label="x", weight=lambda _: 1)
    assert seen == [1]
