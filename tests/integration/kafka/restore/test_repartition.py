"""A topic that comes back with another number of partitions, judged by where Apache's own producer puts its keys."""

import subprocess
from collections import defaultdict
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

import msgspec
import pytest
from confluent_kafka import Consumer, Producer, TopicPartition

from logkeep.embedded.kafka import EmbeddedKafka
from logkeep.engine.inline import InlineEngine
from logkeep.kafka.client.settings import ClientSettings, endpoints
from logkeep.kafka.record.backup_view import view_backup
from logkeep.kafka.restore.plan.selection import RestoreSelection
from logkeep.kafka.restore.prepare import ClockAndTokens, KafkaRestoreOptions, prepare
from logkeep.kafka.restore.run import KafkaRestore
from logkeep.kafka.restore.write import KafkaLogWriter
from logkeep.model.time import random_token, utc_now
from logkeep.repository.chain.commits import read_chain
from logkeep.repository.restores import NewRestore, RestoreTargetRef, RestoreVerdict, begin_restore
from tests.support.cli.filled_repository import Filled
from tests.support.kafka.consumer_view import Seen, seen
from tests.support.kafka.group_topic import commit
from tests.support.kafka.kernel_cache import share_kernels
from tests.support.kafka.topic_matrix import Matrix, let_go
from tests.support.kafka.whole_backups import new_place

pytestmark = pytest.mark.xdist_group("kafka-restore")
COMMITTED = {0: 40, 1: 15, 2: 75}
"""What a group has read of each partition of orders."""
Headers = list[tuple[str, str | bytes | None]]


class At(NamedTuple):
    partition: int
    offset: int


Records = dict[At, Seen]
Put = Callable[[EmbeddedKafka, str, Sequence[bytes]], None]


@dataclass(frozen=True)
class Source:
    repo: Filled
    kafka: EmbeddedKafka
    records: Records


@pytest.fixture(scope="module")
def source(kafka: EmbeddedKafka, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Source]:
    matrix = Matrix(kafka)
    held = _orders(matrix)
    commit(kafka.bootstrap, "readers", {("orders", p): offset for p, offset in COMMITTED.items()})
    repo = Filled(tmp_path_factory.mktemp("repartition") / "home")
    repo.home.mkdir()
    share_kernels(repo.home)
    new_place(repo.root)
    repo.json("kafka", "backup", "--bootstrap-servers", kafka.bootstrap, "--source", "prod", "--topics", "orders")
    yield Source(repo, kafka, _records(kafka, "orders", 3))
    let_go(held)


def _orders(matrix: Matrix) -> Producer:
    """Keys by librdkafka's murmur2, null keys anywhere, transactions that were committed, aborted and left open."""
    topic = matrix.create("orders", 3)
    keyed = matrix.producer(partitioner="murmur2_random", batch_num_messages=20, compression_type="zstd")
    bound = matrix.producer(partitioner="murmur2_random", transactional_id="orders", transaction_timeout_ms=800_000)
    bound.init_transactions(30)
    for round_ in range(8):
        headers: Headers = [("round", b"%d" % round_)]
        for i in range(40):
            keyed.produce(topic, b"%d of key %d" % (round_, i), b"key %d" % i, headers=headers)
        for partition in range(3):
            keyed.produce(topic, b"%d of no key in %d" % (round_, partition), None, partition)
        keyed.flush(30)
        bound.begin_transaction()
        for i in range(0, 40, 4):
            bound.produce(topic, b"%d bound, of key %d" % (round_, i), b"key %d" % i)
        bound.flush(30)
        if round_ < 7:
            (bound.commit_transaction if round_ % 2 else bound.abort_transaction)(30)
    return bound


def _records(kafka: EmbeddedKafka, topic: str, partitions: int) -> Records:
    """All that a read-committed consumer sees."""
    found = {p: seen(kafka.bootstrap, topic, p) for p in range(partitions)}
    return {At(p, offset): record for p, records in found.items() for offset, record in records.items()}


def _by_apache(kafka: EmbeddedKafka, topic: str, keys: Sequence[bytes]) -> None:
    """Apache's console producer."""
    settings = ["--bootstrap-server", kafka.bootstrap, "--topic", topic]
    settings += ["--reader-property", "parse.key=true", "--reader-property", "key.separator=|"]
    command = kafka.command("org.apache.kafka.tools.ConsoleProducer", settings)
    lines = b"".join(key + b"|\n" for key in keys)
    subprocess.run(command, input=lines, cwd=kafka.directory, check=True, capture_output=True, timeout=120)


def _by_librdkafka(kafka: EmbeddedKafka, topic: str, keys: Sequence[bytes]) -> None:
    producer = Matrix(kafka).producer(partitioner="murmur2_random")
    for key in keys:
        producer.produce(topic, b"", key)
    assert producer.flush(30) == 0


def _places(put: Put, kafka: EmbeddedKafka, keys: Sequence[bytes], partitions: int) -> dict[bytes | None, int]:
    """Where a producer puts these keys."""
    topic = Matrix(kafka).create(f"placed-{random_token()}", partitions)
    put(kafka, topic, keys)
    return {record.key: at.partition for at, record in _records(kafka, topic, partitions).items()}


def _restore(source: Source, target: EmbeddedKafka, *more: str, code: int = 0) -> dict[str, Any]:
    to = ["--source", "prod", "--bootstrap-servers", target.bootstrap]
    return source.repo.json("kafka", "restore", "latest", *to, "--yes", "--keep-all", *more, code=code)


def _assert_spread(source: Source, target: EmbeddedKafka, name: str, partitions: int, put: Put) -> Records:
    """Each record is there once, where a producer would put it, those of a key in their order."""
    before, after = source.records, _records(target, name, partitions)
    assert sorted(after.values(), key=repr) == sorted(before.values(), key=repr)
    keys = sorted({record.key for record in before.values() if record.key})
    assert len(keys) == 40
    assert {r.key: at.partition for at, r in after.items() if r.key} == _places(put, target, keys, partitions)
    assert _by_key(after) == _by_key(before)
    return after


def _by_key(records: Records) -> dict[bytes, list[Seen]]:
    found = defaultdict[bytes, list[Seen]](list)
    for _, record in sorted(records.items()):
        if record.key is not None:
            found[record.key].append(record)
    return found


def _assert_restored(source: Source, target: EmbeddedKafka, partitions: int, put: Put) -> dict[str, Any]:
    name = f"orders-in-{partitions}"
    done = _restore(source, target, "--repartition", f"orders={partitions}", "--rename", f"orders={name}", code=2)
    assert (done["verdict"], done["offsets"]) == ("proven", "translate")
    _assert_spread(source, target, name, partitions, put)
    _assert_nothing_unread(source, target, name, partitions, done)
    return done


def test_keys_are_where_producers_look_for_them(source: Source, target: EmbeddedKafka) -> None:
    _assert_restored(source, target, 5, _by_apache)


def test_fewer_partitions_are_proven_again(source: Source, target: EmbeddedKafka) -> None:
    """And the receipt still tells what came from where: groups can be set by it once more."""
    done = _assert_restored(source, target, 2, _by_librdkafka)
    again = _again(source, target, "restore", "--resume", str(done["restore"]))
    assert again["verdict"] == "proven"
    assert _routes(again) == _routes(done)
    assert len(_routes(done)) == 6
    groups = _again(source, target, "groups", "restore", str(done["restore"]), "--yes", code=2)
    assert [(g["partition"], g["offset"], g["reread"]) for g in groups["positions"]] == [
        (g["partition"], g["offset"], g["reread"]) for g in done["groups"]
    ]


def _again(source: Source, target: EmbeddedKafka, *what: str, code: int = 0) -> dict[str, Any]:
    return source.repo.json("kafka", *what, "--source", "prod", "--bootstrap-servers", target.bootstrap, code=code)


def _routes(done: dict[str, Any]) -> list[tuple[int, int, int]]:
    return [(p["source_partition"], p["partition"], p["records"]) for p in done["partitions"]]


def _assert_nothing_unread(
    source: Source, target: EmbeddedKafka, topic: str, partitions: int, done: dict[str, Any]
) -> None:
    """A group reads all that it had not read; what it reads again is what was printed."""
    committed = _committed(target, "readers", topic, partitions)
    after = _records(target, topic, partitions)
    left = {record.value for at, record in after.items() if at.offset >= committed[at.partition]}
    unread = {r.value for at, r in source.records.items() if at.offset >= COMMITTED[at.partition]}
    assert len(unread) < len(left) < len(after)
    assert unread <= left
    rows = [g for g in done["groups"] if g["group"] == "readers"]
    assert {g["partition"]: g["offset"] for g in rows} == committed
    assert sum(g["reread"] for g in rows) == len(left - unread)
    told = [f["what"] for f in done["findings"] if f["code"] == "group-rereads"]
    assert told == [f"{len(left - unread)} records will be read again"]


def _committed(target: EmbeddedKafka, group: str, topic: str, partitions: int) -> dict[int, int]:
    consumer = Consumer({"bootstrap.servers": target.bootstrap, "group.id": group})
    try:
        found = consumer.committed([TopicPartition(topic, p) for p in range(partitions)], 30)
        return {each.partition: each.offset for each in found}
    finally:
        consumer.close()


def test_a_restore_that_was_interrupted_goes_on(source: Source, target: EmbeddedKafka) -> None:
    """As if it was killed when the share of one partition was written everywhere, and nothing of the others."""
    place, settings = source.repo.place(), ClientSettings(endpoints(target.bootstrap))
    view = view_backup(place, read_chain(place).completed[-1])
    wish = KafkaRestoreOptions(RestoreSelection(("orders",), renames=("orders=halfway",), repartition=("orders=4",)))
    prepared = prepare(view, wish, settings, lambda _: InlineEngine(), ClockAndTokens(utc_now, random_token))
    new = NewRestore(
        backup=view.entry.id,
        kind="kafka",
        target=RestoreTargetRef(cluster_id=prepared.target.cluster_id),
        body=msgspec.json.encode(prepared.plan),
    )
    restore_id = begin_restore(place, new, utc_now, random_token)
    first = tuple(log for log in prepared.plan.logs if log.log.partition == 0)
    part = msgspec.structs.replace(prepared.plan, logs=first, prove=False)
    KafkaLogWriter(restore_id, view, place, part, settings, InlineEngine(), "0" * 16).write()
    there = _records(target, "halfway", 4)
    assert 0 < len(there) < len(source.records)
    task = KafkaRestore(place, place, settings, utc_now, random_token)
    done = task.resume(task.stored(restore_id), view, lambda _: InlineEngine())
    assert done.receipt.verdict is RestoreVerdict.PROVEN, done.receipt.findings
    after = _assert_spread(source, target, "halfway", 4, _by_librdkafka)
    assert {at: after[at] for at in there} == there


def test_what_cannot_be_is_refused(source: Source, target: EmbeddedKafka) -> None:
    to = ["kafka", "restore", "latest", "--source", "prod", "--repartition", "orders=5"]
    kept = ["--bootstrap-servers", target.bootstrap, "--offsets", "preserve", "--dry-run", "--rename", "orders=never"]
    assert "cannot keep the offsets" in source.repo.run(*to, *kept, code=40).stderr
    files = source.repo.run(*to, "--to-log-dirs", "/nowhere", code=40).stderr
    assert "--repartition is only for a running cluster" in files


def test_the_plan_says_it(source: Source, target: EmbeddedKafka) -> None:
    to = ["latest", "--source", "prod", "--bootstrap-servers", target.bootstrap, "--topics", "orders", "--dry-run"]
    planned = source.repo.run("kafka", "restore", *to, "--rename", "orders=wide", "--repartition", "orders=5").stdout
    assert "records of 3 partitions are spread over 5 by their keys" in planned
    assert "offsets: translate (records get new offsets: a topic gets another number of partitions)" in planned
