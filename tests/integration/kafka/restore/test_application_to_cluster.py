"""An application is restored to the topics of a cluster: from a log in files, from the cluster itself, after kills."""

import json
import threading
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from datetime import timedelta
from pathlib import Path
from typing import Any, NamedTuple

import msgspec
import pytest
from confluent_kafka import Consumer
from confluent_kafka.admin import AdminClient

from logkeep.application import Application
from logkeep.application.control import SendRequest
from logkeep.application.data_directory import DirectoryLock, open_directory
from logkeep.application.kafka_log.client import KafkaClient
from logkeep.application.kafka_log.current_application import find_application
from logkeep.application.kafka_log.inbox import InboxSender, KafkaInbox
from logkeep.application.kafka_log.kafka_log import KafkaLog
from logkeep.application.kafka_log.log_topics import ApplicationTopics, ensure_topics
from logkeep.application.kafka_log.restore import check_written, restore_to_cluster
from logkeep.application.kafka_log.restore_task import ClusterUnit, WrittenPartition, compare, write_partition
from logkeep.application.partition_worker import KeepingLimits
from logkeep.application.runtime import Runtime
from logkeep.application.worker_factory import RuntimeOptions
from logkeep.checkpoint.archive.record import read_application
from logkeep.checkpoint.archive.take import mark
from logkeep.checkpoint.partition_state import CutFacts
from logkeep.checkpoint.records import Kind, Record, command
from logkeep.checkpoint.restore.plan import ApplicationRestorePlan
from logkeep.checkpoint.restore.run import prepare, stage_units
from logkeep.checkpoint.state.sqlite_state import SqliteState
from logkeep.checkpoint.steps import Steps
from logkeep.checkpoint.steps import run as run_steps
from logkeep.embedded.kafka import EmbeddedKafka
from logkeep.engine.inline import InlineEngine
from logkeep.errors import Damaged, Locked, PartitionFenced, RestoreFailed, TargetUnsafe
from logkeep.model.ids import BackupId
from logkeep.model.time import random_token, utc_now
from logkeep.repository.access import open_repository
from logkeep.repository.backups.source import read_manifest
from logkeep.repository.chain.commits import SourceRef, read_chain
from logkeep.repository.restores import list_restores
from logkeep.store.local.store import LocalStore
from tests.support.cli.processes import logkeep
from tests.support.kafka.application_processes import ApplicationProcesses
from tests.support.processes import wait_for
from tests.support.running_application import bank, new_repository, take
from tests.support.shop import difference, shop

pytestmark = pytest.mark.xdist_group("kafka-restore")


class Cluster(ApplicationProcesses):
    """The shop on a cluster, its repository, and the commands of an operator."""

    def __init__(self, kafka: EmbeddedKafka, home: Path, name: str) -> None:
        super().__init__(home, kafka.bootstrap, "tests.support.shop:shop", name)
        new_repository(self.repository)
        self.config = {"bootstrap.servers": kafka.bootstrap}

    @property
    def place(self) -> SourceRef:
        return open_repository(LocalStore(self.repository)).place(self.name)

    def app(self, *arguments: str, code: int = 0) -> dict[str, Any]:
        where = ("--repo", str(self.repository), "--json")
        done = logkeep("app", *arguments, *where, home=self.home)
        assert done.returncode == code, done.stderr
        return json.loads(done.stdout) if done.stdout else {"stderr": done.stderr}

    def restore(self, number: int, *more: str, code: int = 0) -> dict[str, Any]:
        where = ("--bootstrap-servers", self.bootstrap, "--engine", "inline")
        return self.app("restore", str(number), *where, *more, code=code)

    def order(self, *keys: str) -> None:
        port = KafkaClient(self.config, self.name)
        for number, key in enumerate(keys):
            port.send(SendRequest("order", key, {"total": number % 7 + 1, "customer": f"c{number % 5}"}, key))
        port.close()

    def digests(self, number: int) -> list[str]:
        """Of the state at a checkpoint, as its backup recorded them."""
        entry = read_chain(self.place).entry(BackupId(number))
        assert entry is not None
        return [copy.state_digest for copy in read_application(self.place, read_manifest(self.place, entry)).copies]

    def replayed(self, data: Path, number: int) -> list[str]:
        """Of the state at a checkpoint, as leaders that replayed the restored logs have it."""
        found: list[str] = []

        def is_replayed() -> bool:
            cuts = [_system(path / "state.sqlite", "cut", CutFacts) for path in sorted(data.glob("p*"))]
            found[:] = [cut.digest for cut in cuts if cut is not None and cut.id == number]
            return len(found) == 4

        wait_for(is_replayed, "the replay of four partitions")
        return found


def _system(path: Path, key: str, kind: Any) -> Any:
    state = SqliteState(path)
    try:
        data = state.get_system(key)
        return None if data is None else msgspec.msgpack.decode(data, type=kind)
    finally:
        state.close()


def _drained(directory: Path) -> Callable[[], bool]:
    def is_drained() -> bool:
        states = [SqliteState(path / "state.sqlite") for path in directory.glob("p*")]
        try:
            return not any(key.startswith("outbox/") for state in states for key, _ in state.system_items())
        finally:
            for state in states:
                state.close()

    return is_drained


def _values(directory: Path) -> dict[str, Any]:
    found = {}
    for path in directory.glob("p*"):
        state = SqliteState(path / "state.sqlite")
        found.update({key: msgspec.msgpack.decode(value) for key, value in state.items()})
        state.close()
    return found


@contextmanager
def _in_files(
    application: Application, directory: Path, place: SourceRef | None, *, every_bytes: int = 2 << 10
) -> Iterator[Runtime]:
    """In this process, usually with snapshots so often that the log is compacted."""
    directory.mkdir(exist_ok=True)
    lock = DirectoryLock(directory)
    made = open_directory(directory, application.name, application.partitions, utc_now())
    limits = KeepingLimits(
        snapshot_every_bytes=every_bytes, most_unarchived_bytes=4 * every_bytes, segment_bytes=2 << 10
    )
    options = RuntimeOptions(limits, open_place=None if place is None else lambda: place)
    runtime = Runtime(application, made, options)
    runtime.start()
    try:
        yield runtime
    finally:
        runtime.stop()
        lock.release()


def test_a_compacted_log_in_files_goes_to_a_cluster_and_back(kafka: EmbeddedKafka, tmp_path: Path) -> None:
    run = Cluster(kafka, tmp_path, "shop-to-cluster")
    keys = [f"o-{number}" for number in range(60)]
    with _in_files(shop(run.name), tmp_path / "files", run.place) as runtime:
        for number, key in enumerate(keys):
            runtime.submit("order", key, {"total": number % 7 + 1, "customer": f"c{number % 5}"})
        wait_for(lambda: all(worker.log.start > 0 for worker in runtime.workers), "compacted logs")
        runtime.submit("order", "o-late", {"total": 1, "customer": "c0"})
        assert take(run.place, runtime, 7).state == "completed"
        runtime.submit("order", "o-behind", {"total": 1, "customer": "c0"})
    restored = run.restore(7, "--yes")
    assert (restored["history"], restored["cluster"], restored["old_topics"]) == (1, run.bootstrap, [])
    assert all(one["proven"] and one["snapshot_position"] > 0 for one in restored["partitions"])
    with run.running("data"):
        assert run.replayed(tmp_path / "data", 7) == run.digests(7)
        wait_for(_drained(tmp_path / "data"), "empty outboxes")
        state = _values(tmp_path / "data")
        assert ({*keys, "o-late"}, difference(state)) == ({key for key in state if key.startswith("o-")}, 0)
        run.order("o-again")
        assert run.app("backup", run.name, "--bootstrap-servers", run.bootstrap, "--id", "8")["state"] == "completed"
    verified = logkeep(
        "verify", "8", "--level", "cut", "--engine", "inline", "--repo", str(run.repository), home=tmp_path
    )
    assert verified.returncode == 0, verified.stdout
    back = run.app("restore", "8", "--data", str(tmp_path / "back"), "--yes", "--engine", "inline")
    assert all(one["proven"] for one in back["partitions"])
    with _in_files(shop(run.name), tmp_path / "back", None):
        wait_for(_drained(tmp_path / "back"), "empty outboxes")
    state = _values(tmp_path / "back")
    assert ("o-again" in state, "o-behind" in state, difference(state)) == (True, False, 0)


@contextmanager
def _leader(run: Cluster, partition: int) -> Iterator[KafkaLog]:
    """A leader that is no member of the group, as a process that was suspended for long."""
    current = find_application(run.config, run.name)
    inbox = KafkaInbox(run.config, current.topics, partition, InboxSender(run.config, current.topics), lambda _: None)
    log = KafkaLog(run.config, current.topics, partition, inbox, current.start(partition))
    try:
        yield log
    finally:
        log.close()
        inbox.close()


def _topics(run: Cluster) -> set[str]:
    return {name for name in AdminClient(run.config).list_topics().topics if name.startswith(f"{run.name}.")}


def test_an_application_on_a_cluster_is_rolled_back_where_it_is(kafka: EmbeddedKafka, tmp_path: Path) -> None:
    run = Cluster(kafka, tmp_path, "shop-rolled-back")
    ensure_topics(run.config, ApplicationTopics(run.name), 4)
    with run.running("data"):
        run.order("o-1", "o-2")
        assert run.app("backup", run.name, "--bootstrap-servers", run.bootstrap, "--id", "7")["state"] == "completed"
        run.order("o-late")
    assert "has records" in run.restore(7, "--yes", code=31)["stderr"]
    InboxSender(run.config, ApplicationTopics(run.name)).message(0, command("order", "o-queued", b"\x81\xa5total\x01"))
    with _leader(run, 0) as suspended:
        planned = run.restore(7, "--replace", "--dry-run")
        assert sum(one["dropped"] for one in planned["partitions"]) > 0
        before = _topics(run)
        done = run.restore(7, "--replace", "--yes")
        assert set(done["old_topics"]) < before
        assert [(row.id, row.state) for row in list_restores(run.place)] == [(done["restore"], "proven")]
        assert _topics(run) == before | {f"{name}.h1" for name in done["old_topics"]}
        with pytest.raises(PartitionFenced):
            suspended.append([command("order", "o-lost", b"\x80").at(-1, 1_000)])
    with run.running("data"):
        assert run.replayed(tmp_path / "data", 7) == run.digests(7)
        run.order("o-2", "o-3")
        assert run.app("backup", run.name, "--bootstrap-servers", run.bootstrap, "--id", "8")["state"] == "completed"
        wait_for(_drained(tmp_path / "data"), "empty outboxes")
    state = _values(tmp_path / "data")
    assert {key for key in state if key.startswith("o-")} == {"o-1", "o-2", "o-3"}
    assert difference(state) == 0


class _Interrupted(NamedTuple):
    """Restores of backup 7 to a cluster where it was restored before."""

    run: Cluster
    plan: ApplicationRestorePlan

    def steps(self, wanted: Sequence[int], patience_s: float = 0.0) -> Steps[list[WrittenPartition]]:
        numbers = iter(wanted)
        return restore_to_cluster(
            self.run.config, self.plan, lambda: next(numbers), self.units, lambda _: InlineEngine(), replace=True,
            members_leave_s=patience_s,
        )  # fmt: skip

    def units(self, history: int) -> list[ClusterUnit]:
        stages = stage_units(self.run.place, read_chain(self.run.place), self.plan)
        return [
            ClusterUnit(
                stage=stage, bootstrap_servers=self.run.bootstrap, client_config=None, application=self.run.name,
                history=history, end=each.position + 1,
            )
            for stage, each in zip(stages, self.plan.partitions, strict=True)
        ]  # fmt: skip

    def until(self, label: str, history: int) -> None:
        """Killed at this step."""
        steps = self.steps([history])
        assert any(step == label for step in steps)
        steps.close()

    def records(self) -> list[Record]:
        """All that partition 0 has now."""
        with _leader(self.run, 0) as log:
            return log.read(log.start, 1 << 30)


@pytest.fixture(scope="module")
def interrupted(kafka: EmbeddedKafka, tmp_path_factory: pytest.TempPathFactory) -> _Interrupted:
    home = tmp_path_factory.mktemp("interrupted")
    run = Cluster(kafka, home, "bank-interrupted")
    with _in_files(bank(run.name), home / "files", run.place, every_bytes=1 << 20) as runtime:
        for number in range(5):
            runtime.submit("move", f"a{number}", {"amount": 1, "to": f"b{number}"})
        marked = mark(run.place, runtime, BackupId(6), timedelta(minutes=1), utc_now, random_token)
        run_steps(marked, threading.Event().wait)
        assert take(run.place, runtime, 7).state == "completed"
    found = _Interrupted(run, prepare(run.place, read_chain(run.place), 7))
    run_steps(found.steps([1]), lambda _: False)
    return found


def test_a_restore_that_is_killed_leaves_the_old_application_or_one_that_does_not_start(
    interrupted: _Interrupted,
) -> None:
    run, old = interrupted.run, interrupted.records()
    for number, label in enumerate(("writer", "staging", "topics", "stage", "close"), 2):
        interrupted.until(label, number)
        assert (find_application(run.config, run.name).history, interrupted.records()) == (1, old), label
    for number, label in enumerate(("closed", "fence", "open"), 7):
        interrupted.until(label, number)
        with pytest.raises(Locked, match="has not ended"):
            find_application(run.config, run.name)
    run_steps(interrupted.steps([10]), lambda _: False)
    assert (find_application(run.config, run.name).history, interrupted.records()) == (10, old)
    wait_for(lambda: {_history_of(name) for name in _topics(run)} == {"", "h1", "h10"}, "no topics of other restores")


def _history_of(topic: str) -> str:
    last = topic.rpartition(".")[2]
    return last if last[1:].isdecimal() else ""


def test_a_process_that_began_during_a_restore_ends_the_restore(interrupted: _Interrupted) -> None:
    run = interrupted.run
    before = find_application(run.config, run.name).history
    steps = interrupted.steps([before + 1])
    assert any(step == "close" for step in steps)
    member = Consumer({**run.config, "group.id": run.name})
    member.subscribe([ApplicationTopics(run.name, before).inbox])
    wait_for(lambda: member.poll(0.1) is None and member.assignment(), "a member")
    with pytest.raises(TargetUnsafe, match="1 active member") as refused:
        run_steps(steps, lambda _: False)
    assert refused.value.exit_code == 31
    member.close()
    assert find_application(run.config, run.name).history == before


def test_a_second_restore_ends_the_first(interrupted: _Interrupted) -> None:
    run = interrupted.run
    before = find_application(run.config, run.name).history
    first = interrupted.steps([before + 1])
    assert any(step == "close" for step in first)
    run_steps(interrupted.steps([before + 2]), lambda _: False)
    with pytest.raises(Locked, match="another restore"):
        run_steps(first, lambda _: False)
    assert find_application(run.config, run.name).history == before + 2


def test_cuts_inside_a_restored_log_end_behind_their_create(interrupted: _Interrupted) -> None:
    with _leader(interrupted.run, 0) as log:
        records = log.read(log.start, 1 << 30)
        marked, *_, last = (one.position for one in records if one.kind == Kind.CREATE)
        assert (log.cut_end(marked), log.cut_end(last), log.end) == (marked + 1, last + 2, last + 2)
        assert marked + 1 in {one.position for one in records}  # a log in files has no markers of transactions


def test_a_repeated_attempt_to_write_a_partition_counts_alone(interrupted: _Interrupted) -> None:
    run = interrupted.run
    number = find_application(run.config, run.name).history + 1
    ensure_topics(run.config, ApplicationTopics(run.name, number), 2)
    unit = interrupted.units(number)[0]
    first, second = (write_partition(unit, lambda _: None).start for _ in range(2))
    assert (second.position, second.end, second.chunks) == (first.position, first.end, first.chunks)
    assert second.offset > first.offset
    with pytest.raises(RestoreFailed, match="not after the marker"):
        check_written(run.config, ApplicationTopics(run.name, number), [first])
    check_written(run.config, ApplicationTopics(run.name, number), [second])
    with pytest.raises(Damaged, match="or other ones"):
        compare(unit, second.offset, second.end - second.position, bytes(32))
