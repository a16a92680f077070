"""On Kafka another process takes over a partition, and makes the copy itself if the user wants that."""

import json
from pathlib import Path

import pytest

from logkeep.application.control import SendRequest
from logkeep.application.kafka_log.client import KafkaClient
from logkeep.application.kafka_log.log_topics import ApplicationTopics, ensure_topics
from logkeep.embedded.kafka import EmbeddedKafka
from tests.support.cli.processes import logkeep
from tests.support.kafka.application_processes import ApplicationProcesses
from tests.support.processes import wait_for
from tests.support.running_application import new_repository

pytestmark = pytest.mark.xdist_group("kafka-restore")
NAME = "bank-retaken"


def test_a_process_with_another_directory_retakes_the_copy(kafka: EmbeddedKafka, tmp_path: Path) -> None:
    run = ApplicationProcesses(tmp_path, kafka.bootstrap, "tests.support.running_application:bank", NAME)
    new_repository(run.repository)
    ensure_topics({"bootstrap.servers": kafka.bootstrap}, ApplicationTopics(NAME), 2)
    where = ("--repo", str(run.repository), "--json")

    def app(*arguments: str) -> str:
        return str(json.loads(logkeep("app", *arguments, *where, home=tmp_path).stdout)["state"])

    def backup(number: int, *more: str) -> str:
        servers = ("--bootstrap-servers", kafka.bootstrap)
        return app("backup", NAME, *servers, "--id", str(number), "--no-wait", *more)

    port = KafkaClient({"bootstrap.servers": kafka.bootstrap}, NAME)
    with run.running("one", hold_at="0/log end"):
        port.send(SendRequest("move", "a1", {"amount": 1, "to": "b1"}))
        assert backup(4, "--on-failover", "retake") == "ongoing"
    with run.running("two", hold_at="0/copy: open the store"):
        wait_for(lambda: app("status", "4") == "completed", "the copy of the second process")
        assert backup(5) == "ongoing"
    with run.running("two"):
        wait_for(lambda: app("status", "5") == "failed", "the end without a copy")
    port.close()
    verified = logkeep("verify", "4", "--level", "cut", "--engine", "inline", *where, home=tmp_path)
    assert verified.returncode == 0, verified.stdout
