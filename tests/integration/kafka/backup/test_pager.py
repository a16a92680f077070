"""What somebody is told at 3 am: `info` of a real cluster, and where groups stood in a topic that is gone."""

import json
import time
from typing import Any

import pytest
from confluent_kafka import Consumer, TopicPartition

from logkeep.embedded.kafka import EmbeddedKafka
from tests.support.cli.filled_repository import Filled
from tests.support.kafka.topic_matrix import Matrix
from tests.support.processes import wait_for

pytestmark = pytest.mark.xdist_group("kafka-plain")
_BEGIN_MS = 1_700_000_000_000


def _write(topics: Matrix, topic: str, records: int, first: int = 0) -> None:
    producer = topics.producer(batch_num_messages=10)
    for number in range(first, first + records):
        producer.produce(topic, b"v" * 50, b"k", number % 2, timestamp=_BEGIN_MS + number * 1000)
    producer.flush(60)


def _commit(kafka: EmbeddedKafka, group: str, *positions: TopicPartition) -> None:
    consumer = Consumer({"bootstrap.servers": kafka.bootstrap, "group.id": group})
    consumer.commit(offsets=list(positions), asynchronous=False)
    consumer.close()


def _backup(kafka: EmbeddedKafka, *more: str) -> tuple[str, ...]:
    return "kafka", "backup", "--bootstrap-servers", kafka.bootstrap, "--source", "prod", *more


def _json(repo: Filled, *arguments: str, code: int = 0) -> dict[str, Any]:
    found: dict[str, Any] = json.loads(repo.run(*arguments, "--json", code=code).stdout)
    return found


def test_info_tells_ranges_times_gaps_and_lag(kafka: EmbeddedKafka, topics: Matrix, repo: Filled) -> None:
    topic = topics.create("paged", 2, {"retention.ms": "-1", "max.message.bytes": "2000000"})
    empty = topics.create("paged-empty")
    _write(topics, topic, 100)
    _commit(kafka, "pager-group", TopicPartition(topic, 0, 10), TopicPartition(topic, 1, 50))
    chosen = ("--topics", f"{topic}|{empty}")
    repo.run(*_backup(kafka, *chosen))
    _write(topics, topic, 40, first=100)
    for future in topics.admin.delete_records([TopicPartition(topic, 0, 55)]).values():
        future.result(30)
    repo.run(*_backup(kafka, *chosen), code=21)
    found = _json(repo, "info", "latest")["kafka"]
    paged, nothing = found["topics"]
    assert (paged["name"], nothing["name"]) == (topic, empty), "the largest first"
    first, second = paged["logs"]
    assert [(p["start"], p["end"], p["last_stable"]) for p in (first, second)] == [(55, 70, 70), (0, 70, 70)]
    assert paged["gaps"] == [
        {"partition": 0, "start": 50, "end": 55, "reason": "retention removed it before it was copied"}
    ]
    assert (paged["oldest_ms"], paged["newest_ms"]) == (_BEGIN_MS + 1000, _BEGIN_MS + 139_000)
    assert (nothing["oldest_ms"], nothing["records"], nothing["stored_bytes"]) == (None, 0, 0)
    assert paged["configs"]["max.message.bytes"] == "2000000"
    (group,) = [g for g in found["groups"] if g["name"] == "pager-group"]
    (position,) = [t for t in group["topics"] if t["topic"] == topic]
    assert (position["lag"], position["below_start"], position["partitions"]) == (60 + 20, 1, 2)
    assert found["needs"]["disk_bytes"] == paged["plain_bytes"]
    batches = [int(size) for size in _batch_sizes(repo)]
    assert (found["needs"]["largest_batch_bytes"], found["needs"]["codecs"]) == (max(batches), ["none"])
    assert (found["needs"]["topics"], found["needs"]["partitions"]) == (2, 3)
    text = repo.run("info", "latest").stdout
    assert f"GAP   {topic}/0 [50, 55): retention removed it before it was copied; 5 offsets missing" in text
    details = repo.run("info", "latest", "--topic", topic).stdout
    assert "max.message.bytes=2000000" in details
    assert "A RESTORE" not in details
    assert "no topic matches" in repo.run("info", "latest", "--topic", "nonsense", code=40).stderr


def _batch_sizes(repo: Filled) -> list[int]:
    """Of all archived batches, by their length fields alone."""
    sizes = []
    for file in repo.root.rglob("*.log"):
        data, at = file.read_bytes(), 0
        while at < len(data):
            sizes.append(12 + int.from_bytes(data[at + 8 : at + 12], "big"))
            at += sizes[-1]
    return sizes


def test_positions_that_a_deletion_erased(kafka: EmbeddedKafka, topics: Matrix, repo: Filled) -> None:
    topic = topics.create("forgotten", partitions=2)
    _write(topics, topic, 20)
    group, chosen = "forgetful", ("--internal", "--topics", "__consumer_offsets")
    _commit(kafka, group, TopicPartition(topic, 0, 3))
    _commit(kafka, group, TopicPartition(topic, 0, 7), TopicPartition(topic, 1, 9))
    _commit_in_transactions(kafka, topics, topic, "forgetful-tx")
    repo.run(*_backup(kafka, *chosen))
    shown = _json(repo, "kafka", "groups", "latest", "--group", f"{group}.*")
    assert shown["erased"] == 0
    topics.delete(topic)
    for forgotten in (group, "forgetful-tx"):  # each by a coordinator of its own
        _wait_until_forgotten(kafka, forgotten, topic)
    repo.run(*_backup(kafka, *chosen))
    shown = _json(repo, "kafka", "groups", "latest", "--group", f"{group}.*")
    rows = {(r["group"], r["topic"], r["partition"]): r for r in shown["positions"]}
    assert {key: row["offset"] for key, row in rows.items()} == {
        (group, topic, 0): 7,
        (group, topic, 1): 9,
        ("forgetful-tx", topic, 0): 5,
    }, "and not what an aborted transaction committed"
    now_ms = time.time() * 1000
    for row in rows.values():
        assert now_ms - 300_000 < row["committed_ms"] <= row["erased_ms"] < now_ms + 1000
    text = repo.run("kafka", "groups", "latest", "--group", group).stdout
    assert "2 positions, 2 of them erased since" in text


def _commit_in_transactions(kafka: EmbeddedKafka, topics: Matrix, topic: str, group: str) -> None:
    """5 is committed, 6 is not."""
    consumer = Consumer({"bootstrap.servers": kafka.bootstrap, "group.id": group})
    producer = topics.producer(transactional_id=group)
    producer.init_transactions(30)
    for offset, end in ((5, producer.commit_transaction), (6, producer.abort_transaction)):
        producer.begin_transaction()
        metadata = consumer.consumer_group_metadata()
        producer.send_offsets_to_transaction([TopicPartition(topic, 0, offset)], metadata, 30)
        end(30)
    consumer.close()


def _wait_until_forgotten(kafka: EmbeddedKafka, group: str, topic: str) -> None:
    consumer = Consumer({"bootstrap.servers": kafka.bootstrap, "group.id": group})
    logs = [TopicPartition(topic, n) for n in (0, 1)]
    wait_for(lambda: all(p.offset < 0 for p in consumer.committed(logs, 60)), "the broker to forget the positions")
    consumer.close()


def test_a_backup_without_internal_topics_says_so(kafka: EmbeddedKafka, topics: Matrix, repo: Filled) -> None:
    topic = topics.create("no-internal")
    repo.run(*_backup(kafka, "--topics", topic))
    assert "--internal" in repo.run("kafka", "groups", "latest", code=40).stderr
