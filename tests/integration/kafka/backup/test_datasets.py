"""Datasets of a real broker: continued, refused, followed, with gaps, groups and deletions."""

import json
import signal
from contextlib import closing
from dataclasses import dataclass, field
from itertools import count
from pathlib import Path

import pytest
from confluent_kafka import Consumer, TopicPartition
from confluent_kafka.admin import NewPartitions
from kafka import KafkaProducer
from kafka.admin import KafkaAdminClient
from kafka.structs import TopicPartition as Log

from logkeep.embedded.kafka import EmbeddedKafka
from logkeep.errors import ClusterUnreachable, TargetUnsafe
from logkeep.kafka.client.fetch import FetchLimits
from logkeep.kafka.client.retry import ProgressBackoff
from logkeep.kafka.datasets.sources.records_of_cluster import ClusterRecords, OpenClusterRecords
from logkeep.kafka.datasets.values import ExportableLog, LogToExport, ReadCounts
from logkeep.kafka.logs.live import LiveLogs
from tests.support.cli.filled_repository import Filled
from tests.support.cli.processes import logkeep
from tests.support.kafka.cleaned_topics import CleanedTopic
from tests.support.kafka.client_readers import read_whole
from tests.support.kafka.dataset_exports import Datasets, as_read
from tests.support.kafka.follow_process import following
from tests.support.kafka.plain_client import PlainBrokers, PlainConnection
from tests.support.kafka.topic_matrix import Matrix
from tests.support.kafka.v1_reader import groups, records, segments
from tests.support.kafka.whole_backups import Archive

pytestmark = pytest.mark.xdist_group("kafka-plain")
_numbers = count()


@pytest.fixture
def topic(topics: Matrix) -> str:
    return topics.create(f"exported-{next(_numbers)}", 2)


@pytest.fixture
def dataset(kafka: EmbeddedKafka, tmp_path: Path) -> Datasets:
    return Datasets(tmp_path / "dataset", kafka.bootstrap, segment_bytes=600)


def _write(topics: Matrix, topic: str, records: int, partition: int = 0) -> None:
    producer = topics.producer()
    for i in range(records):
        producer.produce(topic, b"value %d" % i, b"key", partition, headers=[("n", b"%d" % i), ("n", None)])
    assert producer.flush(60) == 0


def _by_another_client(kafka: EmbeddedKafka, topic: str) -> None:
    """kafka-python: null and empty, headers, times."""
    producer = KafkaProducer(bootstrap_servers=kafka.bootstrap, compression_type="gzip")
    for key, value in [(None, b""), (b"", b"x"), (b"k", None), (b"k", b"v" * 5000)]:
        producer.send(topic, value, key, [("a", b"1"), ("a", b""), ("", b"2")], partition=0, timestamp_ms=1234)
    producer.flush()
    producer.close()


def _delete_records(kafka: EmbeddedKafka, topic: str, before: int) -> None:
    admin = KafkaAdminClient(bootstrap_servers=kafka.bootstrap)
    admin.delete_records({Log(topic, 0): before})
    admin.close()


def _commit(kafka: EmbeddedKafka, group: str, *offsets: TopicPartition) -> None:
    consumer = Consumer({"bootstrap.servers": kafka.bootstrap, "group.id": group, "enable.auto.commit": False})
    consumer.commit(offsets=list(offsets), asynchronous=False)
    consumer.close()


@dataclass(frozen=True)
class _Counted(PlainBrokers):
    connected: list[int] = field(default_factory=list)
    failures: list[ClusterUnreachable] = field(default_factory=list)

    def connect(self, broker: int) -> PlainConnection:
        if self.failures:
            raise self.failures.pop()
        self.connected.append(broker)
        return super().connect(broker)


def _values(opened: OpenClusterRecords, log: ExportableLog) -> list[bytes]:
    planned = LogToExport(log, log.start, joined=False)
    batches = opened.read(planned, log.start, ReadCounts(), lambda _: None)
    return [value for batch in batches for value in batch.column("value").to_pylist()]


def test_the_logs_of_a_unit_are_read_over_the_same_connections(
    kafka: EmbeddedKafka, topics: Matrix, dataset: Datasets
) -> None:
    topic = topics.create(f"exported-{next(_numbers)}", 5)
    for partition in range(5):
        _write(topics, topic, partition, partition)
    logs, brokers = dataset.cluster_source(topic).facts.logs, _Counted("127.0.0.1", kafka.port)
    with ClusterRecords(brokers, committed=True).opened() as opened:
        found = [_values(opened, log) for log in logs]
    assert found == [[b"value %d" % i for i in range(partition)] for partition in range(5)]
    assert len(brokers.connected) == 2, "one is read while the records of the other are in use"


def test_a_log_may_fail_after_the_last_one_took_long(kafka: EmbeddedKafka, topics: Matrix, dataset: Datasets) -> None:
    topic = topics.create(f"exported-{next(_numbers)}", 2)
    for partition in range(2):
        _write(topics, topic, 3, partition)
    first, second = dataset.cluster_source(topic).facts.logs
    brokers, now = _Counted("127.0.0.1", kafka.port), [0.0]
    backoff = ProgressBackoff(lambda _: None, lambda: now[0])
    with closing(LiveLogs(brokers, -1, FetchLimits(committed=True), backoff, 2)) as logs:
        opened = OpenClusterRecords(ClusterRecords(brokers, committed=True), brokers, logs, backoff)
        assert len(_values(opened, first)) == 3
        now[0] += 10_000
        brokers.failures.extend([ClusterUnreachable("not now")] * 6)
        assert len(_values(opened, second)) == 3


def test_a_dataset_is_continued_from_its_own_end_and_then_nothing_is_read(
    kafka: EmbeddedKafka, topics: Matrix, topic: str, dataset: Datasets, tmp_path: Path
) -> None:
    _write(topics, topic, 30)
    first = dataset.of_cluster(topic)
    assert (first.sum("records"), first.holes, first.findings) == (30, (), ())
    _by_another_client(kafka, topic)
    second = dataset.of_cluster(topic)
    assert second.sum("records") == 4
    one = Datasets(tmp_path / "one", kafka.bootstrap, segment_bytes=600)
    one.of_cluster(topic)
    assert dataset.files(topic) == one.files(topic)
    expected = read_whole(kafka.bootstrap, [(topic, 0)], "read_committed")[topic, 0].records
    assert [as_read(each) for each in dataset.records(topic)] == list(expected)
    assert len(segments(dataset.root / topic, 0)) > 1
    idle = dataset.of_cluster(topic)
    assert (idle.logs, idle.prepared.plan.new, idle.sum("fetched_bytes")) == ((), (), 0)
    assert (records(dataset.root / topic, 1), groups(dataset.root / topic, 1)) == ([], {})


def test_groups_are_as_committed_and_not_above_what_the_dataset_holds(
    kafka: EmbeddedKafka, topics: Matrix, topic: str, dataset: Datasets
) -> None:
    _write(topics, topic, 5)
    _commit(kafka, "behind", TopicPartition(topic, 0, 3, "note"), TopicPartition(topic, 1, 0))
    _commit(kafka, "ahead", TopicPartition(topic, 0, 999))
    dataset.of_cluster(topic)
    assert groups(dataset.root / topic, 0) == {"ahead": 5, "behind": 3}
    assert groups(dataset.root / topic, 1) == {}
    document = json.loads((dataset.root / ".logkeep" / "dataset.json").read_bytes())
    (behind,) = [g for g in document["groups"] if g["name"] == "behind"]
    assert behind["commits"][0]["metadata"].startswith("note")


def test_a_log_start_beyond_the_end_is_a_gap_that_is_named(
    kafka: EmbeddedKafka, topics: Matrix, topic: str, dataset: Datasets, repo: Filled
) -> None:
    _write(topics, topic, 10)
    dataset.of_cluster(topic)
    _write(topics, topic, 10)
    _delete_records(kafka, topic, 15)
    command = _command(kafka, dataset, topic)
    dry = logkeep(*command, "--dry-run", "--json", home=repo.home)
    assert dry.returncode == 21
    done = logkeep(*command, home=repo.home)
    assert done.returncode == 21
    assert f"{topic}/0 [10, 15)" in done.stdout
    assert dataset.offsets(topic) == [*range(10), *range(15, 20)]
    again = logkeep(*command, "--json", home=repo.home)
    assert (again.returncode, json.loads(again.stdout)["dataset"]["read_bytes"]) == (0, 0)


def _command(kafka: EmbeddedKafka, dataset: Datasets, topic: str) -> tuple[str, ...]:
    where = ("--format", "kafka-backup-v1", "--to", str(dataset.root), "--segment-bytes", "600")
    return ("kafka", "backup", *where, "--bootstrap-servers", kafka.bootstrap, "--topics", topic, "--engine", "inline")


def test_records_that_the_source_has_no_longer_are_not_dropped_without_a_question(
    kafka: EmbeddedKafka, topics: Matrix, topic: str, dataset: Datasets, repo: Filled
) -> None:
    _write(topics, topic, 10)
    dataset.of_cluster(topic)
    _delete_records(kafka, topic, 7)
    command = (*_command(kafka, dataset, topic), "--rewrite", topic)
    dropped = f"{topic}/0: --rewrite removes the dataset's records at offsets 0 to 6, which the source has no longer"
    dry = logkeep(*command, "--dry-run", home=repo.home)
    assert (dry.returncode, f"WARNING {dropped}" in dry.stdout) == (2, True)
    declined = logkeep(*command, home=repo.home)
    assert (declined.returncode, dropped in " ".join(declined.stderr.split())) == (3, True)
    assert dataset.offsets(topic) == [*range(10)]
    done = logkeep(*command, "--yes", "--json", home=repo.home)
    assert done.returncode == 2
    assert [f["code"] for f in json.loads(done.stdout)["dataset"]["findings"]] == ["records-dropped"]
    assert dataset.offsets(topic) == [7, 8, 9]
    assert logkeep(*command, home=repo.home).returncode == 0


def test_another_topic_of_the_same_name_is_refused_until_it_is_rewritten(
    kafka: EmbeddedKafka, topics: Matrix, topic: str, dataset: Datasets, repo: Filled
) -> None:
    _write(topics, topic, 7)
    dataset.of_cluster(topic)
    before = dataset.files(topic)
    topics.delete(topic)
    topics.create(topic, 2)
    _write(topics, topic, 3)
    refused = logkeep(*_command(kafka, dataset, topic), home=repo.home)
    assert refused.returncode == 31
    assert f"--rewrite {topic}" in refused.stderr
    assert dataset.files(topic) == before
    assert logkeep(*_command(kafka, dataset, topic), "--rewrite", topic, home=repo.home).returncode == 0
    assert dataset.offsets(topic) == [0, 1, 2]
    assert not (dataset.root / ".logkeep" / "rewrite").exists()
    assert dataset.of_cluster(topic).logs == ()


def test_unsafe_targets(kafka: EmbeddedKafka, topics: Matrix, topic: str, dataset: Datasets, tmp_path: Path) -> None:
    foreign = Datasets(tmp_path / "foreign", kafka.bootstrap)
    foreign.root.mkdir()
    (foreign.root / "letter.txt").write_text("mine")
    with pytest.raises(TargetUnsafe, match="not empty"):
        foreign.of_cluster(topic)
    assert [path.name for path in foreign.root.iterdir()] == ["letter.txt"]
    dataset.of_cluster(topic)
    with pytest.raises(TargetUnsafe, match="isolation"):
        Datasets(dataset.root, kafka.bootstrap, "all").of_cluster(topic)


def test_new_topics_and_partitions_join_while_it_follows(
    kafka: EmbeddedKafka, topics: Matrix, topic: str, dataset: Datasets, repo: Filled
) -> None:
    pattern = topic + ".*"
    later = f"{topic}-later"
    with following(repo, (*_command(kafka, dataset, pattern), "--interval", "100ms")) as run:
        _write(topics, topic, 4)
        run.wait_for_offsets(4)
        topics.create(later)
        _write(topics, later, 3)
        run.wait_for_offsets(7)
        for future in topics.admin.create_partitions([NewPartitions(topic, 3)]).values():
            future.result(60)
        _write(topics, topic, 2, partition=2)
        run.wait_for_offsets(9)
        assert run.ended(signal.SIGTERM) == 0
    assert (dataset.offsets(topic), dataset.offsets(later)) == ([0, 1, 2, 3], [0, 1, 2])
    assert dataset.offsets(topic, 2) == [0, 1]


def test_deletions_of_a_compacted_topic_that_may_be_missing(
    kafka: EmbeddedKafka, topics: Matrix, dataset: Datasets
) -> None:
    cleaned = CleanedTopic(topics, kafka.bootstrap, f"exported-{next(_numbers)}")
    cleaned.put({b"a": b"1", b"b": b"2", b"c": b"3"})
    assert dataset.of_cluster(cleaned.name).findings == ()  # every offset is there
    cleaned.delete(b"a")
    cleaned.clean(lambda found: all(each.key != b"a" for each in found.values()))
    (finding,) = dataset.of_cluster(cleaned.name).findings
    assert (finding.code, finding.where) == ("deletions-unproven", f"{cleaned.name}/0")
    assert len(dataset.of_cluster(cleaned.name).findings) == 1  # until it is written anew
    assert b"a" in {each.key for each in dataset.records(cleaned.name)}
    topics.change(cleaned.name, "delete.retention.ms", "86400000")
    rewritten = dataset.of_cluster(cleaned.name, rewrite=(cleaned.name,))
    assert rewritten.findings == ()
    assert b"a" not in {each.key for each in dataset.records(cleaned.name)}
    assert dataset.of_cluster(cleaned.name).findings == ()


def test_records_that_backups_bury_since_the_last_export(
    kafka: EmbeddedKafka, topics: Matrix, dataset: Datasets, archive: Archive
) -> None:
    cleaned = CleanedTopic(topics, kafka.bootstrap, f"exported-{next(_numbers)}")
    cleaned.put({b"a": b"1", b"b": b"2", b"c": b"3"})
    archive.back_up(cleaned.name)
    assert dataset.of_backup(archive.place).findings == ()
    cleaned.delete(b"a")
    cleaned.clean(lambda found: all(each.key != b"a" for each in found.values()))
    archive.back_up(cleaned.name, accept_deletions=(cleaned.name,))
    (finding,) = dataset.of_backup(archive.place).findings
    assert (finding.code, "buried 1 record" in finding.what) == ("deletions-unproven", True)
    assert b"a" in {each.key for each in dataset.records(cleaned.name)}
    assert dataset.of_backup(archive.place, rewrite=(cleaned.name,)).findings == ()
    assert b"a" not in {each.key for each in dataset.records(cleaned.name)}
    assert dataset.of_backup(archive.place).findings == ()
    assert dataset.of_backup(archive.place, backup="latest").logs == ()
