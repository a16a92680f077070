"""Take, copy, completion and restore of an application, killed after every store call and file-system step.

In a directory and on a real S3 server; at file-system steps also with everything dropped that was not synced. Nothing
that was accepted is lost, no id stays open, the next backup completes, earlier ones are untouched, and every completed
one restores with its money. `make test` takes a few of the points, `make soak` all of them.
"""

import shutil
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any, NamedTuple

import pytest

from logkeep.model.time import random_token, utc_now
from logkeep.repository.access import create_repository
from logkeep.repository.chain.format import StoreFacts
from logkeep.store.access import open_store
from tests.crash.application_victim import ACCOUNTS
from tests.crash.forker import End, Forker
from tests.crash.process_faults import SYSTEM_CALL, UNSYNCED
from tests.crash.seeds import seeded_part, soak_part
from tests.crash.victims import KILLED_AFTER, NO_FAULT
from tests.support.servers.s3 import ENVIRONMENT, S3Server

pytestmark = [pytest.mark.xdist_group("seaweed-faults"), pytest.mark.timeout(7200)]
MODULE = "tests.crash.application_victim"
FEW = 2
WHOLE = [ACCOUNTS, 0]
KINDS = ("calls", "steps")


class Bench:
    """An application with one backup, kept as files and objects: every point gets its own copy of both."""

    def __init__(self, home: Path, address: Callable[[str], str], forks: Forker) -> None:
        self.home, self._address, self._forks = home, address, forks
        store = open_store(address("made"))
        self._local = address("made").startswith("file:")
        if self._local:
            store.create()  # type: ignore[attr-defined] # of a directory
        self._repository = create_repository(store, StoreFacts(True, True, True), utc_now(), random_token)
        self.id = self._repository.document.repository
        assert self.run("prepare_bank", "made").result == "completed"
        self._objects = {info.name: store.get(info.name, 1 << 24) for info in store.list("")}
        self.copy("counted")
        self.backup_points = self.run("back_up", "counted", fault=NO_FAULT, call=0).result
        self.copy("counted-restore")
        self.restore_points = self.run("restore_to", "counted-restore", backup_id=1).result

    def run(self, function: str, point: str, **more: Any) -> End:
        return self._forks.run(
            f"{MODULE}:{function}",
            url=self._address(point),
            repository=self.id,
            data=str(self.home / point),
            environment=ENVIRONMENT,
            **more,
        )

    def copy(self, point: str) -> None:
        shutil.copytree(self.home / "made", self.home / point, ignore=shutil.ignore_patterns("*.sock", "repo"))
        store = open_store(self._address(point))
        if self._local:
            store.create()  # type: ignore[attr-defined] # of a directory
        with ThreadPoolExecutor(8) as pool:
            list(pool.map(lambda item: store.put_new(*item), self._objects.items()))

    def check(self, point: str, *, all_backups: bool) -> None:
        after = self.run("follow_up", point).result
        assert isinstance(after, dict), after  # otherwise the text of an error
        assert (after["third"], after["money"], after["states"]["1"]) == ("completed", WHOLE, "completed")
        assert after["states"].get("2", "doesNotExist") in ("completed", "failed", "doesNotExist")
        completed = sorted(int(i) for i, state in after["states"].items() if state == "completed")
        for number in completed if all_backups else completed[-1:]:
            self.check_restored(point, f"{point}-{number}", number)

    def check_startable(self, point: str) -> None:
        """What a restore left: the old application or the restored one, whole, or nothing that starts."""
        target = self.home / f"{point}-started"
        shutil.copytree(self.home / point, target, ignore=shutil.ignore_patterns("*.sock"))
        money = self._forks.run(f"{MODULE}:money_of", data=str(target)).result
        assert money == WHOLE or (money is None and not (target / "application.json").exists())
        shutil.rmtree(target)

    def check_restored(self, point: str, target: str, number: int) -> None:
        end = self._forks.run(
            f"{MODULE}:restore_to",
            url=self._address(point),
            repository=self.id,
            data=str(self.home / target),
            environment=ENVIRONMENT,
            backup_id=number,
        )
        assert not end.killed
        assert self._forks.run(f"{MODULE}:money_of", data=str(self.home / target)).result == WHOLE
        shutil.rmtree(self.home / target)


@pytest.fixture(scope="module", params=["directory", "S3"])
def bench(
    request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory, seaweed_server: S3Server, forks: Forker
) -> Bench:
    home = tmp_path_factory.mktemp("bank")
    (home / "repositories").mkdir()
    if request.param == "directory":
        return Bench(home, lambda point: f"file://{home}/repositories/{point}", forks)
    return Bench(home, lambda point: seaweed_server.url("crash", f"bank-{point}"), forks)


def killed_in_backup(bench: Bench, fault: str, points: Iterable[int], *, thorough: bool) -> int:
    """How often it died."""
    killed = 0
    for call in points:
        for point, at in tries(f"backup-{fault.split(maxsplit=1)[0]}", call, again=not thorough):
            bench.copy(point)
            died = bench.run("back_up", point, fault=fault, call=at).killed
            bench.check(point, all_backups=thorough)
            if died:
                killed += 1
                break
    return killed


def killed_in_restore(bench: Bench, fault: str, points: Iterable[int], *, thorough: bool) -> int:
    killed = 0
    for call in points:
        for point, at in tries(f"restore-{fault.split(maxsplit=1)[0]}", call, again=not thorough):
            bench.copy(point)
            died = bench.run("restore_to", point, backup_id=1, fault=fault, call=at).killed
            bench.check_startable(point)
            bench.check_restored(point, point, 1)
            if died:
                killed += 1
                break
    return killed


def tries(name: str, call: int, *, again: bool) -> Iterator[tuple[str, int]]:
    """A name for each try, and its call.

    A slow coordinator asks more often, so a run may end before a call that another run made. Then an earlier call is
    tried, if that is wanted.
    """
    yield f"{name}-{call}", call
    at = call * 3 // 4
    while again and at > 0:
        yield f"{name}-{call}-{at}", at
        at = at * 3 // 4


class Work(NamedTuple):
    name: str
    kill: Callable[..., int]

    def points(self, bench: Bench, fault: str) -> list[int]:
        found = bench.backup_points if self.kill is killed_in_backup else bench.restore_points
        return list(range(1, found[KINDS[fault != KILLED_AFTER]] + 1))


WORKS = pytest.mark.parametrize("work", [Work("backup", killed_in_backup), Work("restore", killed_in_restore)])
FAULTS = pytest.mark.parametrize("fault", [KILLED_AFTER, SYSTEM_CALL, UNSYNCED])


@WORKS
@FAULTS
def test_at_a_few_points(bench: Bench, work: Work, fault: str) -> None:
    points = work.points(bench, fault)
    chosen = seeded_part(f"application {work.name} {fault}", points, max(len(points) // FEW, 1))
    assert work.kill(bench, fault, chosen, thorough=False) == len(chosen)


@pytest.mark.soak
@WORKS
@FAULTS
def test_at_every_point(bench: Bench, work: Work, fault: str) -> None:
    every = work.points(bench, fault)
    points = soak_part(f"application {work.name} {fault}", every)
    killed = work.kill(bench, fault, points, thorough=True)
    print(f"{work.name}, {fault}: killed at {killed} of {len(every)} points, all intact")
    assert killed >= len(points) * 9 // 10
