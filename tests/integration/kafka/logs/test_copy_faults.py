"""What a broker can do to a copy: remove what it wants next, forget the topic, refuse, slow down, hang up."""

import os
import struct
from collections.abc import Iterator
from dataclasses import dataclass, replace
from pathlib import Path

import pytest
from confluent_kafka import TopicPartition

from logkeep.embedded.kafka import EmbeddedKafka
from logkeep.errors import ClusterUnreachable, SourceDamaged, StoreFull
from logkeep.kafka.backup.claims import join_claims
from logkeep.kafka.backup.copy.copy_task import copy_ranges, copy_with
from logkeep.kafka.backup.units import CopyOutcome, CopyRange, RangeResult, result_of
from logkeep.kafka.logs.leader_epochs import Gap
from logkeep.kafka.logs.lost_offset import Cause
from logkeep.model.cache import cache_dir
from logkeep.model.ids import BackupId
from logkeep.model.ranges import Range
from logkeep.model.time import random_token
from logkeep.repository.backups.journal import receipts
from logkeep.repository.chain.commits import SourceRef
from logkeep.store.base import ObjectWriter
from logkeep.store.local.store import LocalStore
from tests.support.kafka.copied_logs import archived, on_disk, unit_of, whole_range
from tests.support.kafka.plain_client import PlainBrokers, PlainConnection
from tests.support.kafka.topic_matrix import BROKER, Matrix

pytestmark = pytest.mark.xdist_group("kafka-copy-faults")
ACLS = {
    "authorizer.class.name": "org.apache.kafka.metadata.authorizer.StandardAuthorizer",
    "allow.everyone.if.no.acl.found": "true",
    "quota.window.size.seconds": "1",
    "quota.window.num": "2",
}


@pytest.fixture(scope="module")
def kafka(tmp_path_factory: pytest.TempPathFactory) -> Iterator[EmbeddedKafka]:
    directory = tmp_path_factory.mktemp("kafka")
    properties = BROKER | ACLS
    with EmbeddedKafka(directory / "broker", cache_dir(os.environ, Path.home()), properties=properties) as running:
        yield running


@pytest.fixture(scope="module")
def brokers(kafka: EmbeddedKafka) -> PlainBrokers:
    return PlainBrokers("127.0.0.1", kafka.port)


@pytest.fixture(scope="module")
def matrix(kafka: EmbeddedKafka) -> Matrix:
    return Matrix(kafka)


@pytest.fixture
def place(tmp_path: Path) -> SourceRef:
    store = LocalStore(tmp_path / "repository")
    store.create()
    return SourceRef(store, "repository-1", "prod")


def _written(matrix: Matrix, brokers: PlainBrokers, topic: str, batches: int = 40, size: int = 100) -> CopyRange:
    """A topic with batches of ten records."""
    matrix.create(topic)
    producer = matrix.producer(batch_num_messages=10)
    for i in range(batches * 10):
        producer.produce(topic, b"v" * size, b"%d" % i, 0)
    producer.flush(60)
    return whole_range(brokers, topic, 0)


def _only(place: SourceRef, brokers: PlainBrokers, wanted: CopyRange) -> RangeResult:
    result = copy_ranges(unit_of("unit", place, brokers, [wanted]), lambda _: None)
    (receipt,) = receipts(place, BackupId(1))
    assert result_of(receipt) == result
    return result.ranges[0]


def test_retention_leaves_a_gap_with_exact_offsets(
    kafka: EmbeddedKafka, brokers: PlainBrokers, matrix: Matrix, place: SourceRef
) -> None:
    wanted = _written(matrix, brokers, "shortened")
    for future in matrix.admin.delete_records([TopicPartition("shortened", 0, 205)]).values():
        future.result(30)
    result = copy_ranges(unit_of("unit", place, brokers, [wanted]), lambda _: None)
    kept = on_disk(kafka, "shortened", 0, 205, 400)
    first = int.from_bytes(kept[0][:8], "big")
    assert first < 205, "the log start should lie inside a batch"
    assert result.ranges[0].gaps == (Gap(0, first),)
    (joined,) = join_claims([result])
    assert joined.gaps == (Range(0, first),)
    assert archived(place, joined.segments) == kept


def test_a_topic_deleted_and_made_again_is_a_new_history(
    matrix: Matrix, brokers: PlainBrokers, place: SourceRef
) -> None:
    old = replace(_written(matrix, brokers, "again"), last_epoch=0, lo=20)
    matrix.delete("again")
    result = _only(place, brokers, old)
    assert (result.outcome, result.cause, result.reached) == (CopyOutcome.NEW_HISTORY, Cause.DELETED, 20)
    _written(matrix, brokers, "again")
    unit = unit_of("unit-2", place, brokers, [old])
    result = copy_ranges(unit, lambda _: None).ranges[0]
    assert (result.outcome, result.cause, result.reached) == (CopyOutcome.NEW_HISTORY, Cause.RECREATED, 20)


def test_an_epoch_that_the_broker_never_saw_is_a_new_history(
    matrix: Matrix, brokers: PlainBrokers, place: SourceRef
) -> None:
    wanted = replace(_written(matrix, brokers, "epochs"), lo=100, last_epoch=9)
    result = _only(place, brokers, wanted)
    assert (result.outcome, result.cause) == (CopyOutcome.NEW_HISTORY, Cause.UNKNOWN_EPOCH)


def test_a_log_that_ends_before_our_offset_was_truncated(
    matrix: Matrix, brokers: PlainBrokers, place: SourceRef
) -> None:
    wanted = replace(_written(matrix, brokers, "shorter"), lo=500, hi=600, last_epoch=0)
    result = _only(place, brokers, wanted)
    assert (result.outcome, result.cause, result.common_end) == (CopyOutcome.NEW_HISTORY, Cause.TRUNCATED, 400)


def test_a_forbidden_topic_does_not_stop_the_others(
    kafka: EmbeddedKafka, matrix: Matrix, brokers: PlainBrokers, place: SourceRef
) -> None:
    secret, public = _written(matrix, brokers, "secret"), _written(matrix, brokers, "public")
    rule = ["--deny-principal", "User:ANONYMOUS", "--operation", "Read", "--topic", "secret"]
    kafka.java_tool("org.apache.kafka.tools.AclCommand", ["--bootstrap-server", kafka.bootstrap, "--add", *rule])
    result = copy_ranges(unit_of("unit", place, brokers, [secret, public]), lambda _: None)
    assert [r.outcome for r in result.ranges] == [CopyOutcome.DENIED, CopyOutcome.COPIED]
    assert not result.complete
    assert archived(place, result.segments) == on_disk(kafka, "public", 0, 0, 400)


@dataclass(frozen=True)
class _Shaky(PlainBrokers):
    """Every connection breaks after so many replies."""

    replies: int = 2

    def connect(self, broker: int) -> PlainConnection:
        return _Breaking(self.host, self.port, self.replies)


class _Breaking(PlainConnection):
    def __init__(self, host: str, port: int, replies: int) -> None:
        super().__init__(host, port)
        self._left = replies

    def receive(self) -> memoryview:
        if not self._left:
            raise ClusterUnreachable("the connection broke")
        self._left -= 1
        return super().receive()


@pytest.mark.parametrize("replies", [1, 2, 3])
def test_broken_connections_cost_nothing_that_was_copied(
    kafka: EmbeddedKafka, brokers: PlainBrokers, matrix: Matrix, place: SourceRef, replies: int
) -> None:
    wanted = _written(matrix, brokers, f"shaky-{replies}", size=1000)
    pauses: list[float] = []
    shaky = _Shaky(brokers.host, brokers.port, replies)
    unit = replace(unit_of("unit", place, brokers, [wanted], max_bytes=30_000, segment_bytes=100_000), brokers=shaky)
    result = copy_with(unit, lambda _: None, random_token, pauses.append)
    assert pauses, "no connection broke"
    assert archived(place, result.segments) == on_disk(kafka, wanted.topic, 0, 0, 400)


class _Hiccup(LocalStore):
    """One write of each object fails, those after it do not."""

    failing = 0

    def open_new(self, name: str, size_hint: int = 0) -> ObjectWriter:
        return _HiccupWriter(super().open_new(name, size_hint), self.failing)


class _HiccupWriter:
    def __init__(self, inner: ObjectWriter, failing: int) -> None:
        self._inner, self._left = inner, failing
        self.close, self.abort = inner.close, inner.abort

    def write(self, data: memoryview | bytes) -> None:
        self._left -= 1
        if not self._left:
            raise StoreFull("no space left")
        self._inner.write(data)


@pytest.mark.parametrize("failing", [1, 2, 3, 4])
@pytest.mark.parametrize("replies", [1, 2, 1000])
def test_a_failed_write_is_never_forgotten_over_a_broken_connection(
    brokers: PlainBrokers, matrix: Matrix, tmp_path: Path, replies: int, failing: int
) -> None:
    """What the helper thread could not write must end the attempt, whatever the connection does meanwhile."""
    wanted = _written(matrix, brokers, f"full-{replies}-{failing}", size=1000)
    store = _Hiccup(tmp_path / "small")
    store.create()
    store.failing = failing
    shaky = _Shaky(brokers.host, brokers.port, replies)
    unit = unit_of("unit", SourceRef(store, "repository-1", "prod"), brokers, [wanted], max_bytes=30_000)
    with pytest.raises(StoreFull):
        copy_with(replace(unit, brokers=shaky), lambda _: None, random_token, lambda _: None)
    assert [path for path in (tmp_path / "small").rglob("*") if path.is_file()] == []


@dataclass(frozen=True)
class _Noisy(PlainBrokers):
    """One bit of a later reply is wrong."""

    def connect(self, broker: int) -> PlainConnection:
        return _Flipping(self.host, self.port)


class _Flipping(PlainConnection):
    def receive(self) -> memoryview:
        reply = super().receive()
        reply[len(reply) // 2] ^= 4
        return reply


def test_a_flipped_bit_never_reaches_the_archive(matrix: Matrix, brokers: PlainBrokers, place: SourceRef) -> None:
    wanted = _written(matrix, brokers, "noisy", size=1000)
    noisy = _Noisy(brokers.host, brokers.port)
    unit = replace(unit_of("unit", place, brokers, [wanted], max_bytes=30_000), brokers=noisy)
    with pytest.raises(SourceDamaged, match=r"noisy/0.* offset"):
        copy_ranges(unit, lambda _: None)
    assert [info.name for info in place.store.list("sources/")] == []


@dataclass(frozen=True)
class _Racked(PlainBrokers):
    """Broker 1 sends everybody to broker 2, as a leader does that knows a replica in our rack."""

    def connect(self, broker: int) -> PlainConnection:
        return (_Redirecting if broker == 1 else PlainConnection)(self.host, self.port)


class _Redirecting(PlainConnection):
    def receive(self) -> memoryview:
        reply = super().receive()
        struct.pack_into(">i", reply, 4 + 1 + 10 + 1 + 16 + 1 + 30 + 1, 2)
        return reply


def test_a_replica_in_our_rack_is_asked_instead(
    kafka: EmbeddedKafka, matrix: Matrix, brokers: PlainBrokers, place: SourceRef
) -> None:
    wanted = _written(matrix, brokers, "racked")
    unit = replace(unit_of("unit", place, brokers, [wanted]), brokers=_Racked(brokers.host, brokers.port))
    result = copy_with(unit, lambda _: None, random_token, lambda _: None)
    assert archived(place, result.segments) == on_disk(kafka, "racked", 0, 0, 400)


def test_a_broker_that_is_gone_is_given_up_in_the_end(matrix: Matrix, brokers: PlainBrokers, place: SourceRef) -> None:
    wanted = _written(matrix, brokers, "gone")
    pauses: list[float] = []
    unit = replace(unit_of("unit", place, brokers, [wanted]), brokers=_Shaky(brokers.host, brokers.port, 0))
    with pytest.raises(ClusterUnreachable):
        copy_with(unit, lambda _: None, random_token, pauses.append)
    assert sum(pauses) > 10
    assert list(receipts(place, BackupId(1))) == []
    assert [i.name for i in place.store.list("sources/")] == []


def test_an_old_leader_epoch_is_cured_and_an_impossible_end_is_not_waited_for_for_ever(
    kafka: EmbeddedKafka, matrix: Matrix, brokers: PlainBrokers, place: SourceRef
) -> None:
    wanted = _written(matrix, brokers, "fenced")
    pauses: list[float] = []
    unit = unit_of("unit", place, brokers, [replace(wanted, leader_epoch=7)])
    result = copy_with(unit, lambda _: None, random_token, pauses.append)
    assert len(pauses) == 1
    assert archived(place, result.segments) == on_disk(kafka, "fenced", 0, 0, 400)
    unit = unit_of("unit-2", place, brokers, [replace(wanted, hi=401)])
    unit = replace(unit, limits=replace(unit.limits, max_wait_ms=1))
    (ended,) = copy_with(unit, lambda _: None, random_token, lambda _: None).ranges
    assert (ended.outcome, ended.cause, ended.reached) == (CopyOutcome.NEW_HISTORY, Cause.TRUNCATED, 400)


def test_throttling_is_obeyed_and_is_not_the_end_of_the_log(
    kafka: EmbeddedKafka, matrix: Matrix, brokers: PlainBrokers, place: SourceRef
) -> None:
    wanted = _written(matrix, brokers, "throttled", batches=400, size=1000)
    entity = ["--entity-type", "clients", "--entity-name", "slow"]
    command = ["--bootstrap-server", kafka.bootstrap, "--alter", "--add-config", "consumer_byte_rate=1000000", *entity]
    kafka.java_tool("kafka.admin.ConfigCommand", command)
    unit = unit_of("unit", place, brokers, [wanted], max_bytes=500_000)
    unit = replace(unit, limits=replace(unit.limits, client_id="slow"))
    pauses: list[float] = []
    result = copy_with(unit, lambda _: None, random_token, pauses.append)
    assert pauses, "never throttled"
    assert archived(place, result.segments) == on_disk(kafka, "throttled", 0, 0, 4000)
