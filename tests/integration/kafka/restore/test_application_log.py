"""The log of an application on a real broker keeps every promise of a log, and what crashes leave in it is not read."""

from pathlib import Path

import pytest
from confluent_kafka import Producer

from logkeep.application.kafka_log.inbox import KafkaInbox, Outgoing
from logkeep.application.kafka_log.kafka_log import KafkaLog
from logkeep.application.kafka_log.log_topics import ApplicationTopics, ensure_topics
from logkeep.checkpoint.conformance.log_checks import run_log_checks
from logkeep.embedded.kafka import EmbeddedKafka

pytestmark = pytest.mark.xdist_group("kafka-restore")


class _OpenedLog(KafkaLog):
    """With an inbox of its own."""

    def __init__(self, kafka: EmbeddedKafka, name: str) -> None:
        config, topics = {"bootstrap.servers": kafka.bootstrap}, ApplicationTopics(name)
        ensure_topics(config, topics, 1)
        super().__init__(config, topics, 0, KafkaInbox(config, topics, 0, Outgoing(config, topics), lambda _: None))


def test_a_log_on_kafka_keeps_every_promise(kafka: EmbeddedKafka, tmp_path: Path) -> None:
    outcomes = run_log_checks(lambda directory: _OpenedLog(kafka, f"promises-{directory.name}"), tmp_path)
    assert len(outcomes) == 7
    assert [(one.title, one.problem) for one in outcomes if one.problem] == []
