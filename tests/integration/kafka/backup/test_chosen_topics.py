"""A backup of chosen topics holds chosen topics: what groups do elsewhere is not recorded, and makes no backup."""

import pytest
from confluent_kafka import Producer

from logkeep.embedded.kafka import EmbeddedKafka
from logkeep.kafka.backup.values import KafkaBackupDone, KafkaBackupOptions
from logkeep.repository.chain.format import open_format
from tests.support.kafka.group_topic import commit
from tests.support.kafka.topic_matrix import Matrix
from tests.support.kafka.whole_backups import Archive

pytestmark = pytest.mark.xdist_group("kafka-plain")
ROUNDS = 4


def _followed(archive: Archive, *topics: str) -> KafkaBackupDone:
    """One round of `--follow`."""
    return archive.task.run_if_changed(KafkaBackupOptions(include=topics, resume=True), lambda _: archive.engine)


def test_an_idle_topic_makes_no_backup_because_other_groups_move(
    kafka: EmbeddedKafka, topics: Matrix, archive: Archive
) -> None:
    quiet, busy = topics.create("chosen-quiet"), topics.create("chosen-busy")
    producer = Producer({"bootstrap.servers": kafka.bootstrap})
    for topic in (quiet, busy):
        for i in range(ROUNDS + 1):
            producer.produce(topic, b"%d" % i, partition=0)
    producer.flush(30)
    commit(kafka.bootstrap, "reads-both", {(quiet, 0): 1, (busy, 0): 0})
    assert open_format(archive.place.store).document.required_features == ()
    first = _followed(archive, quiet)
    for number in range(1, ROUNDS + 1):
        commit(kafka.bootstrap, "reads-both", {(busy, 0): number})
        commit(kafka.bootstrap, f"new-{number}", {(busy, 0): number})
        again = _followed(archive, quiet)
        assert (again.changed, again.entry.id) == (False, first.entry.id), f"round {number}"

    record, manifest = archive.record(first.entry.id), archive.manifest(first.entry.id)
    assert [(g.name, [(c.topic, c.offset) for c in g.commits]) for g in record.groups] == [("reads-both", [(quiet, 1)])]
    assert (record.version, record.chosen, manifest.version) == (3, True, 2)
    assert open_format(archive.place.store).document.required_features == ("deletion-times", "packed-records")
    archive.check(first.entry.id)

    commit(kafka.bootstrap, "reads-both", {(quiet, 0): 2})
    moved = _followed(archive, quiet)
    assert moved.changed, "a group moved in the chosen topic"
    (group,) = archive.record(moved.entry.id).groups
    assert [(c.topic, c.offset) for c in group.commits] == [(quiet, 2)]

    everything = archive.record(archive.back_up(quiet, busy).entry.id)
    found = {g.name: {(c.topic, c.offset) for c in g.commits} for g in everything.groups}
    assert found["reads-both"] == {(quiet, 2), (busy, ROUNDS)}
    assert found["new-1"] == {(busy, 1)}
