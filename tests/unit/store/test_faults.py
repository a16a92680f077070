"""The fault injector does what its plans say, so that the suites that stand on it can be believed."""

import signal
import subprocess
import sys
import textwrap
from pathlib import Path

import pytest

from logkeep.errors import StoreDenied, StoreUnreachable
from logkeep.store.local.store import LocalStore
from logkeep.store.memory import MemoryStore
from tests.support.faults.plan import Fault, Scripted, Seeded, denied_403, error_before, lost_ack
from tests.support.faults.store import Call, FaultyStore


def test_every_call_has_a_number() -> None:
    store = FaultyStore(MemoryStore())
    store.put_new("a", b"x")
    writer = store.open_new("b")
    writer.write(b"1")
    writer.write(b"2")
    writer.close()
    list(store.list(""))
    operations = ["put_new", "open_new", "write", "write", "close", "list"]
    assert [call.operation for call in store.calls] == operations
    assert store.calls[4] == Call(5, "close", "b")


def test_an_error_before_prevents_and_a_lost_answer_does_not() -> None:
    memory = MemoryStore()
    store = FaultyStore(memory, Scripted({1: error_before(), 2: lost_ack(), 3: denied_403()}))
    for name in ("before", "after"):
        with pytest.raises(StoreUnreachable):
            store.put_new(name, b"")
    with pytest.raises(StoreDenied):
        store.delete("after")
    assert [info.name for info in memory.list("")] == ["after"]


def test_reads_are_cut_and_flipped_and_listings_are_stale() -> None:
    slept: list[float] = []
    faults = {4: Fault(truncate_to=2), 5: Fault(flip_at=1), 6: Fault(hide_newest=1), 7: Fault(delay_s=5)}
    store = FaultyStore(MemoryStore(), Scripted(faults), sleep=slept.append)
    for name in ("a", "b", "c"):
        store.put_new(name, b"abc")
    assert store.get("a", 10) == b"ab"
    assert store.get_range("a", 0, 3) == b"acc"
    assert [info.name for info in store.list("")] == ["a", "b"]
    assert [info.name for info in store.list("")] == ["a", "b", "c"]
    assert slept == [5]


def test_seeded_faults_are_the_same_for_the_same_seed() -> None:
    first, second, other = (
        [plan(number, "get", "a") is not None for number in range(500)]
        for plan in (Seeded(1, 0.2), Seeded(1, 0.2), Seeded(2, 0.2))
    )
    assert first == second != other
    assert 60 < sum(first) < 140


@pytest.mark.parametrize("n", (1, 2, 3, 4))
def test_the_process_is_killed_after_the_call(n: int, tmp_path: Path) -> None:
    script = f"""
        from logkeep.store.local.store import LocalStore
        from tests.support.faults.plan import KillAfter
        from tests.support.faults.store import FaultyStore
        store = FaultyStore(LocalStore({str(tmp_path)!r}), KillAfter({n}))
        for name in ("1", "2", "3"):
            store.put_new(name, b"")
    """
    done = subprocess.run([sys.executable, "-c", textwrap.dedent(script)], check=False)
    assert done.returncode == (-signal.SIGKILL if n <= 3 else 0)
    assert [info.name for info in LocalStore(tmp_path).list("")] == ["1", "2", "3"][:n]
