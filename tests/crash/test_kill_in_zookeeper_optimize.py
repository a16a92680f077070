"""Merging killed after every store call: all backups read as before, are merged by the next run, survive collection."""

import shutil
from pathlib import Path

import pytest

from logkeep.model.time import random_token, utc_now
from logkeep.repository.chain.commits import SourceRef
from logkeep.repository.chain.write_session import writing
from logkeep.repository.upkeep.garbage import collect
from logkeep.store.base import Store
from logkeep.store.local.store import LocalStore
from tests.crash.points import AT_ONCE, KILLED, in_child
from tests.crash.seeds import seeded_part
from tests.support.faults.plan import KillAfter, no_faults
from tests.support.faults.store import FaultyStore
from tests.support.zookeeper.merged_backups import Growing, everything, log_objects, optimize
from tests.support.zookeeper.repositories import archived, new_local_place


class Prepared:
    """Five small backups of two files."""

    def __init__(self, root: Path) -> None:
        self.root = root / "prepared"
        self.growing = Growing(root / "server", new_local_place(self.root))
        for number in range(4):
            self.growing.backup(roll=number == 2)
        self.backups = everything(self.growing.place)
        self.growing.last += 1
        self.growing.server.add(self.growing.log, [self.growing.last])
        self.growing.server.zxid = self.growing.last

    def place(self, root: Path, store: Store | None = None) -> SourceRef:
        place = self.growing.place
        return SourceRef(store or LocalStore(root), place.repository, place.source)


@pytest.fixture(scope="module")
def prepared(tmp_path_factory: pytest.TempPathFactory) -> Prepared:
    return Prepared(tmp_path_factory.mktemp("optimize"))


def calls(prepared: Prepared, to: Path) -> int:
    shutil.copytree(prepared.root, to)
    counted = FaultyStore(LocalStore(to), no_faults)
    done = optimize(prepared.place(to, counted))
    assert (done.objects_before, done.objects_after) == (5, 2)
    assert everything(prepared.place(to)) == prepared.backups
    return len(counted.calls)


def killed(prepared: Prepared, directory: Path, points: list[int]) -> None:
    for point in points:
        root = directory / "victim"
        shutil.copytree(prepared.root, root)
        victim = prepared.place(root, FaultyStore(LocalStore(root), KillAfter(point)))
        assert in_child(lambda v=victim: optimize(v)) == KILLED, f"call {point} was never made"  # type: ignore[misc]  # bound now
        place = prepared.place(root)
        assert everything(place) == prepared.backups, point
        optimize(place)
        archived(place, prepared.growing.server)
        with writing(place, "gc", utc_now, random_token) as session:
            collect(session, AT_ONCE)
        assert len(log_objects(place)) == 3, f"killed after call {point}, it was not brought to its end"
        kept = everything(place)
        assert {number: kept[number] for number in prepared.backups} == prepared.backups, point
        shutil.rmtree(root)


def test_killed_at_a_part_of_the_store_calls(prepared: Prepared, tmp_path: Path) -> None:
    points = list(range(1, calls(prepared, tmp_path / "counted") + 1))
    killed(prepared, tmp_path, seeded_part("zookeeper optimize", points, 12))


@pytest.mark.soak
def test_killed_after_every_store_call(prepared: Prepared, tmp_path: Path) -> None:
    made = calls(prepared, tmp_path / "counted")
    killed(prepared, tmp_path, list(range(1, made + 1)))
    print(f"zookeeper optimize: killed after each of {made} store calls, all backups as they were")
