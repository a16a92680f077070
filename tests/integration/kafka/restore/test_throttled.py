"""A broker that wants to be left alone for a while: the restore waits, and nothing is lost or doubled."""

import os
import uuid

import pytest

from logkeep.embedded.kafka import EmbeddedKafka
from tests.support.cli.filled_repository import Filled
from tests.support.kafka.consumer_view import seen
from tests.support.kafka.topic_matrix import Matrix

pytestmark = pytest.mark.xdist_group("kafka-restore")


def _quota(target: EmbeddedKafka, *change: str) -> None:
    entity = ["--entity-type", "clients", "--entity-name", "logkeep", "--alter"]
    target.java_tool("kafka.admin.ConfigCommand", ["--bootstrap-server", target.bootstrap, *entity, *change])


def test_a_quota_is_obeyed(kafka: EmbeddedKafka, target: EmbeddedKafka, topics: Matrix, repo: Filled) -> None:
    topic = topics.create(f"slow-{uuid.uuid4().hex[:8]}", 2)
    producer = topics.producer(batch_num_messages=10)
    for i in range(400):
        producer.produce(topic, os.urandom(10_000), b"%d" % i, i % 2)
    producer.flush(60)
    repo.json("kafka", "backup", "--bootstrap-servers", kafka.bootstrap, "--topics", topic)
    _quota(target, "--add-config", "producer_byte_rate=200000")
    try:
        told = str(repo.home / "restore.prom")
        done = repo.json(
            "kafka", "restore", "latest", "--bootstrap-servers", target.bootstrap, "--yes", "--metrics-file", told
        )
    finally:
        _quota(target, "--delete-config", "producer_byte_rate")
    assert done["verdict"] == "proven"
    for partition in range(2):
        assert seen(target.bootstrap, topic, partition) == seen(kafka.bootstrap, topic, partition)
    pairs = (line.split() for line in (repo.home / "restore.prom").read_text().splitlines() if line[0] != "#")
    values = {name.partition("{")[0]: float(value) for name, value in pairs}
    assert (values["logkeep_restore_success"], values["logkeep_restore_records"]) == (1, 400)
    assert done["seconds"] > 5, "four megabytes at a fifth of one per second: it was never asked to wait"
