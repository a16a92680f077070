"""A backup that compares and buries, or copies a topic again, killed after its store calls: every kept backup is as
before, or as after.

`make test` takes a seeded part of the points, `make soak` all of them; on a directory and on a real S3 server.
"""

import shutil
from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from logkeep.embedded.kafka import EmbeddedKafka
from logkeep.model.time import random_token, utc_now
from logkeep.repository.access import open_repository
from logkeep.repository.chain.commits import SourceRef, read_chain
from logkeep.repository.chain.write_session import writing
from logkeep.repository.upkeep.garbage import collect
from logkeep.store.access import open_store
from logkeep.store.base import Store
from tests.crash.points import AT_ONCE
from tests.crash.seeds import seeded_part
from tests.integration.kafka.restore.drivers import NEVER, Drivers, Ended, Point
from tests.integration.kafka.restore.scene import Scene
from tests.support.cli.filled_repository import Filled
from tests.support.kafka.archived_tables import archived_table
from tests.support.kafka.cleaned_topics import CleanedTopic
from tests.support.kafka.command_in_process import Commands
from tests.support.kafka.kernel_cache import share_kernels
from tests.support.kafka.topic_matrix import Matrix
from tests.support.kafka.whole_backups import new_place
from tests.support.servers.s3 import ENVIRONMENT, S3Server, seaweed

pytestmark = pytest.mark.xdist_group("kafka-restore")
WHOLE = {b"k%d" % n: b"value %d" % n for n in range(8)}
LEFT = {key: value for key, value in WHOLE.items() if key not in (b"k2", b"k5")}


class Comparing:
    """A repository whose next backup compares and buries, or copies again; every point gets a copy of its own."""

    def __init__(self, scene: Scene, forks: Drivers, topic: str, mode: str) -> None:
        self.scene, self.forks, self.topic = scene, forks, CleanedTopic(scene.topics, scene.kafka.bootstrap, topic)
        self.mode = mode
        self.topic.put(WHOLE)
        self.topic.tick()
        scene.commands.json(*self.words())
        self.topic.delete(b"k2", b"k5")
        self.topic.without(b"k2", b"k5")
        self.topic.tick()
        if mode == "recopy":  # the new copy has holes: only its times prove it
            scene.topics.change(topic, "delete.retention.ms", "600000")

    def words(self, *more: str) -> tuple[str, ...]:
        where = ("--bootstrap-servers", self.scene.kafka.bootstrap, "--source", "prod", "--topics", self.topic.name)
        return "kafka", "backup", *where, "--engine", "inline", "--compacted", self.mode, "--json", *more

    def run(self, url: str, point: Point = NEVER, *more: str) -> Ended:
        commands = Commands(url, self.scene.repo.home, ENVIRONMENT)
        return self.forks.run(commands, *self.words(*more), point=point)

    def calls(self, url: str) -> int:
        ended = self.run(url)
        assert ended.code == 0, ended.err
        self.check(open_store(url), after=True)
        return ended.store_calls

    def killed(self, url: str, call: int) -> None:
        """Die there, look, go on, look, collect garbage, look once more."""
        ended = self.run(url, Point("store", call))
        assert ended.killed, f"call {call} was never made: {ended}"
        store = open_store(url)
        self.check(store, after=False)
        resumed = self.run(url, NEVER, "--resume")
        assert resumed.code == 0, resumed.out + resumed.err
        place = self.check(store, after=True)
        with writing(place, "gc", utc_now, random_token) as session:
            collect(session, AT_ONCE)
        self.check(store, after=True)

    def check(self, store: Store, *, after: bool) -> SourceRef:
        """The first backup has all keys; each later one is without those that were deleted."""
        place = open_repository(store).place("prod")
        completed = read_chain(place).completed
        assert [archived_table(place, entry) for entry in completed] == [WHOLE] + [LEFT] * (len(completed) - 1)
        assert len(completed) >= 1 + after
        return place


@pytest.fixture(scope="module", params=["auto", "recopy"])
def comparing(
    request: pytest.FixtureRequest,
    kafka: EmbeddedKafka,
    target: EmbeddedKafka,
    topics: Matrix,
    forks: Drivers,
    tmp_path_factory: pytest.TempPathFactory,
) -> Comparing:
    """Prepared once: the cleaner takes seconds."""
    mode = request.param
    repo = Filled(tmp_path_factory.mktemp(f"comparing-{mode}"))
    share_kernels(repo.home)
    new_place(repo.root)
    return Comparing(Scene(kafka, target, topics, repo), forks, f"killed-{mode}", mode)


@pytest.fixture
def s3(tmp_path: Path) -> Iterator[S3Server]:
    with seaweed(tmp_path / "s3") as server:
        server.make_bucket("crash")
        yield server


class _Directories:
    def __init__(self, comparing: Comparing, root: Path) -> None:
        self._from, self._root = comparing.scene.repo.root, root

    def copy(self, name: str) -> str:
        shutil.copytree(self._from, self._root / name)
        return f"file://{self._root / name}"


class _Prefixes:
    def __init__(self, comparing: Comparing, server: S3Server) -> None:
        root = comparing.scene.repo.root
        self._objects = {str(p.relative_to(root)): p.read_bytes() for p in root.rglob("*") if p.is_file()}
        self._server = server

    def copy(self, name: str) -> str:
        url = self._server.url("crash", name)
        store = open_store(url)
        with ThreadPoolExecutor(8) as pool:
            list(pool.map(lambda item: store.put_new(*item), self._objects.items()))
        return url


def _killed_after(comparing: Comparing, copies: _Directories | _Prefixes, what: str, share: int) -> Sequence[int]:
    calls = comparing.calls(copies.copy("counted"))
    every = list(range(1, calls + 1))
    points = every if share == 1 else seeded_part(what, every, share)
    for call in points:
        comparing.killed(copies.copy(f"call-{call}"), call)
    print(f"--compacted {comparing.mode}: killed after {len(points)} of {calls} store calls ({what})")
    return points


def test_killed_in_a_directory(comparing: Comparing, tmp_path: Path) -> None:
    assert _killed_after(comparing, _Directories(comparing, tmp_path / "copies"), "comparison", 10)


def test_killed_on_s3(comparing: Comparing, s3: S3Server) -> None:
    assert _killed_after(comparing, _Prefixes(comparing, s3), "comparison on S3", 35)


@pytest.mark.soak
def test_killed_after_every_call_in_a_directory(comparing: Comparing, tmp_path: Path) -> None:
    assert _killed_after(comparing, _Directories(comparing, tmp_path / "copies"), "directory", 1)


@pytest.mark.soak
def test_killed_after_every_call_on_s3(comparing: Comparing, s3: S3Server) -> None:
    assert _killed_after(comparing, _Prefixes(comparing, s3), "S3", 1)
