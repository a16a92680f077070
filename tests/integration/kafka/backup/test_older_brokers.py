"""The oldest brokers that are supported, Kafka 3.9 with KRaft and with ZooKeeper, and messages older than they are."""

import os
from collections.abc import Iterator
from pathlib import Path

import pytest
from confluent_kafka import Consumer, Producer, TopicPartition

from logkeep.embedded.kafka import EmbeddedKafka
from logkeep.kafka.admin.offsets import list_offsets
from logkeep.kafka.admin.topic_changes import delete_records
from logkeep.kafka.client.cluster import Cluster
from logkeep.kafka.client.settings import ClientSettings, endpoints
from logkeep.kafka.client.topology import TopicPartition as LogPosition
from logkeep.kafka.logs.log_traits import LogTraits
from logkeep.kafka.record.documents import TopicRecord
from logkeep.kafka.restore.facts.target import APIS, gather_target
from logkeep.kafka.restore.plan.topics import TopicOptions, difference_findings, plan_topic
from logkeep.kafka.restore.topics import abort_topics, finish_topics, make_topics, validate_topics
from logkeep.model.cache import cache_dir
from tests.e2e.test_bad_input import one_error
from tests.integration.kafka.restore.killing import GROUP, SOURCES, write_sources
from tests.support.cli.filled_repository import Filled
from tests.support.kafka.backup_steps import add, assert_whole, fill
from tests.support.kafka.client_readers import read_whole
from tests.support.kafka.client_view_of_configs import own_configs, topic_names
from tests.support.kafka.command_in_process import Commands
from tests.support.kafka.matrix_broker import smoke_matrix
from tests.support.kafka.plain_client import PlainBrokers
from tests.support.kafka.topic_matrix import BROKER, CODECS, Matrix
from tests.support.kafka.whole_backups import Archive, new_place
from tests.support.processes import wait_for
from tests.support.servers.older_kafka import ZooKeeperKafka, kraft_39

pytestmark = pytest.mark.xdist_group("kafka-older")


def _started(kind: str, directory: Path) -> EmbeddedKafka:
    cache = cache_dir(os.environ, Path.home())
    return kraft_39(directory, cache) if kind == "kraft" else ZooKeeperKafka(directory, cache)


@pytest.fixture(scope="module", params=["kraft", "zookeeper"])
def older(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Iterator[EmbeddedKafka]:
    with _started(request.param, tmp_path_factory.mktemp(request.param) / "broker") as running:
        yield running


@pytest.fixture
def repo(tmp_path: Path) -> Filled:
    new_place(tmp_path / "repo")
    return Filled(tmp_path)


def _backup(kafka: EmbeddedKafka, *more: str) -> tuple[str, ...]:
    return "kafka", "backup", "--bootstrap-servers", kafka.bootstrap, "--source", "prod", *more


def _commit(kafka: EmbeddedKafka, group: str, topic: str, offset: int) -> None:
    consumer = Consumer({"bootstrap.servers": kafka.bootstrap, "group.id": group, "enable.auto.commit": False})
    for partition in range(len(CODECS)):
        consumer.commit(offsets=[TopicPartition(topic, partition, offset)], asynchronous=False)
    consumer.close()


def test_the_smoke_matrix(older: EmbeddedKafka, repo: Filled) -> None:
    """Codecs, transactions, compaction and positions, through the whole command, twice."""
    archive = Archive(older.bootstrap, repo.place())
    with smoke_matrix(older) as matrix:
        _commit(older, "readers", "codecs", 700)
        first = repo.json(*_backup(older))
        assert (first["topics"], first["open_transactions"], first["findings"]) == (len(matrix.topics), 1, [])
        assert_whole(archive, older, first["id"])
        record = archive.record(first["id"])
        (group,) = [g for g in record.groups if g.name == "readers"]
        assert [(c.topic, c.partition, c.offset) for c in group.commits] == [
            ("codecs", partition, 700) for partition in range(len(CODECS))
        ]
        assert [(t.topic, t.first_offset) for t in record.open_transactions] == [("transactions", 123)]
        assert len({t.id for t in record.topics}) == len(matrix.topics), "every topic has an id of its own"
    add(matrix, "codecs", len(CODECS), 100, size=100)
    second = repo.json(*_backup(older))
    assert second["new_offsets"] == len(CODECS) * 100 + 1, "one marker ended the open transaction"
    assert second["open_transactions"] == 0
    assert_whole(archive, older, second["id"])
    repo.run("verify", "--level", "data", str(first["id"]))
    idle = repo.json(*_backup(older))
    assert (idle["new_offsets"], idle["units"]) == (0, 0)


def test_a_restore_in_both_modes(older: EmbeddedKafka, repo: Filled) -> None:
    """Holes, a later start, a compacted topic and a group, by the whole command, beside what was backed up."""
    commands, made = Commands(repo.url, repo.home), Matrix(older)
    write_sources(made, older.bootstrap)
    commands.json(*_backup(older, "--topics", "|".join(SOURCES)))
    logs = [(topic, p) for topic, partitions in SOURCES.items() for p in range(partitions)]
    source = read_whole(older.bootstrap, logs, "read_committed")
    with Cluster(ClientSettings(endpoints(older.bootstrap))) as cluster:
        itself = ("--confirm-cluster", cluster.metadata().cluster_id, "--bootstrap-servers", older.bootstrap, "--yes")
    for offsets in ("preserve", "translate"):
        words = (
            "kafka",
            "restore",
            "latest",
            "--offsets",
            offsets,
            "--rename",
            f"s/^/{offsets}-/",
            "--groups",
            GROUP,
            *itself,
        )
        done = commands.json(*words, "--engine", "inline")
        assert (done["verdict"], done["group_names"]) == ("proven", [GROUP])
        found = read_whole(older.bootstrap, [(f"{offsets}-{t}", p) for t, p in logs], "read_committed")
        for (topic, p), expected in source.items():
            restored = found[f"{offsets}-{topic}", p]
            assert [r[2:] for r in restored.records] == [r[2:] for r in expected.records], topic
            assert offsets == "translate" or restored == expected, topic
        assert own_configs(older, f"{offsets}-smooth") == own_configs(older, "smooth")


def test_topics_of_a_restore(older: EmbeddedKafka) -> None:
    """Made with temporary configs, told the archived ones in the end; a config that only old brokers have is kept."""
    own = {
        "cleanup.policy": "compact",
        "message.timestamp.type": "LogAppendTime",
        "message.timestamp.difference.max.ms": "5000",
        "segment.bytes": "1024",
    }
    inherited = {"max.message.bytes": BROKER["message.max.bytes"]}
    records = [
        TopicRecord("restored", "0" * 32, False, 3, 1, own, inherited),
        TopicRecord("bare", "0" * 32, False, 1, 1, {}, inherited),
    ]
    wishes, traits = TopicOptions(preserve=True), LogTraits(largest_batch_bytes=10)
    with Cluster(ClientSettings(endpoints(older.bootstrap))) as cluster:
        target = gather_target(cluster, [r.name for r in records], "another")
        plans, errors = validate_topics(
            cluster,
            [plan_topic(r, target, wishes, name=r.name, partitions=r.partitions, traits=traits) for r in records],
        )
        assert (errors, difference_findings(plans)) == ([], [])
        ids = make_topics(cluster, plans, {})
        assert [own_configs(older, p.name) for p in plans] == [p.while_restoring for p in plans]
        old_times = 1000
        producer = Producer({"bootstrap.servers": older.bootstrap})
        producer.produce("restored", b"x" * 2000, partition=0, timestamp=old_times)
        assert producer.flush(30) == 0
        log = LogPosition("restored", 0)
        assert list_offsets(cluster, {log: old_times})[log].offset == 0
        assert delete_records(cluster, {log: 1}) == {log: 1}
        assert make_topics(cluster, plans, ids) == ids
        assert finish_topics(cluster, plans, ids) == []
        assert [own_configs(older, p.name) for p in plans] == [own, {}]
        assert abort_topics(cluster, plans, ids)[1] == []
        assert set(target.versions) == set(APIS)
    wait_for(lambda: not {"restored", "bare"} & topic_names(older), "the topics to go")


def test_topics_without_ids_and_messages_of_old_formats_are_refused(
    tmp_path_factory: pytest.TempPathFactory, repo: Filled
) -> None:
    """A 3.9 broker that speaks the protocol of 2.7 gives topics no ids; with that of 2.8 they get some.

    And then it still writes magic 0 and 1 where a topic says so.
    """
    directory, cache = tmp_path_factory.mktemp("ancient") / "broker", cache_dir(os.environ, Path.home())
    protocol = "inter.broker.protocol.version"
    with ZooKeeperKafka(directory, cache, inter_broker_protocol_version="2.7") as kafka:
        fill(Matrix(kafka), "current", 1, 50)
        before = repo.tree()
        assert protocol in one_error(repo.run(*_backup(kafka), code=40).stderr)
        assert repo.tree() == before
        kafka.stop()
        kafka.more[protocol] = "2.8"
        kafka.start()
        wait_for(lambda: _is_led(kafka, "current"), "the broker to know its topics again")
        archive = Archive(kafka.bootstrap, repo.place())
        first = archive.back_up("current").entry.id
        assert_whole(archive, kafka, first)
        for magic, version in enumerate(("0.9.0", "0.10.2")):
            _refused_format(kafka, archive, repo, magic, version)
            archive.check(first)
        done = repo.json(*_backup(kafka, "--exclude", "ancient.*"))
        assert_whole(archive, kafka, done["id"])


def _is_led(kafka: EmbeddedKafka, topic: str) -> bool:
    (found,) = PlainBrokers("127.0.0.1", kafka.port).metadata(topic).topics
    return found.error_code == 0 and all(partition.leader_id >= 0 for partition in found.partitions)


def _refused_format(kafka: EmbeddedKafka, archive: Archive, repo: Filled, magic: int, version: str) -> None:
    topics, before = Matrix(kafka), archive.data_names()
    topic = topics.create(f"ancient-{magic}", 1, {"message.format.version": version})
    add(topics, topic, 1, 50)
    (log,) = (kafka.directory / "data" / f"{topic}-0").glob("*.log")
    assert log.read_bytes()[16] == magic, "the broker wrote another format"
    said = one_error(repo.run(*_backup(kafka, "--topics", f"current|{topic}"), code=20).stderr)
    assert topic in said
    assert "--exclude" in said
    assert archive.data_names() == before
