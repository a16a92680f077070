"""Sizes of logs in tiered storage, and the topics that are Kafka's own."""

import pytest

from logkeep.kafka.admin.offsets import LogBounds
from logkeep.kafka.backup.facts import whole_size
from logkeep.kafka.backup.findings import gone_topics
from logkeep.kafka.client.topology import KAFKA_OWN, TopicPartition
from logkeep.model.findings import Severity
from tests.support.kafka.cluster_values import facts


@pytest.mark.parametrize(
    ("local_bytes", "first_local", "wanted"),
    ((1_000, 0, 1_000), (1_000, 900, 10_000), (1_000, 500, 2_000), (0, 1_000, None), (70, 1_000, None)),
)
def test_the_part_on_the_disk_stands_for_the_whole(local_bytes: int, first_local: int, wanted: int | None) -> None:
    assert whole_size(local_bytes, LogBounds(0, 1_000, 1_000, 0), first_local) == wanted


def test_kafkas_own_topics_are_left_out_with_a_note() -> None:
    found = gone_topics([TopicPartition(name, 0) for name in sorted(KAFKA_OWN)], facts((), {}, {}))
    assert {f.code for f in found} == {"topic-left-out"}
    assert {f.severity for f in found} == {Severity.NOTE}
    assert {f.where for f in found} == KAFKA_OWN
