"""A backup on real Spark, ended in the middle of its copy: what has a receipt is never copied again, nobody is left.

With `auto` that is at the hand-over: the driver has copied what was free while Spark started. It waits at the gate with
its own unit, and a worker with another one; the second worker keeps the driver's seat.
"""

import json
import os
import signal
import subprocess
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from logkeep.engine.spark.jvm.processes import RunningProcess, descendants
from logkeep.model.cache import cache_dir
from logkeep.model.time import random_token, utc_now
from logkeep.repository.access import create_repository
from logkeep.repository.backups.journal import open_ids
from logkeep.repository.chain import layout
from logkeep.repository.chain.commits import SourceRef, read_chain
from logkeep.repository.chain.format import StoreFacts
from logkeep.repository.chain.lease import LeaseState, lease_state, read_lease
from logkeep.repository.chain.owner import this_process
from logkeep.store.local.store import LocalStore
from tests.crash.points import run_backup
from tests.support.processes import files_below, program, wait_for
from tests.support.scripted.backup import expected, restored

pytestmark = pytest.mark.xdist_group("spark")
BEFORE, ENDS = {0: 3}, {0: 15, 1: 3, 2: 2}
FREE_UNITS, GATED_UNITS = 3, 2
PROMISE_S = 8


class Lab:
    """A repository with one backup, and a program that adds a second one."""

    def __init__(self, directory: Path, kind: str) -> None:
        self.directory, self.kind = directory, kind
        store = LocalStore(directory / "repository")
        store.create()
        document = create_repository(store, StoreFacts(True, True, True), utc_now(), random_token).document
        self.place = SourceRef(store, document.repository, "prod")
        self.first = run_backup(self.place, BEFORE)
        self.gate = directory / "gate" / "open"
        self.gate.parent.mkdir()

    @contextmanager
    def running(self, how: str) -> Iterator["subprocess.Popen[str]"]:
        cache = cache_dir(os.environ, Path.home())
        settings = [str(self.place.store.root), self.place.repository, str(cache)]  # type: ignore[attr-defined]  # a LocalStore
        arguments = ["tests.crash.spark_backup", *settings, str(self.gate), json.dumps(ENDS), how, self.kind]
        before = files_below(self.directory / "tmp") if (self.directory / "tmp").exists() else []
        with program(arguments, self.directory) as run:
            yield run
            killed = run.poll() is None or run.returncode == -signal.SIGKILL
        assert killed or files_below(self.directory / "tmp") == before, "it left something behind"

    def names(self, prefix: str) -> set[str]:
        return {i.name for i in self.place.store.list(prefix)}

    def data(self) -> set[str]:
        return self.names("sources/prod/topics/")

    def wait_for_the_middle(self, run: "subprocess.Popen[str]") -> list[RunningProcess]:
        """Partition 0 has its receipts, both workers wait at the gate. Gives all processes of the run."""
        gated = self.gate.parent

        def middle() -> bool:
            journals = [layout.journal("prod", i) for i in open_ids(self.place, self.first)]
            there = sum(len(self.names(journal)) for journal in journals)
            return there == FREE_UNITS and len(list(gated.iterdir())) == GATED_UNITS

        wait_for(lambda: middle() or run.poll() is not None, "the middle of the copy")
        assert run.poll() is None, run.communicate()
        return descendants(run.pid)

    def resume_on_spark(self) -> int:
        self.gate.touch()
        with self.running("resumed") as run:
            output, errors = run.communicate(timeout=240)
        assert (run.returncode, errors) == (0, "")
        resumed: dict[str, int] = json.loads(output)
        return resumed["id"]

    def resume_and_check(self, copied: set[str], resume: Callable[[], int]) -> None:
        (ongoing,) = open_ids(self.place, self.first)
        assert resume() == ongoing
        assert copied <= self.data()
        assert len(self.data() - copied) == GATED_UNITS, "what had a receipt was copied again"
        assert [e.id for e in read_chain(self.place).completed] == [self.first, ongoing]
        assert restored(self.place, self.first) == expected(BEFORE)
        assert restored(self.place, ongoing) == expected(ENDS)


@pytest.mark.parametrize("kind", [pytest.param("spark", marks=pytest.mark.soak), "auto"])
def test_a_killed_driver_takes_all_with_it_and_loses_nothing_that_was_finished(tmp_path: Path, kind: str) -> None:
    lab = Lab(tmp_path, kind)
    with lab.running("fresh") as run:
        family = lab.wait_for_the_middle(run)
        assert len(family) >= 4, "the JVM, the daemon, two workers"
        copied = lab.data()
        run.kill()
        assert run.wait() == -signal.SIGKILL
        wait_for(lambda: not any(process.alive for process in family), "JVM and workers to go", patience_s=60)
    assert [e.id for e in read_chain(lab.place).completed] == [lab.first]
    lab.resume_and_check(copied, lab.resume_on_spark)


@pytest.mark.parametrize("kind", ["spark", pytest.param("auto", marks=pytest.mark.soak)])
def test_a_terminated_driver_gives_the_source_back_within_its_promise(tmp_path: Path, kind: str) -> None:
    lab = Lab(tmp_path, kind)
    with lab.running("fresh") as run:
        family = lab.wait_for_the_middle(run)
        copied = lab.data()
        run.send_signal(signal.SIGTERM)
        output, errors = run.communicate(timeout=PROMISE_S)
        assert (run.returncode, errors) == (143, "")
        assert json.loads(output) == {"error": "terminated"}
        assert not any(process.alive for process in family)
    found = read_lease(lab.place)
    assert found is not None
    assert lease_state(found[0], utc_now(), this_process("next")) is LeaseState.FREE
    assert lab.data() == copied
    lab.resume_and_check(copied, lambda: run_backup(lab.place, ENDS, resumed=True))
