"""This process works while Spark starts: failures, signals, progress and the lease around the hand-over."""

import os
import signal
import threading
import time
from collections.abc import Callable
from dataclasses import replace
from datetime import timedelta
from pathlib import Path

import msgspec
import pytest

from logkeep.engine.stop import SignalStop
from logkeep.errors import ClusterUnreachable, EngineUnavailable, Interrupted, LeaseLost, StoreFull, Terminated
from logkeep.model.time import random_token, utc_now
from logkeep.model.work import Progress
from logkeep.repository.access import create_repository
from logkeep.repository.chain.commits import SourceRef, read_chain
from logkeep.repository.chain.format import StoreFacts
from logkeep.repository.chain.lease import acquire, free, read_lease
from logkeep.repository.chain.owner import this_process
from logkeep.store.base import ObjectWriter, Store
from logkeep.store.local.store import LocalStore
from logkeep.store.wrapper import DelegatingStore
from tests.support.late_engine import LARGE, PATIENCE_S, Promising, ThreadedLateEngine, auto_engine
from tests.support.scripted import backup as scripted

ENDS = {0: 15, 1: 3}


class Done(msgspec.Struct, frozen=True):
    number: int


class Sink:
    """Remembers calls and their threads."""

    def __init__(self) -> None:
        self.calls: list[tuple[object, ...]] = []
        self.threads: set[str] = set()

    def _note(self, *call: object) -> None:
        self.calls.append(call)
        self.threads.add(threading.current_thread().name)

    def start(self, label: str, total_bytes: int, total_units: int) -> None:
        self._note("start", label, total_bytes, total_units)

    def update(self, done_bytes: int, done_units: int, failed_attempts: int) -> None:
        self._note(done_bytes, done_units, failed_attempts)

    def waiting(self, reason: str) -> None:
        self._note("waiting", reason)

    def finish(self) -> None:
        self._note("finish")


@pytest.fixture
def late() -> ThreadedLateEngine:
    return ThreadedLateEngine()


def _is_main() -> bool:
    return threading.current_thread() is threading.main_thread()


def _weight(unit: int) -> int:
    return LARGE + unit


def test_work_that_ends_before_spark_has_started_is_done_here(late: ThreadedLateEngine, tmp_path: Path) -> None:
    def task(unit: int, _progress: Progress) -> Done:
        assert _is_main()
        return Done(unit)

    found = auto_engine(late, tmp_path).map(task, [1, 2, 3], Done, label="x", weight=_weight)
    assert found == [Done(1), Done(2), Done(3)]
    assert (late.begun, late.parts) == (1, [])


def test_spark_is_begun_as_soon_as_it_is_expected_to_pay(late: ThreadedLateEngine, tmp_path: Path) -> None:
    engine = auto_engine(late, tmp_path)
    engine.expect(1)
    assert late.begun == 0, "one unit never starts Spark"
    engine.expect(4)
    assert late.begun == 1


def test_the_counts_of_both_engines_are_added_up_in_one_thread(late: ThreadedLateEngine, tmp_path: Path) -> None:
    sink = Sink()

    def task(unit: int, progress: Progress) -> Done:
        if _is_main():
            late.may_start.set()
            assert late.took_over.wait(PATIENCE_S)
        progress(unit)
        return Done(unit)

    auto_engine(late, tmp_path, sink=sink).map(task, [1, 2, 30], Done, label="x", weight=_weight)
    assert late.parts == [2]
    assert sink.calls[:2] == [("start", "x", 3 * LARGE + 33, 3), ("waiting", "Spark is starting")]
    assert ("waiting", "") in sink.calls
    assert sink.calls[-2:] == [(33, 3, 0), ("finish",)]
    assert sink.threads == {threading.main_thread().name}


def test_a_failure_there_ends_a_task_here_that_waits_for_lost_brokers(late: ThreadedLateEngine, tmp_path: Path) -> None:
    """A task that catches a lost connection must not take the other engine's error for its own."""
    rounds, reconnect = list[int](), threading.Event()

    def task(unit: int, progress: Progress) -> Done:
        if not _is_main():
            raise ClusterUnreachable("the other engine's broker")
        late.may_start.set()
        assert late.took_over.wait(PATIENCE_S)
        while len(rounds) < 1000:
            try:
                rounds.append(unit)
                reconnect.wait(0.01)
                progress(1)
            except ClusterUnreachable:
                continue
        return Done(unit)

    with pytest.raises(ClusterUnreachable, match="the other engine's broker"):
        auto_engine(late, tmp_path).map(task, [1, 2], Done, label="x", weight=_weight)
    assert len(rounds) < 1000


def test_a_spark_that_cannot_start_leaves_all_work_here_with_a_finding(
    late: ThreadedLateEngine, tmp_path: Path
) -> None:
    late.failure, noted = EngineUnavailable("no Java runtime found"), list[EngineUnavailable]()
    late.may_start.set()
    sink = Sink()
    engine = auto_engine(late, tmp_path, sink=sink, unavailable=noted.append)

    def task(unit: int, _progress: Progress) -> Done:
        assert _is_main()
        return Done(unit)

    for _ in range(2):
        assert engine.map(task, [1, 2, 3], Done, label="x", weight=_weight) == [Done(1), Done(2), Done(3)]
    assert noted == [late.failure]
    assert late.begun == 1, "it is not tried again"
    assert sink.calls.count(("waiting", "Spark is starting")) == 1


def test_a_unit_that_fails_here_cancels_those_of_spark(late: ThreadedLateEngine, tmp_path: Path) -> None:
    ended = threading.Event()

    def task(unit: int, progress: Progress) -> Done:
        if _is_main():
            late.may_start.set()
            assert late.took_over.wait(PATIENCE_S)
            raise StoreFull("no space", subject="disk")
        try:
            _until_stopped(progress)
        finally:
            ended.set()
        return Done(unit)

    with pytest.raises(StoreFull, match="disk: no space"):
        auto_engine(late, tmp_path).map(task, [1, 2, 3], Done, label="x", weight=_weight)
    assert ended.is_set(), "no unit is left behind"


def test_a_unit_that_fails_on_spark_ends_the_one_here(late: ThreadedLateEngine, tmp_path: Path) -> None:
    def task(_unit: int, progress: Progress) -> Done:
        if not _is_main():
            raise StoreFull("no space", subject="disk")
        late.may_start.set()
        _until_stopped(progress)
        return Done(0)

    late.workers = 3
    with pytest.raises(StoreFull, match="disk: no space"):
        auto_engine(late, tmp_path).map(task, [1, 2, 3], Done, label="x", weight=_weight)


@pytest.mark.parametrize(("number", "kind"), ((signal.SIGINT, Interrupted), (signal.SIGTERM, Terminated)))
@pytest.mark.parametrize("started", (False, True))
def test_a_signal_ends_both(
    late: ThreadedLateEngine, tmp_path: Path, number: int, kind: type[Interrupted], started: bool
) -> None:
    """Also while the unit here waits and reports nothing."""
    begun, ended = [], threading.Event()

    def task(unit: int, progress: Progress) -> Done:
        begun.append(unit)
        if _is_main():
            if started:
                late.may_start.set()
                assert late.took_over.wait(PATIENCE_S)
            os.kill(os.getpid(), number)
            time.sleep(600)
        try:
            _until_stopped(progress)
        finally:
            ended.set()
        return Done(unit)

    before = signal.getsignal(number)
    late.workers = 4
    with pytest.raises(kind) as caught:
        auto_engine(late, tmp_path).map(task, [1, 2, 3], Done, label="x", weight=_weight)
    assert type(caught.value) is kind
    assert ended.is_set() == started
    assert len(begun) == (3 if started else 1)
    assert signal.getsignal(number) is before


def test_a_soft_stop_lets_both_finish_and_the_second_ends_them(late: ThreadedLateEngine, tmp_path: Path) -> None:
    signals: list[int] = []

    def task(unit: int, progress: Progress) -> Done:
        if _is_main():
            late.may_start.set()
            assert late.took_over.wait(PATIENCE_S)
            signals.append(1)
            os.kill(os.getpid(), signal.SIGTERM)
            progress(1)
        return Done(unit)

    with SignalStop(soft=True) as stop:
        engine = auto_engine(late, tmp_path, stop=stop)
        assert engine.map(task, [1, 2], Done, label="x", weight=_weight) == [Done(1), Done(2)]
        late.took_over.clear()
        late.may_start.clear()
        with pytest.raises(Terminated):
            engine.map(task, [1, 2], Done, label="x", weight=_weight)
    assert len(signals) == 2


def _until_stopped(progress: Progress) -> None:
    """Work until a progress call raises; at most as long as a test waits."""
    deadline_s = time.monotonic() + PATIENCE_S
    while time.monotonic() < deadline_s:
        progress(1)
    raise AssertionError("it was never stopped")


@pytest.fixture
def place(tmp_path: Path) -> SourceRef:
    store = LocalStore(tmp_path / "repository")
    store.create()
    document = create_repository(store, StoreFacts(True, True, True), utc_now(), random_token).document
    return SourceRef(store, document.repository, "prod")


class HandingOver(DelegatingStore):
    """When this process writes its first object, Spark is ready; then something else happens."""

    def __init__(self, inner: Store, late: ThreadedLateEngine, then: Callable[[], None]) -> None:
        super().__init__(inner)
        self._late, self._then = late, then

    def open_new(self, name: str, size_hint: int = 0) -> ObjectWriter:
        if _is_main() and "/topics/" in name and not self._late.may_start.is_set():
            self._late.may_start.set()
            assert self._late.took_over.wait(PATIENCE_S)
            self._then()
        return self.inner.open_new(name, size_hint)


def _back_up(place: SourceRef, late: ThreadedLateEngine, cache: Path, then: Callable[[], None]) -> int:
    gated = replace(place, store=HandingOver(place.store, late, then))
    engine = Promising(auto_engine(late, cache))
    return scripted.back_up(gated, ENDS, engine, utc_now, random_token).id


def test_a_backup_by_two_engines_is_the_same_as_by_one(
    place: SourceRef, late: ThreadedLateEngine, tmp_path: Path
) -> None:
    made = _back_up(place, late, tmp_path, lambda: None)
    assert late.parts == [4]
    assert scripted.restored(place, made) == scripted.expected(ENDS)


def test_a_lease_that_is_lost_at_the_hand_over_commits_nothing(
    place: SourceRef, late: ThreadedLateEngine, tmp_path: Path
) -> None:
    def lose() -> None:
        found = read_lease(place)
        assert found is not None
        free(place, *found)
        acquire(place, this_process("another"), "backup", utc_now, timedelta(minutes=5))

    with pytest.raises(LeaseLost):
        _back_up(place, late, tmp_path, lose)
    assert late.parts == [4]
    assert read_chain(place).completed == ()
