"""A disk that fills up during a backup: the cause and its exit code; a follow run continues when there is room."""

import json
import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

from logkeep.embedded.kafka import EmbeddedKafka
from tests.support.cli.filled_repository import Filled
from tests.support.cli.processes import REAL, clean_environment
from tests.support.kafka.topic_matrix import Matrix

pytestmark = pytest.mark.xdist_group("kafka-plain")
_SMALL = "12m"
_LARGE = "64m"


@pytest.fixture(scope="module")
def topic(topics: Matrix) -> str:
    """25 MB: more than the disk has, in segments larger than the stream's buffer."""
    name = topics.create("larger-than-the-disk")
    producer = topics.producer(batch_num_messages=100)
    for i in range(2500):
        producer.produce(name, os.urandom(10_000), b"%d" % i, 0)
    assert producer.flush(60) == 0
    return name


def _words(kafka: EmbeddedKafka, topic: str, *more: str) -> list[str]:
    return ["kafka", "backup", "--bootstrap-servers", kafka.bootstrap, "--source", "prod", "--topics", topic, *more]


_HOLD = """
import sys
from pathlib import Path
from logkeep.errors import Locked, StoreFull
from logkeep.model.time import random_token, utc_now
from logkeep.repository.chain.commits import SourceRef
from logkeep.repository.chain.format import open_format
from logkeep.repository.chain.write_session import writing
from logkeep.store.local.store import LocalStore

store = LocalStore(Path(sys.argv[1]))
place = SourceRef(store, open_format(store).document.repository, "prod")
while True:
    try:
        with writing(place, sys.argv[2], utc_now, random_token):
            print("held", flush=True)
            sys.stdin.read()
        break
    except (Locked, StoreFull):
        pass
"""
"""Another process that takes the lease between two rounds, and holds it until its input ends."""


class SmallDisk:
    """A process whose repository is on a file system of its own, which only it sees; needs no root."""

    def __init__(self, repo: Filled, words: list[str]) -> None:
        self._repo = repo
        mount = f'cp -r "$0" "$0.kept"; mount -t tmpfs -o size={_SMALL} tmpfs "$0"; cp -r "$0.kept/." "$0"; exec "$@"'
        command = ["unshare", "-rm", "sh", "-ec", mount, str(repo.root), *REAL, *words]
        environment = clean_environment(repo.home, LOGKEEP_REPO=repo.url)
        self.process = subprocess.Popen(
            command, env=environment, cwd=repo.home, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
        )

    def _entering(self) -> list[str]:
        return ["nsenter", "-t", str(self.process.pid), "-U", "-m", "--preserve-credentials"]

    def inside(self, *command: str) -> str:
        """Run a command that sees the same file system."""
        return subprocess.run([*self._entering(), *command], check=True, capture_output=True, text=True).stdout

    @contextmanager
    def held_for(self, operation: str) -> Iterator[None]:
        """Another process holds the lease of the source."""
        command = [*self._entering(), sys.executable, "-c", _HOLD, str(self._repo.root), operation]
        with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as holder:
            assert holder.stdout is not None
            assert holder.stdout.readline() == "held\n"
            yield
            holder.communicate()

    def grow(self) -> None:
        self.inside("mount", "-o", f"remount,size={_LARGE}", str(self._repo.root))

    def files(self, *below: str) -> set[str]:
        return set(self.inside("find", str(self._repo.root.joinpath(*below)), "-type", "f").split())


@contextmanager
def on_small_disk(repo: Filled, *words: str) -> Iterator[SmallDisk]:
    disk = SmallDisk(repo, list(words))
    try:
        yield disk
    finally:
        disk.process.kill()
        disk.process.communicate()


@pytest.mark.parametrize("engine", ["inline", "spark"])
def test_the_cause_is_reported(kafka: EmbeddedKafka, topic: str, repo: Filled, engine: str) -> None:
    words = _words(kafka, topic, "--engine", engine, "--retry-for", "1s")
    with on_small_disk(repo, *words) as disk:
        _, errors = disk.process.communicate(timeout=200)
    assert disk.process.returncode == 20, errors
    assert "no space left" in errors
    assert "free space" in errors


def test_a_follow_run_continues_when_there_is_room(kafka: EmbeddedKafka, topic: str, repo: Filled) -> None:
    words = _words(kafka, topic, "--engine", "inline", "--follow", "--interval", "200ms", "--json")
    with on_small_disk(repo, *words, "--segment-bytes", "4MB") as disk:
        for failed in (_round(disk), _round(disk)):
            assert failed["error"] == "store-full", failed
        assert {Path(name).name for name in disk.files(".partial")} <= {"replace.lock"}
        assert not [name for name in disk.files("sources") if name.endswith(".log")], "failed rounds fill the disk"
        disk.grow()
        done = next(each for each in iter(lambda: _round(disk), None) if each["changed"])
        assert done["new_offsets"] == 2500
        disk.inside("cp", "-r", str(repo.root), str(repo.home / "copy"))
        disk.process.send_signal(signal.SIGTERM)
        disk.process.communicate(timeout=60)
    assert disk.process.returncode == 0
    repo.run("verify", "--level", "records", "--repo", f"file://{repo.home / 'copy'}")


def test_after_a_full_disk_another_run_ends_it_but_a_prune_does_not(
    kafka: EmbeddedKafka, topic: str, repo: Filled
) -> None:
    words = _words(kafka, topic, "--engine", "inline", "--follow", "--interval", "200ms", "--json")
    with on_small_disk(repo, *words, "--segment-bytes", "4MB") as disk:
        assert _round(disk)["error"] == "store-full"
        with disk.held_for("prune"):
            assert (
                next(found for found in iter(lambda: _round(disk)["error"], None) if found != "store-full") == "locked"
            )
        with disk.held_for("backup"):
            _, errors = disk.process.communicate(timeout=200)
    assert disk.process.returncode == 50, errors
    assert "backup by process" in errors


def _round(disk: SmallDisk) -> dict[str, Any]:
    assert disk.process.stdout is not None
    line = disk.process.stdout.readline()
    assert line, f"it ended with {disk.process.wait()}: {disk.process.stderr.read() if disk.process.stderr else ''}"
    found: dict[str, Any] = json.loads(line)
    return found
