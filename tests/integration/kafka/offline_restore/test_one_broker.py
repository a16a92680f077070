"""Topics of every shape, restored as files into a new cluster: a real broker serves what the old one did."""

import os
import re
import shlex
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

import pytest
from confluent_kafka import Consumer, Producer, TopicPartition
from confluent_kafka.admin import AdminClient, ConfigResource, ConfigSource
from confluent_kafka.cimpl import NewTopic

from logkeep.embedded.kafka import EmbeddedKafka
from logkeep.formats.kafka.batches import walk
from logkeep.kafka.client.topology import TopicPartition as Log
from logkeep.kafka.offline_restore.instructions import HELD_OFF
from logkeep.kafka.offline_restore.run import preview
from logkeep.kafka.offline_restore.staging import staged_name
from logkeep.kafka.offline_restore.values import OfflineReport
from logkeep.model.cache import cache_dir
from logkeep.model.time import random_token
from tests.support.kafka.client_readers import Read, read_whole
from tests.support.kafka.matrix_broker import until_cleaned
from tests.support.kafka.offline_restore import archived_as, offline, wished
from tests.support.kafka.plain_client import PlainBrokers
from tests.support.kafka.topic_matrix import BROKER, Matrix, let_go
from tests.support.kafka.whole_backups import Archive, new_place
from tests.support.processes import wait_for

pytestmark = pytest.mark.xdist_group("kafka-offline")
LEVELS = ("read_committed", "read_uncommitted")


@dataclass(frozen=True)
class Source:
    """A backup, and what clients saw of the cluster when it was taken."""

    archive: Archive
    backup: int
    topics: dict[str, int]
    seen: dict[str, dict[tuple[str, int], Read]]
    """By isolation level and log."""
    aborted: list[tuple[int, int]]
    at_time: list[int]
    open_producers: int

    @property
    def logs(self) -> list[Log]:
        return [Log(topic, p) for topic, count in self.topics.items() for p in range(count)]


@pytest.fixture(scope="module")
def source(tmp_path_factory: pytest.TempPathFactory) -> Source:
    home, cache = tmp_path_factory.mktemp("offline"), cache_dir(os.environ, Path.home())
    with EmbeddedKafka(home / "source", cache, properties=BROKER) as kafka, _matrix(kafka) as matrix:
        archive = Archive(kafka.bootstrap, new_place(home / "repository"))
        backup = archive.back_up(*matrix.topics, segment_bytes=1 << 20).entry.id
        logs = [Log(topic, p) for topic, count in matrix.topics.items() for p in range(count)]
        seen = {level: read_whole(kafka.bootstrap, logs, level) for level in LEVELS}
        at_time = _at_times(kafka, seen[LEVELS[1]])
        aborted = PlainBrokers("127.0.0.1", kafka.port).aborted("transactions", 0, 0)
        hanging = len(archive.record(backup).open_transactions)
        return Source(archive, backup, dict(matrix.topics), seen, aborted, at_time, hanging)


@contextmanager
def _matrix(kafka: EmbeddedKafka) -> Iterator[Matrix]:
    """Topics of every shape; a transaction stays open until the end."""
    made = Matrix(kafka)
    made.compacted()
    made.codecs()
    open_transaction = made.transactions()
    made.shapes()
    made.append_time()
    made.later_start()
    made.create("idle", 1)
    until_cleaned(made, kafka)
    yield made
    let_go(open_transaction)


def _at_times(kafka: EmbeddedKafka, seen: dict[tuple[str, int], Read]) -> list[int]:
    """Where a search by the time of the middle record of each log leads."""
    middles = {log: read.records[len(read.records) // 2] for log, read in seen.items() if read.records}
    asked = [TopicPartition(*log, max(record.time_ms, 0)) for log, record in middles.items()]
    consumer = Consumer({"bootstrap.servers": kafka.bootstrap, "group.id": "times"})
    found = consumer.offsets_for_times(asked, 30)
    consumer.close()
    return [each.offset for each in found]


@dataclass(frozen=True)
class Restored:
    kafka: EmbeddedKafka
    report: OfflineReport


@pytest.fixture(scope="module")
def restored(source: Source, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Restored]:
    """Another cluster with two disks: topics made, broker stopped, files written, broker started."""
    home, cache = tmp_path_factory.mktemp("restored"), cache_dir(os.environ, Path.home())
    disks = [home / "data", home / "more"]
    kafka = EmbeddedKafka(home, cache, properties=BROKER | {"log.dirs": ",".join(map(str, disks))})
    with kafka:
        _make_topics(kafka, source)
    report = offline(source.archive.place, source.backup, disks, segment_bytes=20_000)
    unfinished = disks[0] / staged_name("codecs", 0, "00" * 8)
    unfinished.mkdir()
    (unfinished / f"{0:020d}.log").write_bytes(b"half a batch")
    with kafka:
        yield Restored(kafka, report)


def _make_topics(kafka: EmbeddedKafka, source: Source) -> None:
    admin = AdminClient({"bootstrap.servers": kafka.bootstrap})
    wanted = [NewTopic(t, count, 1, config=dict(HELD_OFF)) for t, count in source.topics.items() if t != "idle"]
    for future in admin.create_topics(wanted).values():
        future.result(30)
    brokers = PlainBrokers("127.0.0.1", kafka.port)
    logs = [log for log in source.logs if log.topic != "idle"]
    wait_for(lambda: all(brokers.offset(*log, -1) == 0 for log in logs), "all logs to be there")
    _as_told(kafka, source)
    wait_for(lambda: brokers.offset("idle", 0, -1) == 0, "the last log to be there")


def _as_told(kafka: EmbeddedKafka, source: Source) -> None:
    """The one topic that is not there yet, by the command of the procedure."""
    roots = (kafka.directory / "data", kafka.directory / "more")
    foreseen = preview(wished(source.backup, roots), source.archive.place, random_token)
    assert foreseen.running
    assert foreseen.elsewhere == ("idle-0",)
    (told,) = [line for line in foreseen.procedure.splitlines() if "--create --topic idle " in line]
    words = [word.replace("$BROKERS", kafka.bootstrap) for word in shlex.split(told)]
    assert words[0] == "kafka-topics.sh"
    kafka.java_tool("org.apache.kafka.tools.TopicCommand", words[1:])


def _brokers(restored: Restored) -> PlainBrokers:
    return PlainBrokers("127.0.0.1", restored.kafka.port)


def test_nothing_is_amiss_and_every_file_is_proven(source: Source, restored: Restored) -> None:
    report = restored.report
    assert report.good
    assert {f.code for f in report.findings} == {"transactions-aborted"}
    assert {Log(log.topic, log.partition) for log in report.logs} == set(source.logs)
    assert {Path(log.directory).parent.name for log in report.logs} == {"data", "more"}
    assert report.plan.cluster_id != source.archive.record(source.backup).cluster_id
    assert not report.plan.own_cluster
    assert any(len(log.files) > 1 for log in report.logs)


def test_bytes_fetched_are_those_of_the_archive(source: Source, restored: Restored) -> None:
    for log in source.logs:
        (written,) = [w for w in restored.report.logs if (w.topic, w.partition) == log]
        expected = b"".join(map(archived_as, source.archive.batches(source.backup, *log)))
        found, at = b"", written.start
        while at < written.end:
            data = _brokers(restored).fetched(*log, at)
            batches = walk(data).batches
            found += data[: batches.end]
            at = int(batches.last_offsets[-1]) + 1
        assert found[: len(expected)] == expected, str(log)
        assert len(walk(found[len(expected) :]).batches) == written.markers


def test_logs_begin_and_end_where_they_did(source: Source, restored: Restored) -> None:
    brokers = _brokers(restored)
    for log in source.logs:
        cut = source.archive.cut(source.backup, *log)
        markers = source.open_producers if log.topic == "transactions" else 0
        assert (brokers.offset(*log, -2), brokers.offset(*log, -1)) == (cut.start, cut.end + markers)
    assert source.open_producers == 1
    assert brokers.offset("later-start", 0, -2) == 123


@pytest.mark.parametrize("level", LEVELS)
def test_consumers_read_the_same_at_the_same_offsets(source: Source, restored: Restored, level: str) -> None:
    found = read_whole(restored.kafka.bootstrap, source.logs, level)
    for log in source.logs:
        before, now = source.seen[level][log], found[log]
        assert (now.start, now.records) == (before.start, before.records), str(log)
        end = source.archive.cut(source.backup, *log).end
        # The hanging transaction is over: everything is stable.
        assert now.end == end + (source.open_producers if log.topic == "transactions" else 0), str(log)


def test_aborted_transactions_and_times_are_found_again(source: Source, restored: Restored) -> None:
    listed = _brokers(restored).aborted("transactions", 0, 0)
    assert [(p, first) for p, first in listed if first < 123] == [(p + 2**62, first) for p, first in source.aborted]
    assert [first for _, first in listed] == [*(first for _, first in source.aborted), 123]
    assert _at_times(restored.kafka, source.seen[LEVELS[1]]) == source.at_time


def test_apache_reads_every_file(restored: Restored) -> None:
    files = [f"{log.directory}/{f.name}" for log in restored.report.logs for f in log.files]
    tool = "org.apache.kafka.tools.DumpLogSegments"
    said = restored.kafka.java_tool(tool, ["--deep-iteration", "--files", ",".join(files)])
    assert len(re.findall(r"^\| offset: ", said, re.MULTILINE)) == restored.report.records
    assert "isvalid: false" not in said
    assert len(re.findall(r"endTxnMarker: ABORT coordinatorEpoch: 0", said)) >= 1


def test_new_producers_are_not_taken_for_old_ones(source: Source, restored: Restored) -> None:
    """A fresh cluster hands out 0, 1, 2, …: the ids that were archived."""
    for topic in ("compacted", "transactions", "later-start"):
        end = _brokers(restored).offset(topic, 0, -1)
        producer = Producer({"bootstrap.servers": restored.kafka.bootstrap, "enable.idempotence": True})
        for number in range(5):
            producer.produce(topic, b"new %d" % number, b"k", 0)
            producer.flush(30)
        found = read_whole(restored.kafka.bootstrap, [(topic, 0)], "read_committed")[topic, 0].records
        assert [(r.offset, r.value) for r in found[-5:]] == [(end + n, b"new %d" % n) for n in range(5)]


def test_new_transactions_begin_and_end(restored: Restored) -> None:
    topic, settings = "transactions", {"bootstrap.servers": restored.kafka.bootstrap, "transactional.id": "matrix"}
    producer = Producer(settings)
    producer.init_transactions(30)
    for value, end in ((b"lost", producer.abort_transaction), (b"kept", producer.commit_transaction)):
        producer.begin_transaction()
        producer.produce(topic, value, b"k", 0)
        end(30)
    read = read_whole(restored.kafka.bootstrap, [(topic, 0)], "read_committed")[topic, 0]
    assert read.records[-1].value == b"kept"
    assert b"lost" not in {r.value for r in read.records}
    assert read.end == _brokers(restored).offset(topic, 0, -1)


def test_the_printed_commands_give_a_topic_its_own_configs(source: Source, restored: Restored) -> None:
    """The last of all: retention is on from then on."""
    kafka, topic = restored.kafka, "append-time"
    told = [line for line in restored.report.plan.procedure.splitlines() if f"--entity-name {topic} " in line]
    for line in told:
        words = [word.replace("$BROKERS", kafka.bootstrap) for word in shlex.split(line)]
        assert words[0] == "kafka-configs.sh"
        kafka.java_tool("kafka.admin.ConfigCommand", words[1:])
    resource = ConfigResource(ConfigResource.Type.TOPIC, topic)
    admin = AdminClient({"bootstrap.servers": kafka.bootstrap})
    (future,) = admin.describe_configs([resource]).values()
    found = future.result(30).values()
    own = {c.name: c.value for c in found if c.source == ConfigSource.DYNAMIC_TOPIC_CONFIG.value}
    (archived,) = [t.configs for t in source.archive.record(source.backup).topics if t.name == topic]
    assert own == archived == {"message.timestamp.type": "LogAppendTime"}
