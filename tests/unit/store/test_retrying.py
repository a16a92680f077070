"""Which calls are tried again, and what is made of a lost answer."""

import logging
import pickle
from collections.abc import Iterator
from contextlib import suppress

import pytest
import stamina

from logkeep.errors import AlreadyExists, StoreBusy, StoreDenied, StoreUnreachable, VersionMismatch
from logkeep.store.local.store import LocalStore
from logkeep.store.memory import MemoryStore
from logkeep.store.retrying import RetryingStore, RetryLimits
from tests.support.faults.plan import (
    Fault,
    Scripted,
    Seeded,
    busy_429,
    busy_503,
    denied_403,
    error_before,
    lost_ack,
    unreachable,
)
from tests.support.faults.store import FaultyStore

_PASSING = (error_before(), lost_ack(), busy_429(), busy_503())


@pytest.fixture(autouse=True)
def _no_waiting() -> Iterator[None]:
    with stamina.set_testing(True, attempts=4):
        yield


def _stores(faults: dict[int, Fault]) -> tuple[MemoryStore, FaultyStore, RetryingStore]:
    memory = MemoryStore()
    faulty = FaultyStore(memory, Scripted(faults))
    return memory, faulty, RetryingStore(faulty)


def _operations(faulty: FaultyStore) -> list[str]:
    return [call.operation for call in faulty.calls]


class TestPutNew:
    @pytest.mark.parametrize("fault", _PASSING)
    def test_succeeds_after_a_passing_fault(self, fault: Fault) -> None:
        memory, _, store = _stores({1: fault})
        store.put_new("a", b"ours")
        assert memory.get("a", 10) == b"ours"

    def test_reads_back_before_it_writes_again(self) -> None:
        _, faulty, store = _stores({1: lost_ack()})
        store.put_new("a", b"ours")
        assert _operations(faulty) == ["put_new", "get"]

    def test_writes_again_when_nothing_arrived(self) -> None:
        _, faulty, store = _stores({1: error_before()})
        store.put_new("a", b"ours")
        assert _operations(faulty) == ["put_new", "get", "put_new"]

    def test_survives_a_failing_read_back(self) -> None:
        _, faulty, store = _stores({1: lost_ack(), 2: busy_503()})
        store.put_new("a", b"ours")
        assert _operations(faulty) == ["put_new", "get", "get"]

    def test_a_late_first_write_that_meets_the_second_is_ours(self) -> None:
        memory, faulty, store = _stores({1: error_before()})
        arrives_late = faulty.inner.get

        def get(name: str, limit: int) -> bytes:
            try:
                return arrives_late(name, limit)
            finally:
                if name not in {info.name for info in memory.list("")}:
                    memory.put_new(name, b"ours")

        memory.get = get  # type: ignore[method-assign]  # the write arrives between the read-back and the second try
        store.put_new("a", b"ours")
        assert _operations(faulty) == ["put_new", "get", "put_new", "get"]

    def test_an_existing_name_without_doubt_is_refused_even_with_equal_bytes(self) -> None:
        memory, faulty, store = _stores({})
        memory.put_new("a", b"ours")
        with pytest.raises(AlreadyExists):
            store.put_new("a", b"ours")
        assert _operations(faulty) == ["put_new"]

    @pytest.mark.parametrize("theirs", (b"them", b"longer than ours"))
    def test_somebody_elses_bytes_after_doubt_are_a_refusal(self, theirs: bytes) -> None:
        memory, _, store = _stores({1: error_before()})
        memory.put_new("a", theirs)
        with pytest.raises(AlreadyExists):
            store.put_new("a", b"ours")
        assert memory.get("a", 100) == theirs

    def test_a_refusal_is_not_tried_again(self) -> None:
        _, faulty, store = _stores({1: denied_403()})
        with pytest.raises(StoreDenied):
            store.put_new("a", b"ours")
        assert _operations(faulty) == ["put_new"]

    def test_gives_up_in_the_end(self) -> None:
        _, _, store = _stores({number: busy_503() for number in range(1, 50)})
        with pytest.raises(StoreBusy):
            store.put_new("a", b"ours")


class TestReplace:
    @pytest.mark.parametrize("fault", _PASSING)
    def test_succeeds_after_a_passing_fault(self, fault: Fault) -> None:
        memory, _, store = _stores({1: fault})
        memory.put_new("a", b"old")
        store.replace("a", b"new", memory.head("a").version)
        assert memory.get("a", 10) == b"new"

    def test_does_not_write_twice_after_a_lost_answer(self) -> None:
        memory, faulty, store = _stores({1: lost_ack()})
        memory.put_new("a", b"old")
        store.replace("a", b"new", memory.head("a").version)
        assert _operations(faulty).count("replace") == 1

    def test_somebody_elses_change_after_doubt_is_a_refusal(self) -> None:
        memory, _, store = _stores({1: error_before()})
        memory.put_new("a", b"old")
        stale = memory.head("a").version
        memory.replace("a", b"theirs, longer", stale)
        with pytest.raises(VersionMismatch):
            store.replace("a", b"new", stale)
        assert memory.get("a", 100) == b"theirs, longer"


class TestReads:
    @pytest.mark.parametrize("fault", _PASSING)
    def test_are_repeated(self, fault: Fault) -> None:
        memory, _, store = _stores(dict.fromkeys((1, 3, 5, 7, 9), fault))
        memory.put_new("a", b"0123")
        assert store.get("a", 10) == b"0123"
        assert store.get_with_info("a", 10)[0] == b"0123"
        assert store.get_range("a", 1, 2) == b"12"
        assert store.head("a").size == 4
        store.delete("a")
        assert list(memory.list("")) == []

    def test_a_listing_goes_on_after_the_last_name(self) -> None:
        broken = Fault(after=unreachable(), items=3)
        memory, faulty, store = _stores({1: broken, 2: broken, 3: error_before()})
        names = [f"{number}" for number in range(8)]
        for name in names:
            memory.put_new(name, b"")
        assert [info.name for info in store.list("")] == names
        assert _operations(faulty) == ["list"] * 4

    def test_a_listing_that_stays_broken_is_an_error(self) -> None:
        _, _, store = _stores({number: error_before() for number in range(1, 50)})
        with pytest.raises(StoreUnreachable):
            list(store.list(""))

    def test_foreign_names_are_told_once(self, tmp_path_factory: pytest.TempPathFactory) -> None:
        root = tmp_path_factory.mktemp("root")
        local = LocalStore(root)
        local.put_new("a", b"")
        local.put_new("z", b"")
        (root / "b b").write_bytes(b"")
        store = RetryingStore(FaultyStore(local, Scripted({1: Fault(after=unreachable(), items=2)})))
        foreign: list[str] = []
        assert [info.name for info in store.list("", foreign=foreign)] == ["a", "z"]
        assert foreign == ["b b"]


@pytest.mark.parametrize("seed", range(20))
def test_under_random_faults_every_object_is_there_exactly_as_written(seed: int) -> None:
    memory = MemoryStore()
    store = RetryingStore(FaultyStore(memory, Seeded(seed, rate=0.3)))
    written: dict[str, bytes] = {}
    for number in range(40):
        name, data = f"n/{number:03d}", b"run %d" % number
        with suppress(StoreBusy, StoreUnreachable):  # gave up after 4 attempts: may or may not be there
            store.put_new(name, data)
            written[name] = data
    assert {name: memory.get(name, 100) for name in written} == written
    assert len(written) > 30


def test_is_picklable(tmp_path_factory: pytest.TempPathFactory) -> None:
    store = RetryingStore(LocalStore(tmp_path_factory.mktemp("root")), RetryLimits(attempts=2))
    copy = pickle.loads(pickle.dumps(store))  # noqa: S301  # our own bytes
    copy.put_new("a", b"x")
    assert store.get("a", 1) == b"x"


class TestFirstContact:
    """A store that never answered is given up soon; one that did is waited for."""

    PATIENCE = RetryLimits(total_s=300, first_contact_s=1.0, first_wait_s=0.01, longest_wait_s=0.05)

    def test_never_answered(self) -> None:
        faulty = FaultyStore(MemoryStore(), lambda _number, _operation, _name: error_before())
        with stamina.set_testing(False), pytest.raises(StoreUnreachable):
            RetryingStore(faulty, self.PATIENCE).get("a", 1)
        assert len(faulty.calls) > 1

    def test_answered_before(self) -> None:
        faulty = FaultyStore(MemoryStore(), Scripted(dict.fromkeys(range(2, 20), error_before())))
        store = RetryingStore(faulty, self.PATIENCE)
        with stamina.set_testing(False):
            store.put_new("a", b"x")
            assert store.get("a", 1) == b"x"

    LASTING = RetryLimits(total_s=300, first_contact_s=300, lasting_s=0.05, first_wait_s=0.01, longest_wait_s=0.02)

    def test_a_cause_that_rarely_passes_is_reported_soon(self) -> None:
        faulty = FaultyStore(MemoryStore(), lambda _number, _operation, _name: _refused())
        with stamina.set_testing(False), pytest.raises(StoreUnreachable):
            RetryingStore(faulty, self.LASTING).get("a", 1)
        assert len(faulty.calls) > 1

    def test_once_it_answered_such_a_cause_is_waited_for(self) -> None:
        faulty = FaultyStore(MemoryStore(), Scripted(dict.fromkeys(range(2, 30), _refused())))
        store = RetryingStore(faulty, self.LASTING)
        with stamina.set_testing(False):
            store.put_new("a", b"x")
            assert store.get("a", 1) == b"x"

    def test_any_other_cause_is_waited_for(self) -> None:
        faulty = FaultyStore(MemoryStore(), Scripted(dict.fromkeys(range(1, 30), error_before())))
        with stamina.set_testing(False):
            assert list(RetryingStore(faulty, self.LASTING).list("")) == []


def _refused() -> Fault:
    error = StoreUnreachable("connection refused")
    error.lasting = True
    return Fault(before=error)


@pytest.mark.parametrize(("fault", "shown"), ((error_before(), 2), (busy_503(), None)))
def test_the_first_retry_is_a_warning_unless_the_store_is_only_busy(
    fault: Fault, shown: int | None, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.WARNING, "logkeep")  # a command that ran in this process before has set another one
    _, _, store = _stores({1: fault, 2: fault})
    list(store.list(""))
    warned = [record.getMessage() for record in caplog.records if record.levelname == "WARNING"]
    assert [f"(attempt {shown})" in line for line in warned] == ([True] if shown else [])
