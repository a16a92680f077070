"""What makes a restore go on in another round: a producer that the broker forgot, topics that two restores want."""

import os
import subprocess
import sys
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import msgspec
import pytest
from confluent_kafka import TopicPartition as ConsumerPosition
from confluent_kafka.admin import AlterConfigOpType, ConfigEntry, ConfigResource

from logkeep.embedded.kafka import EmbeddedKafka
from logkeep.engine.inline import InlineEngine
from logkeep.errors import ClusterError, ClusterNotReady, Locked, LogkeepError, RestoreFailed, TargetUnsafe
from logkeep.formats.kafka.restore.merge_batches import BatchMergeRule
from logkeep.kafka.admin.offsets import describe_producers
from logkeep.kafka.admin.topics import ResourceKind, describe_configs
from logkeep.kafka.client.cluster import Cluster
from logkeep.kafka.client.settings import ClientSettings, endpoints
from logkeep.kafka.client.topology import TopicPartition
from logkeep.kafka.record.backup_view import view_backup
from logkeep.kafka.restore.facts.units import Offsets, ReplayOutcome
from logkeep.kafka.restore.plan.selection import RestoreSelection
from logkeep.kafka.restore.plan.values import PlanOptions
from logkeep.kafka.restore.prepare import ClockAndTokens, KafkaRestoreOptions, PreparedKafkaRestore, prepare
from logkeep.kafka.restore.run import KafkaRestore
from logkeep.kafka.restore.write import KafkaLogWriter
from logkeep.model.cache import cache_dir
from logkeep.model.ids import RestoreId
from logkeep.model.time import random_token, utc_now
from logkeep.model.work import Engine
from logkeep.repository.chain.commits import SourceRef, read_chain
from logkeep.repository.restores import NewRestore, RestoreTargetRef, RestoreVerdict, begin_restore, read_producers
from tests.integration.kafka.replay.attempts import KILLED, Attempts, attempts
from tests.support.kafka.client_view_of_configs import own_configs
from tests.support.kafka.consumer_view import seen
from tests.support.kafka.topic_matrix import BROKER, Matrix
from tests.support.kafka.whole_backups import Archive, new_place
from tests.support.processes import wait_for
from tests.support.twice_engine import TwiceEngine

pytestmark = pytest.mark.xdist_group("kafka-restore")
RECORDS, HALF = 100, 50
"""In batches of ten."""
PAIRS = BatchMergeRule(small_bytes=4096, most_bytes=480)
"""Two batches of ten are merged, and three would be too large."""
REQUESTS = 5


@pytest.fixture(scope="module")
def forgetful(tmp_path_factory: pytest.TempPathFactory) -> Iterator[EmbeddedKafka]:
    """A broker that looks often for producers to forget."""
    quickly = {"producer.id.expiration.check.interval.ms": "100"}
    directory, cache = tmp_path_factory.mktemp("forgetful"), cache_dir(os.environ, Path.home())
    with EmbeddedKafka(directory / "broker", cache, properties=BROKER | quickly) as running:
        yield running


@pytest.fixture(scope="module")
def children() -> Iterator[Attempts]:
    with attempts() as running:
        yield running


@dataclass(frozen=True)
class Restoring:
    """A restore of one topic, step by step."""

    place: SourceRef
    settings: ClientSettings
    prepared: PreparedKafkaRestore
    wish: KafkaRestoreOptions

    @property
    def task(self) -> KafkaRestore:
        return KafkaRestore(self.place, self.place, self.settings, utc_now, random_token)

    def begin(self) -> RestoreId:
        """Only store the plan."""
        new = NewRestore(
            backup=self.prepared.view.entry.id,
            kind="kafka",
            target=RestoreTargetRef(cluster_id=self.prepared.target.cluster_id),
            body=msgspec.json.encode(self.prepared.plan),
        )
        return begin_restore(self.place, new, utc_now, random_token)

    def write(self, restore_id: RestoreId, end: int | None = None, engine: Engine | None = None) -> None:
        """The part that writes records; up to an earlier end it is as if it was killed there."""
        plan = self.prepared.plan
        if end is not None:
            logs = tuple(msgspec.structs.replace(log, end=end) for log in plan.logs)
            plan = msgspec.structs.replace(plan, logs=logs, prove=False)
        view = self.prepared.view
        KafkaLogWriter(restore_id, view, self.place, plan, self.settings, engine or InlineEngine(), "0" * 16).write()


def _restoring(
    kafka: EmbeddedKafka,
    root: Path,
    topic: str,
    offsets: Offsets,
    start: int = 0,
    *,
    prove: bool = True,
    wishes: PlanOptions | None = None,
    merge: BatchMergeRule | None = None,
) -> Restoring:
    """Without `merge` the plan is one of an earlier release: every batch is sent by itself."""
    matrix = Matrix(kafka)
    matrix.create(topic)
    producer = matrix.producer()
    for i in range(RECORDS):
        producer.produce(topic, b"value %d" % i, b"%d" % i, 0)
        if i % 10 == 9:
            producer.flush(30)
    for future in matrix.admin.delete_records([ConsumerPosition(topic, 0, start)]).values() if start else ():
        future.result(30)
    archive = Archive(kafka.bootstrap, new_place(root))
    done = archive.back_up(topic)
    entry = read_chain(archive.place).entry(done.entry.id)
    assert entry is not None
    settings = ClientSettings(endpoints(kafka.bootstrap))
    wishes = wishes or PlanOptions(offsets=offsets, parts=("data", "configs"), prove=prove)
    wish = KafkaRestoreOptions(RestoreSelection(renames=(f"{topic}={topic}-back",)), wishes)
    view = view_backup(archive.place, entry)
    prepared = prepare(view, wish, settings, lambda _: InlineEngine(), ClockAndTokens(utc_now, random_token))
    assert prepared.refusals == ()
    return Restoring(archive.place, settings, _with_rule(prepared, merge), wish)


def _with_rule(prepared: PreparedKafkaRestore, merge: BatchMergeRule | None) -> PreparedKafkaRestore:
    logs = tuple(msgspec.structs.replace(log, merge=merge or msgspec.UNSET) for log in prepared.plan.logs)
    return replace(prepared, checked=replace(prepared.checked, plan=msgspec.structs.replace(prepared.plan, logs=logs)))


def _make_it_forget(kafka: EmbeddedKafka, settings: ClientSettings, topic: str) -> None:
    """Only for as long as it takes, so that a slow machine does not lose the producers that still write.

    The controller accepts the change back a moment before the broker applies it.
    """
    log, name = TopicPartition(topic, 0), "producer.id.expiration.ms"
    with Cluster(settings) as cluster:

        def applied() -> str | None:
            (found,) = describe_configs(cluster, ResourceKind.BROKER, ["1"], keys=[name])["1"]
            return found.value

        usual = applied()
        _set_for_brokers(kafka, ConfigEntry(name, "1", incremental_operation=AlterConfigOpType.SET))
        try:
            wait_for(lambda: not describe_producers(cluster, [log])[log], "a broker that has forgotten")
        finally:
            _set_for_brokers(kafka, ConfigEntry(name, None, incremental_operation=AlterConfigOpType.DELETE))
            wait_for(lambda: applied() == usual, "a broker that remembers producers again")


def _set_for_brokers(kafka: EmbeddedKafka, entry: ConfigEntry) -> None:
    resource = ConfigResource(ConfigResource.Type.BROKER, "1")
    resource.add_incremental_config(entry)
    admin = Matrix(kafka).admin
    for future in admin.incremental_alter_configs([resource]).values():
        future.result(30)


@pytest.mark.parametrize("start", [0, 25])
@pytest.mark.parametrize("offsets", list(Offsets))
def test_a_forgotten_producer(forgetful: EmbeddedKafka, tmp_path: Path, offsets: Offsets, start: int) -> None:
    """What is there is compared, and another producer goes on behind it: nothing doubles, nothing is missing.

    With a log start inside of a batch: fillers still stand before it when the producer is forgotten.
    """
    topic = f"forgotten-{offsets}-{start}"
    restoring = _restoring(forgetful, tmp_path, topic, offsets, start)
    restore_id = restoring.begin()
    restoring.write(restore_id, HALF)
    _make_it_forget(forgetful, restoring.settings, f"{topic}-back")
    done = restoring.task.resume(restoring.task.stored(restore_id), restoring.prepared.view, lambda _: InlineEngine())
    assert done.receipt.verdict is RestoreVerdict.PROVEN
    assert [f.code for f in done.receipt.findings] == ["producer-forgotten"]
    found, expected = seen(forgetful.bootstrap, f"{topic}-back", 0), seen(forgetful.bootstrap, topic, 0)
    assert list(found.values()) == list(expected.values())
    assert offsets is Offsets.TRANSLATE or list(found) == list(expected)
    first, second = (d.producers[0] for d in read_producers(restoring.place, restore_id))
    assert (first.position, second.position) == (0, HALF if offsets is Offsets.PRESERVE else HALF - start)
    assert second.producer_id != first.producer_id


class Killed(Exception):
    """The process that ran a unit is dead."""


class DyingEngine(InlineEngine):
    """Runs a unit in a process of its own that dies after one of its Produce requests."""

    def __init__(self, children: Attempts, dies_after: int) -> None:
        super().__init__()
        self._children, self._dies_after = children, dies_after

    def map(self, task: Any, units: Any, result: Any, **_more: Any) -> Any:
        (unit,) = units
        self._children.start(unit, dies_after=self._dies_after)
        assert self._children.ended() == KILLED
        raise Killed


@pytest.mark.parametrize("offsets", list(Offsets))
def test_a_producer_is_forgotten_after_each_request_with_merged_batches(
    forgetful: EmbeddedKafka, tmp_path: Path, children: Attempts, offsets: Offsets
) -> None:
    """Borders of merged batches follow from the plan: another producer goes on at one, wherever the first died."""
    restoring = _restoring(forgetful, tmp_path, f"merged-{offsets}", offsets, merge=PAIRS)
    expected, found = seen(forgetful.bootstrap, f"merged-{offsets}", 0), set[int]()
    for request in range(1, REQUESTS + 1):
        restore_id = restoring.begin()
        with pytest.raises(Killed):
            restoring.write(restore_id, engine=DyingEngine(children, request))
        _make_it_forget(forgetful, restoring.settings, f"merged-{offsets}-back")
        task = restoring.task
        done = task.resume(task.stored(restore_id), restoring.prepared.view, lambda _: InlineEngine())
        assert done.receipt.verdict is RestoreVerdict.PROVEN, done.receipt.findings
        assert seen(forgetful.bootstrap, f"merged-{offsets}-back", 0) == expected
        found |= {document.producers[0].position for document in read_producers(restoring.place, restore_id)}
        Matrix(forgetful).delete(f"merged-{offsets}-back")
    assert found <= set(range(0, RECORDS + 1, 20)), "a producer went on inside of a merged batch"
    assert len(found) > 2


@pytest.mark.parametrize("merge", [None, PAIRS], ids=["unmerged", "merged"])
@pytest.mark.parametrize("offsets", list(Offsets))
def test_every_unit_runs_twice_at_the_same_time(
    kafka: EmbeddedKafka, tmp_path: Path, offsets: Offsets, merge: BatchMergeRule | None
) -> None:
    """Both write the same batches with the same numbers: none is there twice, and none is missing.

    On a broker that looks for producers to forget every ten minutes: fillers have no time, so that a look between the
    two attempts makes it forget their producer.
    """
    topic = f"doubled-{offsets}-{merge is None}"
    restoring, engine = _restoring(kafka, tmp_path, topic, offsets, start=25, merge=merge), TwiceEngine()
    done = restoring.task.begin(restoring.prepared, restoring.wish, engine, {})
    assert done.receipt.verdict is RestoreVerdict.PROVEN, done.receipt.findings
    found, expected = seen(kafka.bootstrap, f"{topic}-back", 0), seen(kafka.bootstrap, topic, 0)
    assert list(found.values()) == list(expected.values())
    assert offsets is Offsets.TRANSLATE or list(found) == list(expected)
    assert engine.twice > 0, "at least the proof ran twice to its end"
    for name in (topic, f"{topic}-back"):
        Matrix(kafka).delete(name)


@pytest.mark.parametrize("prove", [True, False])
@pytest.mark.parametrize("offsets", list(Offsets))
def test_a_forgotten_producer_and_foreign_records(
    forgetful: EmbeddedKafka, tmp_path: Path, offsets: Offsets, prove: bool
) -> None:
    """What is there is not what was sent: said where, and nothing more is written or set; with --no-proof as well."""
    topic = f"mixed-up-{offsets}-{prove}"
    restoring = _restoring(forgetful, tmp_path, topic, offsets, prove=prove)
    restore_id = restoring.begin()
    restoring.write(restore_id, HALF)
    producer = Matrix(forgetful).producer()
    producer.produce(f"{topic}-back", b"somebody else's", partition=0)
    producer.flush(30)
    _make_it_forget(forgetful, restoring.settings, f"{topic}-back")
    task = restoring.task
    done = task.resume(task.stored(restore_id), restoring.prepared.view, lambda _: InlineEngine())
    assert (done.receipt.verdict, done.receipt.records_there) == (RestoreVerdict.FAILED, False)
    (finding,) = done.receipt.findings
    assert (finding.code, finding.where) == ("foreign-writer", f"{topic}-back/0")
    assert f"offset {HALF}" in finding.what
    assert [row.outcome for row in done.receipt.partitions] == ["foreign-writer"]
    assert len(seen(forgetful.bootstrap, f"{topic}-back", 0)) == HALF + 1
    assert own_configs(forgetful, f"{topic}-back")["retention.ms"] == "-1", "it has its own configs already"
    assert task.abort(task.stored(restore_id)).deleted == (f"{topic}-back",)


def test_somebody_was_faster_than_a_restore_that_is_resumed(forgetful: EmbeddedKafka, tmp_path: Path) -> None:
    """Into a topic that was there: killed before the first record, and others wrote before it was resumed."""
    there = Matrix(forgetful)
    there.create("faster-back")
    wishes = PlanOptions(parts=("data", "groups"), prove=False, into_existing=True, offsets=Offsets.TRANSLATE)
    restoring = _restoring(forgetful, tmp_path, "faster", Offsets.TRANSLATE, wishes=wishes)
    restore_id = restoring.begin()
    restoring.write(restore_id, 0)
    producer = there.producer()
    for _ in range(20):
        producer.produce("faster-back", b"somebody else's", partition=0)
    producer.flush(30)
    task = restoring.task
    done = task.resume(task.stored(restore_id), restoring.prepared.view, lambda _: InlineEngine())
    assert (done.receipt.verdict, done.receipt.records_there) == (RestoreVerdict.FAILED, False)
    assert [f.code for f in done.receipt.findings] == ["foreign-writer"]


_RESUMED = """
import sys
from logkeep.model.time import random_token, utc_now
from logkeep.repository.chain.commits import SourceRef
from logkeep.repository.restores import note_resumed
from logkeep.store.access import open_store

url, repository, source, restore = sys.argv[1:]
note_resumed(SourceRef(open_store(url), repository, source), int(restore), utc_now, random_token)
print("resumed", flush=True)
sys.stdin.read()
"""


@contextmanager
def _another_driver(place: SourceRef, restore_id: RestoreId) -> Iterator[int]:
    """A process that resumed the restore; its id."""
    command = [sys.executable, "-c", _RESUMED, place.store.url, place.repository, place.source, str(restore_id)]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as other:
        assert other.stdout is not None
        assert other.stdout.readline() == "resumed\n"
        yield other.pid
        other.communicate()


class TroubledEngine(InlineEngine):
    """Raises an error instead of the replay, or finds a topic of the restore gone."""

    def __init__(self, before: Callable[[], object], error: LogkeepError | None) -> None:
        super().__init__()
        self._before, self._error = before, error

    def map(self, task: Any, units: Any, result: Any, **more: Any) -> Any:
        self._before()
        if self._error is not None:
            raise self._error
        found = super().map(task, units, result, **more)
        gone = {"outcome": ReplayOutcome.GONE, "detail": "the topic was deleted and created again", "proof": None}
        return [
            msgspec.structs.replace(f, logs=tuple(msgspec.structs.replace(r, **gone) for r in f.logs)) for f in found
        ]


@pytest.mark.parametrize(
    "error",
    [
        ClusterError("InitProducerId ended with PRODUCER_FENCED (90)", subject="logkeep-restore-1"),
        ClusterNotReady("another attempt fills the holes of this log", subject="orders/0"),
        RestoreFailed("topics of this restore are gone", subject="orders"),
        None,
    ],
    ids=["fenced", "holes", "gone", "result"],
)
def test_what_fails_beside_another_driver_is_not_a_failure_of_the_restore(
    forgetful: EmbeddedKafka, tmp_path: Path, error: LogkeepError | None
) -> None:
    """Two that resume at the same moment both go on, and end each other's transactions: 50, not 30 or 51."""
    restoring = _restoring(forgetful, tmp_path, f"beside-{type(error).__name__}", Offsets.PRESERVE)
    restore_id, task = restoring.begin(), restoring.task
    with ExitStack() as stack:
        pids = list[int]()
        engine = TroubledEngine(
            lambda: pids.append(stack.enter_context(_another_driver(restoring.place, restore_id))), error
        )
        with pytest.raises(Locked, match="is working on this restore") as refused:
            task.resume(task.stored(restore_id), restoring.prepared.view, lambda _: engine)
        assert f"process {pids[0]} on" in refused.value.what
        assert task.stored(restore_id).receipts == ()
    alone = TroubledEngine(lambda: None, error)
    if error is not None:
        with pytest.raises(type(error)):
            task.resume(task.stored(restore_id), restoring.prepared.view, lambda _: alone)
    else:
        failed = task.resume(task.stored(restore_id), restoring.prepared.view, lambda _: alone)
        assert failed.receipt.verdict is RestoreVerdict.FAILED
    done = task.resume(task.stored(restore_id), restoring.prepared.view, lambda _: InlineEngine())
    assert done.receipt.verdict is RestoreVerdict.PROVEN


def test_two_restores_want_the_same_topic(forgetful: EmbeddedKafka, tmp_path: Path) -> None:
    """Both were planned before either made it: the second does not take what the first has made."""
    one = _restoring(forgetful, tmp_path, "wanted-twice", Offsets.TRANSLATE)
    again = prepare(
        one.prepared.view, one.wish, one.settings, lambda _: InlineEngine(), ClockAndTokens(utc_now, random_token)
    )
    other = Restoring(one.place, one.settings, again, one.wish)
    first, second = one.begin(), other.begin()
    one.write(first, 0)
    with pytest.raises(TargetUnsafe, match="did not create"):
        other.write(second)
    aborted = other.task.abort(other.task.stored(second))
    assert aborted.deleted == ()
    one.write(first)
    assert seen(forgetful.bootstrap, "wanted-twice-back", 0) == seen(forgetful.bootstrap, "wanted-twice", 0)
