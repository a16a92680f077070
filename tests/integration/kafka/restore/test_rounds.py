"""What makes a restore go on in another round: a producer that the broker forgot, topics that two restores want."""

import os
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import msgspec
import pytest
from confluent_kafka import TopicPartition as ConsumerPosition
from confluent_kafka.admin import AlterConfigOpType, ConfigEntry, ConfigResource

from logkeep.embedded.kafka import EmbeddedKafka
from logkeep.engine.inline import InlineEngine
from logkeep.errors import TargetUnsafe
from logkeep.kafka.admin.offsets import describe_producers
from logkeep.kafka.client.cluster import Cluster
from logkeep.kafka.client.settings import ClientSettings, endpoints
from logkeep.kafka.client.topology import TopicPartition
from logkeep.kafka.restore.facts.backup_view import view_backup
from logkeep.kafka.restore.facts.units import Offsets
from logkeep.kafka.restore.plan.plan import PlanOptions
from logkeep.kafka.restore.plan.selection import RestoreSelection
from logkeep.kafka.restore.prepare import ClockAndTokens, KafkaRestoreOptions, PreparedKafkaRestore, prepare
from logkeep.kafka.restore.run import KafkaRestore
from logkeep.kafka.restore.write import KafkaLogWriter
from logkeep.model.cache import cache_dir
from logkeep.model.ids import RestoreId
from logkeep.model.time import random_token, utc_now
from logkeep.repository.chain.commits import SourceRef, read_chain
from logkeep.repository.restores import NewRestore, RestoreTargetRef, RestoreVerdict, begin_restore, read_producers
from tests.support.kafka.client_view_of_configs import own_configs
from tests.support.kafka.consumer_view import seen
from tests.support.kafka.topic_matrix import BROKER, Matrix
from tests.support.kafka.whole_backups import Archive, new_place
from tests.support.processes import wait_for

pytestmark = pytest.mark.xdist_group("kafka-restore")
RECORDS, HALF = 100, 50
"""In batches of ten."""


@pytest.fixture(scope="module")
def forgetful(tmp_path_factory: pytest.TempPathFactory) -> Iterator[EmbeddedKafka]:
    """A broker that looks often for producers to forget."""
    quickly = {"producer.id.expiration.check.interval.ms": "100"}
    directory, cache = tmp_path_factory.mktemp("forgetful"), cache_dir(os.environ, Path.home())
    with EmbeddedKafka(directory / "broker", cache, properties=BROKER | quickly) as running:
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

    def write(self, restore_id: RestoreId, end: int | None = None) -> None:
        """The part that writes records; up to an earlier end it is as if it was killed there."""
        plan = self.prepared.plan
        if end is not None:
            logs = tuple(msgspec.structs.replace(log, end=end) for log in plan.logs)
            plan = msgspec.structs.replace(plan, logs=logs, prove=False)
        view = self.prepared.view
        KafkaLogWriter(restore_id, view, self.place, plan, self.settings, InlineEngine(), "0" * 16).write()


def _restoring(
    kafka: EmbeddedKafka,
    root: Path,
    topic: str,
    offsets: Offsets,
    start: int = 0,
    *,
    prove: bool = True,
    wishes: PlanOptions | None = None,
) -> Restoring:
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
    return Restoring(archive.place, settings, prepared, wish)


def _make_it_forget(kafka: EmbeddedKafka, settings: ClientSettings, topic: str) -> None:
    """Only for as long as it takes, so that a slow machine does not lose the producers that still write."""
    log, name = TopicPartition(topic, 0), "producer.id.expiration.ms"
    _set_for_brokers(kafka, ConfigEntry(name, "1", incremental_operation=AlterConfigOpType.SET))
    try:
        with Cluster(settings) as cluster:
            wait_for(lambda: not describe_producers(cluster, [log])[log], "a broker that has forgotten")
    finally:
        _set_for_brokers(kafka, ConfigEntry(name, None, incremental_operation=AlterConfigOpType.DELETE))


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
