"""Every kind of log put into a new topic, and read there by librdkafka: nothing differs from what the source showed."""

import pytest

from logkeep.embedded.kafka import EmbeddedKafka
from logkeep.formats.run_map.file_format import decode
from logkeep.kafka.restore.facts.units import Offsets, ReplayOutcome
from logkeep.kafka.restore.replay.task import replay
from tests.integration.kafka.replay.conftest import Archived
from tests.support.kafka.replay_into_topics import committed, expected, nothing, without_offsets

pytestmark = pytest.mark.xdist_group("kafka-replay")
TOPICS = ("codecs", "java", "transactions", "shapes", "append-time", "large", "later-start", "compacted", "idle")


@pytest.mark.parametrize("topic", TOPICS)
def test_offsets_are_kept(kafka: EmbeddedKafka, archived: Archived, topic: str) -> None:
    target, partitions = archived.target, archived.matrix.topics[topic]
    unit = target.unit(topic, f"kept-{topic}", Offsets.PRESERVE, partitions, prove=True)
    results = replay(unit, nothing).logs
    for partition, result in enumerate(results):
        assert (result.outcome, result.detail) == (ReplayOutcome.DONE, "")
        assert result.proof is not None
        assert result.proof.good, result.proof
        wanted = expected(kafka.bootstrap, archived.archive, archived.backup_id, topic, partition)
        cut = archived.archive.cut(archived.backup_id, topic, partition)
        seen, bounds = committed(kafka.bootstrap, f"kept-{topic}", partition)
        assert bounds == (cut.start, cut.end)
        assert seen == wanted
        assert (result.records, result.end) == (len(wanted), cut.end)
    again = replay(unit, nothing).logs
    assert [(r.outcome, r.sent_bytes) for r in again] == [(ReplayOutcome.DONE, 0)] * partitions
    assert [r.runs for r in again] == [r.runs for r in results]


@pytest.mark.parametrize("topic", TOPICS)
def test_records_are_appended(kafka: EmbeddedKafka, archived: Archived, topic: str) -> None:
    target, partitions = archived.target, archived.matrix.topics[topic]
    unit = target.unit(topic, f"appended-{topic}", Offsets.TRANSLATE, partitions, prove=True)
    for partition, result in enumerate(replay(unit, nothing).logs):
        assert (result.outcome, result.detail) == (ReplayOutcome.DONE, "")
        assert result.proof is not None
        assert result.proof.good, result.proof
        wanted = expected(kafka.bootstrap, archived.archive, archived.backup_id, topic, partition)
        seen, bounds = committed(kafka.bootstrap, f"appended-{topic}", partition)
        assert bounds == (0, len(wanted))
        assert without_offsets(seen) == without_offsets(wanted)
        runs = decode(result.runs)
        assert [runs.translate(each[0]) for each in wanted] == [(each[0], True) for each in seen]
