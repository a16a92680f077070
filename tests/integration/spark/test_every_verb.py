"""Every verb that takes an engine, on a real standalone cluster of two workers with a secret.

One command runs as users call it, with a session of its own. The others share a session; in the long run each has its
own, and some have only one worker. The list of cases is compared with the catalogue of verbs, so a new verb with an
engine cannot be forgotten.
"""

import json
import os
import shutil
import signal
from collections.abc import Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from dataclasses import dataclass, replace
from functools import cached_property
from pathlib import Path
from typing import Any

import pytest
from confluent_kafka import KafkaException

from logkeep.checkpoint.archive.take import TakeOptions, take
from logkeep.cli.frame.catalogue import VERBS
from logkeep.embedded.kafka import EmbeddedKafka
from logkeep.kafka.client.topology import TopicPartition
from logkeep.model.cache import cache_dir
from logkeep.model.ids import BackupId
from logkeep.model.time import random_token
from logkeep.store.local.store import LocalStore
from tests.integration.kafka.restore.scene import bounds, read, write
from tests.support.cli.filled_repository import Done, document_of
from tests.support.cli.processes import logkeep
from tests.support.cli.spark_commands import SparkCommands, spark_commands
from tests.support.cli.zookeeper_repository import Archived, archived, server_on
from tests.support.command_lines import watched_command_lines
from tests.support.datasets.v1_files import HandRecord, write_partition
from tests.support.kafka.broker_disks import add_log, made_disk, run_of
from tests.support.kafka.client_view_of_configs import topic_names
from tests.support.kafka.group_topic import commit
from tests.support.kafka.handmade_batches import dense
from tests.support.kafka.kernel_cache import share_kernels
from tests.support.kafka.offline_restore import backed_up, made_target, offline, tree
from tests.support.kafka.registry_steps import karapace_records
from tests.support.kafka.topic_matrix import Matrix
from tests.support.processes import is_connected, wait_for
from tests.support.scripted_application import ScriptedApplication, World
from tests.support.servers.spark_cluster import SparkCluster, spark_cluster
from tests.support.zeebe.golden import unpacked_store
from tests.support.zookeeper.tree_recorder import kazoo

pytestmark = pytest.mark.xdist_group("spark-cluster")
_CACHE = cache_dir(os.environ, Path.home())
_EXECUTOR = b"CoarseGrainedExecutorBackend"
_LOGS = {f"orders-{p}": [dense(base, 5, producer=p).encode() for base in range(p, p + 50, 5)] for p in range(3)}
_LEVELS = {"kafka": ("data", "records", "source"), "zookeeper": ("data", "replay", "boot")}


_Refused = tuple[tuple[str, ...], tuple[str, ...], Path]
"""The repository that must stay empty, or nothing; the words of the command; the directory that it must name."""


@dataclass
class Stage:
    """The cluster, what is backed up, and the command between them. Preparations run in one process."""

    cluster: SparkCluster
    kafka: EmbeddedKafka
    topics: Matrix
    directory: Path
    one_worker: tuple[str, ...] = ("--spark-conf", "spark.cores.max=1")
    session: SparkCommands | None = None
    """Shared by commands; none: each starts its own."""

    @property
    def home(self) -> Path:
        return self.directory / "home"

    @property
    def broker(self) -> tuple[str, str]:
        return "--bootstrap-servers", self.kafka.bootstrap

    @property
    def orders(self) -> str:
        """The topic of `backed`."""
        return f"orders-{self.directory.name}"

    @property
    def cluster_id(self) -> str:
        text = (self.kafka.directory / "data" / "meta.properties").read_text()
        return next(line.removeprefix("cluster.id=") for line in text.splitlines() if line.startswith("cluster.id="))

    def repo(self, name: str) -> tuple[str, str]:
        return "-r", f"file://{self.directory / name}"

    def prepare(self, *words: str, code: int = 0) -> dict[str, Any]:
        return self._answer((*words, "--engine", "inline"), {}, code)

    def init(self, name: str) -> tuple[str, str]:
        (self.directory / name).mkdir()
        self._answer(("init", *self.repo(name)), {}, 0)
        return self.repo(name)

    def on_cluster(self, *words: str, code: int = 0) -> dict[str, Any]:
        """Run the command on both workers; its own session must be exactly one application of the cluster."""
        return self.on(self.cluster, *words, code=code)

    def on_one_worker(self, *words: str, code: int = 0) -> dict[str, Any]:
        """The other worker starts no executor for its own session."""
        return self.on(self.cluster, *words, *self.one_worker, code=code)

    def on(self, cluster: SparkCluster, *words: str, code: int = 0) -> dict[str, Any]:
        before = cluster.applications()
        answer = self._answer((*words, *cluster.flags), cluster.variables, code, self.session)
        if self.session is not None:
            return answer
        assert len(cluster.applications() - before) == 1, "one Spark session for the whole command"
        return answer

    def refused(self, *words: str, code: int) -> str:
        done = self.run((*words, *self.cluster.flags), self.cluster.variables, self.session)
        assert done.returncode == code, done.stdout + done.stderr
        return done.stderr

    def _answer(
        self, words: tuple[str, ...], variables: Mapping[str, str], code: int, session: SparkCommands | None = None
    ) -> dict[str, Any]:
        done = self.run((*words, "--json"), variables, session)
        assert done.returncode == code, f"{words}\n{done.stdout}\n{done.stderr}"
        return document_of(done.stdout)

    def run(self, words: tuple[str, ...], variables: Mapping[str, str], session: SparkCommands | None = None) -> Done:
        if session is not None:
            return session.run(words)
        return logkeep(*words, home=self.home, env={"LOGKEEP_CACHE_DIR": str(_CACHE), **variables})

    def units(self, task: str, count: int, traces: Path) -> dict[str, Any]:
        """Answers to a task of the engine's tests, in the shared session."""
        assert self.session is not None
        answer: dict[str, Any] = json.loads(self.session.run(("units", task, str(count), str(traces))).stdout)
        return answer

    @cached_property
    def backed(self) -> tuple[str, ...]:
        """A repository with three backups of a topic, of one record each: pieces that are worth a merge."""
        where = self.init("backed")
        self.topics.create(self.orders, 2)
        for value in "abc":
            write(self.topics, self.orders, [value])
            self.prepare("kafka", "backup", *where, *self.broker, "--topics", self.orders)
        return where

    @cached_property
    def zookeeper(self) -> Archived:
        (self.directory / "zookeeper").mkdir()
        return archived(self.directory / "zookeeper")

    @property
    def zookeeper_repo(self) -> tuple[str, str]:
        return "-r", f"file://{self.zookeeper.here.root / 'repo'}"


@pytest.fixture(scope="module")
def stage(tmp_path_factory: pytest.TempPathFactory, cluster: SparkCluster) -> Iterator[Stage]:
    directory = tmp_path_factory.mktemp("stage")
    (directory / "home").mkdir()
    share_kernels(directory / "home")
    with EmbeddedKafka(directory / "broker", _CACHE) as kafka:
        yield Stage(cluster, kafka, Matrix(kafka), directory)


@pytest.fixture(scope="class")
def in_session(stage: Stage) -> Iterator[Stage]:
    """It has both workers until the class of tests ends: commands of other tests would wait for it."""
    cluster = stage.cluster
    with spark_commands(stage.home, cluster.url, cluster.secret_file, cluster.conf) as session:
        stage.session = session
        yield stage
        stage.session = None


def _kafka_backup(stage: Stage) -> None:
    where = stage.init("backup")
    stage.topics.create("copied", 3)
    for partition in range(3):
        write(stage.topics, "copied", [f"{partition}-{n}" for n in range(5)], partition)
    done = stage.on_cluster("kafka", "backup", *where, *stage.broker, "--topics", "copied")
    assert (done["new_offsets"], done["findings"]) == (15, [])


def _backup_set(stage: Stage) -> None:
    where = stage.init("set")
    topic = f"in-a-set-{random_token()}"
    stage.topics.create(topic, 3)
    write(stage.topics, topic, ["before", "the set"], 0)
    for source in ("one", "two"):
        stage.prepare("kafka", "backup", *where, *stage.broker, "--source", source, "--topics", topic)
    write(stage.topics, topic, ["in", "the set"], 1)
    done = stage.on_cluster("backup-set", "take", *where, *stage.broker, "--members", "one,two", "--yes")
    states = [(each["source"], each["state"]) for each in done["members"]]
    assert states == [("one", "completed"), ("two", "completed")]


def _verify(stage: Stage) -> None:
    assert stage.on_one_worker("verify", *stage.backed, "--level", "records")["verdict"] == "good"


def _kafka_restore(stage: Stage) -> None:
    where = (*stage.backed, *stage.broker, "--confirm-cluster", stage.cluster_id)
    done = stage.on_cluster(
        "kafka", "restore", "latest", *where, "--topics", stage.orders, "--rename", f"{stage.orders}=back", "--yes"
    )
    assert done["verdict"] == "proven"
    assert read(stage.kafka, "back") == ["a", "b", "c"]


def _offline_restore(stage: Stage) -> None:
    backed = backed_up(stage.directory, _LOGS)
    here, there = (made_target(stage.directory / name, list(_LOGS)) for name in ("here", "there"))
    assert offline(backed.place, backed.backup, [here]).good
    words = ("kafka", "restore", "latest", *stage.repo("repository"), "--to-log-dirs", str(there), "--yes")
    assert stage.on_cluster(*words, code=2)["verdict"] == "proven"
    assert tree(there) == tree(here)


def _drill(stage: Stage) -> None:
    words = ("drill", *stage.backed, *stage.broker, "--topics", stage.orders)
    assert stage.on_one_worker(*words)["verdict"] == "proven"


def _salvage(stage: Stage) -> None:
    disk = made_disk(stage.directory / "disk", watermarks={TopicPartition("orders", 0): 60})
    add_log(disk, "orders-0", [run_of(0, 30), run_of(30, 60)])
    done = stage.on_cluster("kafka", "salvage", *stage.init("salvaged"), "--log-dirs", str(disk), code=2)
    assert done["new_offsets"] == 60


def _import(stage: Stage) -> None:
    dataset = stage.directory / "dataset-to-import"
    write_partition(dataset, "orders", 0, {0: [HandRecord(o, b"k", b"v") for o in range(60)]})
    done = stage.on_cluster("kafka", "import", str(dataset), *stage.init("from-dataset"))
    assert done["new_offsets"] == 60


def _kafka_optimize(stage: Stage) -> None:
    assert stage.on_one_worker("kafka", "optimize", *stage.backed, "--yes")["objects_before"] >= 2


def _kafka_fold(stage: Stage) -> None:
    where, producer = stage.init("folded"), stage.topics.producer()
    stage.topics.create("latest-only", 1, {"cleanup.policy": "compact"})
    for key, value in ((b"k1", b"old"), (b"k2", b"kept"), (b"k1", b"new"), (b"k3", b"last")):
        producer.produce("latest-only", value, key)
        producer.flush(30)
    stage.prepare("kafka", "backup", *where, *stage.broker, "--topics", "latest-only")
    (log,) = stage.on_cluster("kafka", "fold", *where, "--yes")["logs"]
    assert (log["folded"], log["records_before"], log["records_after"]) == (True, 4, 3)
    assert stage.prepare("verify", *where, "--level", "records")["verdict"] == "good"


def _kafka_export(stage: Stage) -> None:
    words = ("--format", "kafka-backup-v1", "--to", str(stage.directory / "dataset"))
    done = stage.on_cluster("kafka", "export", "latest", *stage.backed, *words)
    assert done["records"] == done["new_offsets"] > 0
    assert stage.prepare("kafka", "export", "latest", *stage.backed, *words)["read_bytes"] == 0


def _kafka_groups(stage: Stage) -> None:
    where = stage.init("groups")
    stage.topics.create("counted", 1)
    write(stage.topics, "counted", ["a", "b"])
    commit(stage.kafka.bootstrap, "counters", {("counted", 0): 1})
    topics = ("--internal", "--topics", "__consumer_offsets|counted")
    stage.prepare("kafka", "backup", *where, *stage.broker, *topics)
    words = ("kafka", "groups", "latest", *where, "--group", "counters", "--history")
    (found,) = stage.on_cluster(*words)["history"]
    assert (found["offset"], found["ending"]) == (1, "current")


def _sql(stage: Stage) -> None:
    """Through Spark's data source, which both workers import from the shipped package."""
    query = f"SELECT count(*), sum(length(value)), count(DISTINCT offset) FROM `{stage.orders}`"  # noqa: S608
    assert stage.on_cluster("sql", query, *stage.backed)["rows"] == [[3, 3, 3]]
    of_zookeeper = ("sql", "SELECT count(*) > 0 FROM transactions", *stage.zookeeper_repo)
    assert stage.on_one_worker(*of_zookeeper)["rows"] == [[True]]


def _zookeeper_backup(stage: Stage) -> None:
    where = stage.init("zookeeper-backup")
    done = stage.on_cluster("zookeeper", "backup", *where, *stage.zookeeper.target, code=2)
    assert done["new_logs"] >= 1


def _zookeeper_history(stage: Stage) -> None:
    assert stage.on_one_worker("zookeeper", "history", "/", "--recursive", *stage.zookeeper_repo)["events"]


def _zookeeper_log(stage: Stage) -> None:
    words = ("zookeeper", "log", "--sql", "SELECT count(*) AS n FROM transactions", *stage.zookeeper_repo)
    assert int(stage.on_one_worker(*words)["rows"][0][0]) > 0


def _zookeeper_export_and_import(stage: Stage) -> None:
    out = stage.directory / "bundles"
    bundle = stage.on_one_worker("zookeeper", "export", *stage.zookeeper_repo, "--to", str(out))["bundle"]
    assert [each.name for each in out.iterdir()] == [Path(bundle).name], "no sign of the check is left"
    assert stage.on_one_worker("zookeeper", "import", bundle, *stage.init("imported"))["new_logs"] >= 1


def _schemas_check(stage: Stage) -> None:
    where, producer = stage.init("schemas"), stage.topics.producer()
    for topic in ("_schemas", "with-schemas"):
        stage.topics.create(topic)
    for _, key, value in karapace_records():
        producer.produce("_schemas", value, key)
    for number in (1, 2, 77):
        producer.produce("with-schemas", b"\0" + number.to_bytes(4, "big"))
    producer.flush(30)
    stage.prepare("kafka", "backup", *where, *stage.broker, "--topics", "_schemas|with-schemas")
    (missing,) = stage.on_cluster("kafka", "schemas", "check", "latest", *where, code=10)["missing"]
    assert (missing["id"], missing["topic"], missing["records"], missing["offset"]) == (77, "with-schemas", 1, 2)


def _zookeeper_optimize(stage: Stage) -> None:
    where, data = stage.init("small"), stage.directory / "small-data"
    with server_on(stage.directory / "small-server", data) as server, kazoo(server.client, server.password) as client:
        client.create("/after")
        for number in range(4):
            client.set("/after", b"%d" % number)
            stage.prepare("zookeeper", "backup", *where, "--data-dir", str(data), "--zk-host", server.client)
    assert stage.on_one_worker("zookeeper", "optimize", *where, "--yes")["objects_before"] >= 2


def _zeebe_verify(stage: Stage) -> None:
    store = unpacked_store(stage.directory / "zeebe-store")
    done = stage.on_cluster("zeebe", "verify", "20", "--store", str(store))
    assert (done["verdict"], len(done["copies"]), done["cut"]["orphans"]) == ("good", 3, 0)


def _application_restore(stage: Stage) -> None:
    path = stage.directory / "application-repository"
    store = LocalStore(path)
    store.create()
    world = World(store=store)
    app = ScriptedApplication(world)
    world.drain(take(world.place, app, TakeOptions(BackupId(7)), world.clock, world.tokens))
    where = ("--repo", str(path), "--data", str(stage.directory / "restored-application"))
    done = stage.on_cluster("app", "restore", "7", *where, "--yes")
    assert [each["position"] for each in done["partitions"]] == [3, 3, 3]


def _zeebe_import(stage: Stage) -> None:
    store = unpacked_store(stage.directory / "zeebe-imported")
    repository = (*stage.init("zeebe-repository"), "--source", "zeebe")
    done = stage.on_cluster("zeebe", "import", "20", "--store", str(store), *repository)
    assert (done["id"], done["partitions"], done["changed"]) == (20, 3, True)
    done = stage.on_cluster("zeebe", "export", "20", *repository, "--to", str(stage.directory / "zeebe-exported"))
    assert (done["verdict"], done["files"], done["cut"]["orphans"]) == ("good", 21, 0)


CASES = {
    "app restore": (_application_restore,),
    "backup-set take": (_backup_set,),
    "kafka backup": (_kafka_backup,),
    "verify": (_verify,),
    "kafka restore": (_kafka_restore, _offline_restore),
    "drill": (_drill,),
    "kafka salvage": (_salvage,),
    "kafka import": (_import,),
    "kafka schemas check": (_schemas_check,),
    "kafka optimize": (_kafka_optimize,),
    "kafka groups": (_kafka_groups,),
    "kafka export": (_kafka_export,),
    "kafka fold": (_kafka_fold,),
    "sql": (_sql,),
    "zeebe export": (_zeebe_import,),
    "zeebe import": (_zeebe_import,),
    "zeebe verify": (_zeebe_verify,),
    "zookeeper backup": (_zookeeper_backup,),
    "zookeeper history": (_zookeeper_history,),
    "zookeeper log": (_zookeeper_log,),
    "zookeeper export": (_zookeeper_export_and_import,),
    "zookeeper import": (_zookeeper_export_and_import,),
    "zookeeper optimize": (_zookeeper_optimize,),
}
_OWN_SESSION = (_kafka_backup,)
_ONCE = list(dict.fromkeys(case for cases in CASES.values() for case in cases))


def _name(case: Any) -> str:
    return str(case.__name__).strip("_")


def test_no_verb_with_an_engine_is_forgotten() -> None:
    flags = {entry.words: {flag for p in entry.load().params for flag in p.opts} for entry in VERBS}
    taking = {words for words, known in flags.items() if "--engine" in known and not words.startswith("config ")}
    assert taking == CASES.keys(), "`config` only shows the option"


@pytest.mark.parametrize("case", _OWN_SESSION, ids=_name)
def test_a_command_with_its_own_session(stage: Stage, case: Any) -> None:
    case(stage)


def _hidden_salvage(stage: Stage, place: Path) -> _Refused:
    disk = made_disk(place, watermarks={TopicPartition("orders", 0): 60})
    add_log(disk, "orders-0", [run_of(0, 30), run_of(30, 60)])
    where = stage.init("not-salvaged")
    return where, ("kafka", "salvage", *where, "--log-dirs", str(disk)), disk


def _hidden_offline_restore(stage: Stage, place: Path) -> _Refused:
    home = stage.directory / "hidden"
    home.mkdir()
    backed_up(home, _LOGS)
    target = made_target(place, list(_LOGS))
    words = ("kafka", "restore", "latest", *stage.repo("hidden/repository"), "--to-log-dirs", str(target), "--yes")
    return (), words, target


def _hidden_zookeeper_backup(stage: Stage, place: Path) -> _Refused:
    data = shutil.copytree(stage.zookeeper.data_dir, place)
    where = stage.init("not-backed-up")
    return where, ("zookeeper", "backup", *where, "--data-dir", str(data)), data


def _hidden_zookeeper_export(stage: Stage, place: Path) -> _Refused:
    place.mkdir()
    return (), ("zookeeper", "export", *stage.zookeeper_repo, "--to", str(place)), place


def _hidden_zookeeper_import(stage: Stage, place: Path) -> _Refused:
    place.mkdir()
    bundle = Path(stage.prepare("zookeeper", "export", *stage.zookeeper_repo, "--to", str(place))["bundle"])
    where = stage.init("not-imported")
    return where, ("zookeeper", "import", str(bundle), *where), bundle


_HIDDEN = (
    _hidden_salvage,
    _hidden_offline_restore,
    _hidden_zookeeper_backup,
    _hidden_zookeeper_export,
    _hidden_zookeeper_import,
)
"""Verbs that read or write local directories; each gets a place that one worker finds empty."""


class TestOneSession:
    def test_units_run_on_two_workers_with_the_shipped_package_and_the_secret_is_in_no_argument(
        self, in_session: Stage, tmp_path: Path
    ) -> None:
        """The first of the session: its driver and its executors are started while the command lines are watched."""
        with watched_command_lines() as seen:
            answer = in_session.units("meet_and_report", 2, tmp_path)
        assert len(set(answer["pids"])) == 2
        for package, surroundings, core_limits in map(json.loads, answer["texts"]):
            assert core_limits == [0, 0]
            assert Path(package).parent.parent.name == "logkeep.zip"
            directory, _mode, safe, paths = json.loads(surroundings)
            assert safe
            assert not {directory, ""} & set(paths), "a worker imports nothing from its directory"
        for process in (b"SparkSubmit", b"master.Master", b"worker.Worker", _EXECUTOR, b"pyspark.daemon"):
            assert any(process in line for line in seen), f"{process!r} was watched"
        assert not [line for line in seen if in_session.cluster.secret.encode() in line]

    @pytest.mark.parametrize("case", [case for case in _ONCE if case not in _OWN_SESSION], ids=_name)
    def test_on_a_cluster(self, in_session: Stage, case: Any) -> None:
        case(in_session)

    @pytest.mark.parametrize("case", _HIDDEN, ids=_name)
    def test_a_directory_that_one_worker_does_not_see_is_refused(
        self, in_session: Stage, hidden: Path, tmp_path: Path, case: Any
    ) -> None:
        """Before the first unit: nothing is archived, and nothing is written there."""
        where, words, directory = case(in_session, hidden / tmp_path.name)
        before = tree(hidden)
        said = in_session.refused(*words, code=40)
        assert "does not see this directory as the driver does" in said
        assert str(directory) in said
        assert tree(hidden) == before
        if where:
            listed = json.loads(in_session.run(("list", *where, "--json"), {}).stdout)["backups"]
            assert {row["state"] for row in listed} <= {"failed"}


@pytest.mark.soak
@pytest.mark.parametrize("case", [case for case in _ONCE if case not in _OWN_SESSION], ids=_name)
@pytest.mark.parametrize("workers", [1, 2])
def test_every_command_with_its_own_session(stage: Stage, case: Any, workers: int, tmp_path: Path) -> None:
    """Each in a directory of its own: what the short run made is not made twice."""
    (tmp_path / "home").mkdir()
    share_kernels(tmp_path / "home")
    own = replace(stage, directory=tmp_path)
    case(own if workers == 1 else replace(own, one_worker=()))


@pytest.mark.soak
@pytest.mark.parametrize(("kind", "level"), [(kind, level) for kind in _LEVELS for level in _LEVELS[kind]])
def test_every_level_of_verify(stage: Stage, kind: str, level: str) -> None:
    where = stage.backed if kind == "kafka" else stage.zookeeper_repo
    broker = stage.broker if level == "source" else ()
    assert stage.on_cluster("verify", *where, *broker, "--level", level)["verdict"] == "good"


@pytest.mark.soak
def test_a_cluster_without_authentication_is_a_finding(stage: Stage, tmp_path: Path) -> None:
    words = ("verify", *stage.backed, "--level", "data")
    with spark_cluster(tmp_path, secure=False) as open_cluster:
        done = stage.on(open_cluster, *words, "--spark-conf", "spark.authenticate=false")
    assert (done["verdict"], [finding["code"] for finding in done["findings"]]) == ("good", ["spark-unauthenticated"])


@pytest.mark.soak
def test_a_worker_is_killed_during_a_restore(stage: Stage, tmp_path: Path) -> None:
    """Its units run again on the other worker. Speculation, which the user asks for, stays off."""
    where, partitions, values = stage.init("large"), 4, [f"{number:06d}" + "x" * 1000 for number in range(4000)]
    stage.topics.create("large", partitions)
    for partition in range(partitions):
        write(stage.topics, "large", values, partition)
    stage.prepare("kafka", "backup", *where, *stage.broker, "--topics", "large")
    more = ["--confirm-cluster", stage.cluster_id, "--rename", "large=again", "--limit-produce", "1MiB", "--yes"]
    more += ["--spark-conf", "spark.speculation=true"]
    with spark_cluster(tmp_path) as cluster, ThreadPoolExecutor(1) as pool:
        running = pool.submit(stage.on, cluster, "kafka", "restore", "latest", *where, *stage.broker, *more)
        wait_for(lambda: running.done() or _records(stage.kafka, "again", partitions) > 0, "the first records")
        cluster.kill_worker(0)
        done = running.result()
    assert (done["verdict"], done["records"]) == ("proven", partitions * len(values))
    assert all(read(stage.kafka, "again", partition) == values for partition in range(partitions))


@pytest.mark.soak
def test_a_worker_that_was_given_up_wakes_up(stage: Stage, tmp_path: Path) -> None:
    """It stands still in the middle of a unit until the other worker has taken the unit over, and then sends on."""
    where, values = stage.init("paused"), [f"{number:06d}" + "x" * 1000 for number in range(20000)]
    stage.topics.create("paused", 1)
    write(stage.topics, "paused", values)
    stage.prepare("kafka", "backup", *where, *stage.broker, "--topics", "paused")
    more = ["--confirm-cluster", stage.cluster_id, "--rename", "paused=woken", "--limit-produce", "1MiB", "--yes"]
    for setting in ("network.timeout=20s", "network.timeoutInterval=2s", "executor.heartbeatInterval=2s"):
        more += ["--spark-conf", f"spark.{setting}"]
    with spark_cluster(tmp_path) as cluster, ThreadPoolExecutor(1) as pool:
        running = pool.submit(stage.on, cluster, "kafka", "restore", "latest", *where, *stage.broker, *more)
        wait_for(lambda: running.done() or _records(stage.kafka, "woken", 1) > 0, "the first records")
        ((attempt, family),) = _sending(stage, cluster)
        try:
            _signal(family, signal.SIGSTOP)
            wait_for(lambda: running.done() or len(_sending(stage, cluster)) == 2, "another attempt at the unit")
            before = _records(stage.kafka, "woken", 1)
            wait_for(lambda: running.done() or _records(stage.kafka, "woken", 1) > before, "its first records")
            assert not running.done(), running.result()
            _signal([attempt], signal.SIGCONT)
            wait_for(lambda: attempt not in dict(_sending(stage, cluster)), "the end of the attempt that woke up")
        finally:
            _signal(family, signal.SIGCONT)
        done = running.result()
    print(f"woken at {before} of {len(values)} records: {done['verdict']}, {done['records']} records")
    assert (done["verdict"], done["records"]) == ("proven", len(values))
    assert read(stage.kafka, "woken") == values


def _sending(stage: Stage, cluster: SparkCluster) -> list[tuple[int, list[int]]]:
    """Processes of the cluster that have a connection to the broker, each with all processes of its worker."""
    port = int(stage.kafka.bootstrap.rpartition(":")[2])
    return [(pid, family) for family in cluster.families() for pid in family if is_connected(pid, port)]


def _signal(processes: list[int], number: signal.Signals) -> None:
    for pid in processes:
        with suppress(ProcessLookupError):
            os.kill(pid, number)


def _records(kafka: EmbeddedKafka, topic: str, partitions: int) -> int:
    return sum(_ends(kafka, topic, partitions))


def _ends(kafka: EmbeddedKafka, topic: str, partitions: int) -> list[int]:
    """Of each partition; nothing while one of a new topic has no leader yet."""
    if topic not in topic_names(kafka):
        return []
    try:
        return [bounds(kafka, topic, partition)[1] for partition in range(partitions)]
    except KafkaException:
        return []
