"""Import and export of Zeebe's backups, killed after every store call and file-system step.

In a directory and on a real S3 server; at file-system steps also with everything dropped that was not synced. The next
run completes the work, earlier backups are untouched, and Zeebe never sees a manifest without its files. `make test`
takes a few of the points, `make soak` all of them.
"""

from collections.abc import Callable, Iterable, Mapping
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest

from logkeep.checkpoint.zeebe.inventory import read_inventory
from logkeep.checkpoint.zeebe.repo.export_run import StoreLayout
from logkeep.engine.inline import InlineEngine
from logkeep.model.ids import BackupId
from logkeep.model.time import random_token, utc_now
from logkeep.repository.backups.verdicts import GOOD
from logkeep.repository.chain.commits import SourceRef
from logkeep.repository.chain.owner import this_process
from logkeep.repository.chain.write_session import writing
from logkeep.repository.upkeep.garbage import collect
from logkeep.repository.verify.run import Verifier
from logkeep.store.access import create_place, open_store
from logkeep.store.base import Store
from logkeep.store.local.store import LocalStore
from logkeep.store.memory import MemoryStore
from tests.crash.forker import End, Forker
from tests.crash.points import AT_ONCE
from tests.crash.process_faults import SYSTEM_CALL, UNSYNCED
from tests.crash.seeds import seeded_part, soak_part
from tests.crash.victims import KILLED_AFTER, NO_FAULT
from tests.support.kafka.whole_backups import new_place
from tests.support.servers.s3 import ENVIRONMENT, S3Server
from tests.support.zeebe.archived import exported, imported, is_good
from tests.support.zeebe.golden import unpacked_store

pytestmark = [pytest.mark.xdist_group("seaweed-faults"), pytest.mark.timeout(3600)]
FEW = 2
MOST_BYTES = 1 << 24
Objects = dict[str, bytes]


class Bench:
    """Backups 10 and 20 of a real Zeebe, archived; every point has a store of its own with backup 10 in it."""

    def __init__(self, home: Path, forks: Forker) -> None:
        self.home, self._forks = home, forks
        self.zeebe = LocalStore(unpacked_store(home / "zeebe"))
        self.archive = new_place(home / "archive", "zeebe")
        imported(self.archive, self.zeebe, 10)
        self.repository = objects(self.archive.store)
        imported(self.archive, self.zeebe, 20)

    def run(self, function: str, url: str, fault: str, call: int, **more: Any) -> End:
        return self._forks.run(
            f"tests.crash.zeebe_victim:{function}",
            url=url,
            repository=self.archive.repository,
            number=20,
            fault=fault,
            call=call,
            environment=ENVIRONMENT,
            **more,
        )


class Import:
    """Of backup 20 into a repository."""

    name = "import"

    def __init__(self, bench: Bench, _: StoreLayout) -> None:
        self._bench, self.prepared = bench, bench.repository

    def victim(self, url: str, fault: str, call: int) -> End:
        return self._bench.run("import_one", url, fault, call, zeebe=str(self._bench.home / "zeebe"))

    def check(self, store: Store) -> None:
        place = SourceRef(store, self._bench.archive.repository, "zeebe")
        verify(place, 10)
        imported(place, self._bench.zeebe, 20)
        with writing(place, "prune", utc_now, random_token) as session:
            collect(session, AT_ONCE)
        for number in (10, 20):
            verify(place, number)
            out = MemoryStore()
            exported(place, number, out, StoreLayout.S3)
            assert is_good(out, number)


class Export:
    """Of backup 20 into a store of Zeebe."""

    name = "export"

    def __init__(self, bench: Bench, layout: StoreLayout) -> None:
        self._bench, self._layout, whole = bench, layout, MemoryStore()
        exported(bench.archive, 10, whole, layout)
        self.prepared = objects(whole)
        exported(bench.archive, 20, whole, layout)
        self._whole = objects(whole)

    def victim(self, url: str, fault: str, call: int) -> End:
        archive = str(self._bench.home / "archive")
        return self._bench.run("export_one", url, fault, call, archive=archive, layout=self._layout.value)

    def check(self, store: Store) -> None:
        left = objects(store)
        assert left.items() >= self.prepared.items(), "the earlier backup was changed"
        for copy in (copy for backup in read_inventory(store) for copy in backup.copies if copy.completed):
            folder = copy.place.manifest.rpartition("/")[0]
            assert all(left.get(name) == data for name, data in self._whole.items() if name.startswith(f"{folder}/"))
        exported(self._bench.archive, 20, store, self._layout)
        assert objects(store) == self._whole


Work = Import | Export


def objects(store: Store) -> Objects:
    return {info.name: store.get(info.name, MOST_BYTES) for info in store.list("")}


def verify(place: SourceRef, number: int) -> None:
    verifier = Verifier(place, InlineEngine(), this_process("verify"), utc_now, random_token)
    assert verifier.verify(BackupId(number), "data").document.verdict == GOOD


class Scene:
    """One work in stores of one kind."""

    def __init__(self, work: Work, address: Callable[[str], str]) -> None:
        self.name, self._work, self._address = work.name, work, address
        self.counts: Mapping[str, int] = self._victim("counted", NO_FAULT, 0)[1].result

    def kill(self, fault: str, points: Iterable[int]) -> int:
        killed = 0
        for call in points:
            store, end = self._victim(f"{fault.split(maxsplit=1)[0]}-{call}", fault, call)
            killed += end.killed
            self._work.check(store)
        return killed

    def points(self, fault: str) -> list[int]:
        return list(range(1, self.counts["calls" if fault == KILLED_AFTER else "steps"] + 1))

    def _victim(self, point: str, fault: str, call: int) -> tuple[Store, End]:
        url = self._address(f"{self._work.name}-{point}")
        create_place(url)
        store = open_store(url)
        with ThreadPoolExecutor(8) as pool:
            list(pool.map(lambda item: store.put_new(*item), self._work.prepared.items()))
        return store, self._work.victim(url, fault, call)


@pytest.fixture(scope="module")
def bench(tmp_path_factory: pytest.TempPathFactory, forks: Forker) -> Bench:
    return Bench(tmp_path_factory.mktemp("zeebe"), forks)


@pytest.fixture(scope="module", params=[Import, Export], ids=lambda work: str(work.name))
def in_directory(request: pytest.FixtureRequest, bench: Bench) -> Scene:
    return Scene(request.param(bench, StoreLayout.FILES), lambda point: f"file://{bench.home}/{point}")


@pytest.fixture(scope="module", params=[Import, Export], ids=lambda work: str(work.name))
def on_s3(request: pytest.FixtureRequest, bench: Bench, seaweed_server: S3Server) -> Scene:
    return Scene(request.param(bench, StoreLayout.S3), lambda point: seaweed_server.url("crash", f"zeebe-{point}"))


FAULTS = pytest.mark.parametrize("fault", [KILLED_AFTER, SYSTEM_CALL, UNSYNCED])


def a_few(scene: Scene, fault: str) -> None:
    points = scene.points(fault)
    chosen = seeded_part(f"zeebe {fault}", points, max(len(points) // FEW, 1))
    assert scene.kill(fault, chosen) == len(chosen)


def every_one(scene: Scene, fault: str) -> None:
    every = scene.points(fault)
    points = soak_part(f"zeebe {fault}", every)
    killed = scene.kill(fault, points)
    print(f"zeebe {scene.name}, {fault}: killed at {killed} of {len(every)} points, all intact")
    assert killed == len(points)


@FAULTS
def test_in_a_directory_at_a_few_points(in_directory: Scene, fault: str) -> None:
    a_few(in_directory, fault)


def test_on_s3_at_a_few_points(on_s3: Scene) -> None:
    a_few(on_s3, KILLED_AFTER)


@pytest.mark.soak
@FAULTS
def test_in_a_directory_at_every_point(in_directory: Scene, fault: str) -> None:
    every_one(in_directory, fault)


@pytest.mark.soak
def test_on_s3_at_every_point(on_s3: Scene) -> None:
    every_one(on_s3, KILLED_AFTER)
