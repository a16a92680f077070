"""A backup into a directory, killed after every single store call, and with any single answer lost."""

import shutil
from pathlib import Path

import pytest

from logkeep.model.time import random_token, utc_now
from logkeep.repository.access import create_repository
from logkeep.repository.chain.commits import SourceRef
from logkeep.repository.chain.format import StoreFacts
from logkeep.store.local.store import LocalStore
from logkeep.store.retrying import RetryingStore, RetryLimits
from tests.crash.points import DONE, KILLED, check_after, in_child, run_backup
from tests.crash.seeds import seeded_part
from tests.support.faults.plan import KillAfter, Scripted, lost_ack, no_faults
from tests.support.faults.store import FaultyStore

_SOON = RetryLimits(first_wait_s=0.001, longest_wait_s=0.01)
FIRST, SECOND, THIRD = {0: 6, 1: 3}, {0: 9, 1: 8}, {0: 14, 1: 8, 2: 5}


class Prepared:
    """A repository with two backups, to be copied for each crash point."""

    def __init__(self, root: Path) -> None:
        self.root = root / "prepared"
        store = LocalStore(self.root)
        store.create()
        repository = create_repository(store, StoreFacts(True, True, True), utc_now(), random_token)
        self.id = repository.document.repository
        self.before = {run_backup(self.place(self.root), e): e for e in (FIRST, SECOND)}
        counting = FaultyStore(LocalStore(self.copy(root / "counted")), no_faults)
        run_backup(SourceRef(counting, self.id, "prod"), THIRD)
        self.calls = len(counting.calls)

    def place(self, root: Path) -> SourceRef:
        return SourceRef(LocalStore(root), self.id, "prod")

    def copy(self, to: Path) -> Path:
        shutil.copytree(self.root, to)
        return to


@pytest.fixture(scope="module")
def prepared(tmp_path_factory: pytest.TempPathFactory) -> Prepared:
    return Prepared(tmp_path_factory.mktemp("crash"))


def test_the_count_of_store_calls_is_what_the_suite_covers(prepared: Prepared) -> None:
    assert prepared.calls > 40


@pytest.mark.parametrize("third", range(3))
def test_killed_after_every_store_call(prepared: Prepared, tmp_path: Path, third: int) -> None:
    for k in range(1 + third, prepared.calls + 1, 3):
        root = prepared.copy(tmp_path / str(k))
        victim = SourceRef(FaultyStore(LocalStore(root), KillAfter(k)), prepared.id, "prod")
        assert in_child(lambda v=victim: run_backup(v, THIRD)) == KILLED, f"call {k} was never made"  # type: ignore[misc]  # bound now
        check_after(prepared.place(root), prepared.before, THIRD)
        shutil.rmtree(root)


@pytest.mark.parametrize("share", [3, pytest.param(1, marks=pytest.mark.soak)])
def test_an_answer_is_lost(prepared: Prepared, tmp_path: Path, share: int) -> None:
    for k in seeded_part("answer lost", list(range(1, prepared.calls + 1)), share):
        root = prepared.copy(tmp_path / str(k))
        faulty = FaultyStore(LocalStore(root), Scripted({k: lost_ack()}))
        victim = SourceRef(RetryingStore(faulty, _SOON), prepared.id, "prod")
        ended = in_child(lambda v=victim: run_backup(v, THIRD))  # type: ignore[misc]  # bound now
        assert ended == DONE, f"a lost answer to call {k} was not survived"
        check_after(prepared.place(root), prepared.before, THIRD)
        shutil.rmtree(root)


def test_a_run_without_faults_is_a_run(prepared: Prepared, tmp_path: Path) -> None:
    root = prepared.copy(tmp_path / "clean")
    assert in_child(lambda: run_backup(prepared.place(root), THIRD)) == DONE
    check_after(prepared.place(root), prepared.before, THIRD)
