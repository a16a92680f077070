"""Our own processes die while a backup runs: the driver at any point, Spark's Python workers in mid-task."""

import json
import os
import random
import signal
import subprocess
from collections import Counter
from dataclasses import replace
from pathlib import Path

import pytest

from logkeep.embedded.kafka import EmbeddedKafka
from logkeep.engine.spark.jvm.processes import RunningProcess, descendants
from logkeep.model.cache import cache_dir
from logkeep.model.ids import BackupId
from logkeep.repository.access import open_repository
from logkeep.repository.backups.journal import open_ids, receipts
from logkeep.repository.chain.commits import read_chain
from logkeep.store.local.store import LocalStore
from tests.support.kafka.backup_steps import add, assert_whole, fill
from tests.support.kafka.topic_matrix import Matrix
from tests.support.kafka.whole_backups import Archive, new_place
from tests.support.processes import program, wait_for
from tests.support.servers.proxied_kafka import Shaky
from tests.support.twice_engine import TwiceEngine

pytestmark = pytest.mark.xdist_group("kafka-proxy")
PROGRAM = "tests.integration.kafka.backup.backup_program"
PARTITIONS = 6


@pytest.fixture(scope="session")
def kafka(shaky: Shaky) -> EmbeddedKafka:
    """The proxied broker, reached directly: these tests need no second one."""
    return shaky.kafka


@pytest.fixture(scope="session")
def topics(shaky: Shaky) -> Matrix:
    return shaky.topics


@pytest.mark.parametrize("seed", [1, 2])
@pytest.mark.parametrize("grows", [False, True])
def test_a_killed_run_is_resumed_with_what_it_had(
    kafka: EmbeddedKafka, topics: Matrix, archive: Archive, tmp_path: Path, seed: int, grows: bool
) -> None:
    topic = fill(topics, f"killed-{seed}-{grows}", 6, 300)
    root, wanted = tmp_path / "repository", random.Random(seed).randrange(1, 6)
    arguments = [PROGRAM, kafka.bootstrap, str(root), "new", "1", topic]
    with program(arguments, tmp_path, KILL_AFTER_RECEIPT=str(wanted)) as run:
        _, complaint = run.communicate()
    assert run.returncode == -signal.SIGKILL, complaint
    (left,) = open_ids(archive.place, 0)
    finished = list(receipts(archive.place, left))
    assert len(finished) == wanted
    had = {s.token for r in finished for s in r.segments}
    if grows:
        producer = topics.producer()
        for partition in range(6):
            producer.produce(topic, b"more", None, partition)
        producer.flush(30)
    with program([PROGRAM, kafka.bootstrap, str(root), "resume", "1", topic], tmp_path) as run:
        said, complaint = run.communicate()
    assert run.returncode == 0, complaint
    assert json.loads(said)["id"] == left
    assert_whole(archive, kafka, left)
    kept = {s.token for some in archive.segments(BackupId(left)).values() for s in some}
    assert had <= kept, "what had a receipt was copied again"


class Killing:
    """Backups of one topic that are killed somewhere and resumed, each in a repository of its own."""

    def __init__(self, shaky: Shaky, directory: Path) -> None:
        self._shaky, self._directory = shaky, directory
        self.topic = fill(shaky.topics, f"killings-{directory.name}", PARTITIONS, 20)
        self.usual_calls = json.loads(self._finished(self._prepared("usual"), "new"))["store_calls"]

    def _prepared(self, name: str) -> Path:
        """A repository with one backup, and more to copy than that one has."""
        (self._directory / name).mkdir()
        root = self._directory / name / "repository"
        Archive(self._shaky.bootstrap, new_place(root)).back_up(self.topic)
        add(self._shaky.topics, self.topic, PARTITIONS, 60)
        return root

    def killed_after_bytes(self, name: str, size_bytes: int) -> str:
        """When so many bytes of the cluster have come to it."""
        root = self._prepared(name)
        self._shaky.gate.close_after(size_bytes)
        try:
            with program([PROGRAM, self._shaky.bootstrap, str(root), "new", "1", self.topic], root.parent) as run:
                wait_for(lambda: self._shaky.gate.closed or run.poll() is not None, "the hold")
                run.kill()
                assert run.wait() == -signal.SIGKILL
        finally:
            self._shaky.gate.open()
        return self._resumed(root)

    def killed_after_call(self, name: str, number: int) -> str:
        """When the store has done so many calls."""
        root = self._prepared(name)
        arguments = [PROGRAM, self._shaky.bootstrap, str(root), "new", "1", self.topic]
        with program(arguments, root.parent, KILL_AFTER_CALL=str(number)) as run:
            run.communicate()
        assert run.returncode == -signal.SIGKILL
        return self._resumed(root)

    def _finished(self, root: Path, mode: str) -> str:
        with program([PROGRAM, self._shaky.bootstrap, str(root), mode, "1", self.topic], root.parent) as run:
            said, complaint = run.communicate()
        assert run.returncode == 0, complaint
        return said

    def _resumed(self, root: Path) -> str:
        """Go on, and compare every backup that there is then with the broker. Tells in which phase the run died."""
        archive = Archive(self._shaky.bootstrap, open_repository(LocalStore(root)).place("prod"))
        phase = _phase(archive)
        self._finished(root, "resume")
        completed = [entry.id for entry in read_chain(archive.place).completed]
        assert len(completed) >= 2
        for backup_id in completed:
            assert_whole(archive, self._shaky.kafka, backup_id)
        return phase


def _phase(archive: Archive) -> str:
    """How far a killed run had come, by what it left behind."""
    folded = read_chain(archive.place)
    if len(folded.completed) > 1:
        return "committed"
    left = open_ids(archive.place, folded.last_id)
    if not left:
        return "asking"
    return "committing" if len(list(receipts(archive.place, left[0]))) == PARTITIONS else "copying"


def test_every_unit_runs_twice_at_the_same_time(kafka: EmbeddedKafka, topics: Matrix, archive: Archive) -> None:
    """Both attempts write objects and a receipt of their own; each batch is in the backup once."""
    topic, engine = fill(topics, "doubled", 4, 300), TwiceEngine()
    first = replace(archive, engine=engine).back_up(topic, segment_bytes=5_000).entry.id
    assert engine.twice > 0
    add(topics, topic, 4, 50)
    second = replace(archive, engine=engine).back_up(topic, segment_bytes=5_000).entry.id
    assert_whole(archive, kafka, first)
    assert_whole(archive, kafka, second)
    archive.check(first, second)


@pytest.fixture(scope="module")
def killing(shaky: Shaky, tmp_path_factory: pytest.TempPathFactory) -> Killing:
    return Killing(shaky, tmp_path_factory.mktemp("killing"))


def test_a_driver_killed_while_it_asks_copies_and_commits(killing: Killing) -> None:
    calls = killing.usual_calls
    phases = [
        killing.killed_after_bytes("asking", 1000),
        killing.killed_after_call("copying", calls // 2),
        killing.killed_after_call("committing", calls - 8),
    ]
    assert phases == ["asking", "copying", "committing"]


@pytest.mark.soak
def test_a_driver_killed_at_random_points(killing: Killing) -> None:
    chance, phases = random.Random(20), Counter[str]()
    for round_ in range(24):
        if round_ % 4 == 0:
            phases[killing.killed_after_bytes(f"bytes-{round_}", chance.randrange(100, 3000))] += 1
        else:
            number = chance.randrange(1, killing.usual_calls + 1)
            phases[killing.killed_after_call(f"call-{round_}-{number}", number)] += 1
    print("drivers killed and resumed:", phases.total(), dict(phases))
    assert {"asking", "copying", "committing"} <= set(phases)


def _workers(run: "subprocess.Popen[str]") -> list[RunningProcess]:
    """The processes that Spark's Python daemon forked: they have its command line, and it for a parent."""
    family = {each.pid: each for each in descendants(run.pid)}
    daemons = {pid for pid in family if b"pyspark.daemon" in Path(f"/proc/{pid}/cmdline").read_bytes()}
    return [family[pid] for pid in daemons if family[pid].parent in daemons]


def test_spark_workers_killed_in_the_middle_of_their_tasks(shaky: Shaky, faulty: Archive, tmp_path: Path) -> None:
    first = faulty.back_up(fill(shaky.topics, "before-the-workers", 1, 10)).entry.id
    topic = fill(shaky.topics, "workers", 2, 1200, size=10_000)
    arguments = [PROGRAM, shaky.bootstrap, str(tmp_path / "repository"), "new", "1", topic]
    cache = str(cache_dir(os.environ, Path.home()))
    with program(arguments, tmp_path, ENGINE="spark", LOGKEEP_CACHE_DIR=cache) as run:
        with shaky.held_after(12_000_000):
            assert run.poll() is None
            workers = _workers(run)
            assert workers, "no worker was found"
            for worker in workers:
                worker.kill()
        said, complaint = run.communicate()
    assert run.returncode == 0, complaint
    report = json.loads(said)
    assert report["failed_attempts"] >= 1, "nothing was retried"
    assert_whole(faulty, shaky.kafka, report["id"])
    faulty.check(first)
