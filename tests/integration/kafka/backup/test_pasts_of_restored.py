"""Topics that Logkeep restored itself, on a broker whose disk is then put back: the next backup begins a new history.

An independent consumer records each past, and reads what a restore brings back.
"""

from collections.abc import Iterator
from dataclasses import dataclass, field

import pytest
from confluent_kafka import TopicPartition

from logkeep.kafka.backup.values import KafkaBackupDone
from tests.support.cli.filled_repository import Filled
from tests.support.kafka.command_in_process import Commands
from tests.support.kafka.copied_logs import on_disk
from tests.support.kafka.kernel_cache import share_kernels
from tests.support.kafka.whole_backups import Archive, new_place
from tests.support.servers.rolled_back_kafka import Recorded, RolledBackKafka, rolled_back_kafka, written_by

pytestmark = pytest.mark.xdist_group("kafka-restored-pasts")
GROWN, SHORTER, TRIMMED, BEYOND = TOPICS = ("grown", "shorter", "trimmed", "beyond")
ORIGINAL, RESTORED, A, B = range(4)


@dataclass
class Story:
    """Four topics that were lost and restored; what was written to them afterwards was lost again."""

    broker: RolledBackKafka
    archive: Archive
    commands: Commands
    pasts: list[dict[str, Recorded]] = field(default_factory=list)
    backups: list[KafkaBackupDone] = field(default_factory=list)
    batches: dict[str, list[bytes]] = field(default_factory=dict)
    """Of the last past, as the broker has them on its disk."""

    def take(self) -> None:
        self.backups.append(self.archive.back_up(*TOPICS))
        self.pasts.append(self.broker.recorded(*TOPICS))

    def restore(self, number: int, *more: str) -> None:
        backup = self.backups[number].entry.id
        where = ("--bootstrap-servers", self.broker.bootstrap, "--engine", "inline", "--yes")
        cluster = self.archive.record(backup).cluster_id
        done = self.commands.json("kafka", "restore", str(backup), *where, "--confirm-cluster", cluster, *more)
        assert done["verdict"] == "proven"

    def restored(self, number: int) -> dict[str, Recorded]:
        """What a consumer reads of a backup after its restore under other names."""
        prefix = f"back{number}-"
        self.restore(number, "--rename", f"s/^/{prefix}/")
        found = self.broker.recorded(*(prefix + topic for topic in TOPICS))
        return {topic.removeprefix(prefix): records for topic, records in found.items()}

    def cut(self, topic: str) -> tuple[int, int]:
        """Of the last backup."""
        cut = self.archive.cut(self.backups[B].entry.id, topic)
        return cut.start, cut.end

    def delete_before(self, topic: str, offset: int) -> None:
        for done in self.broker.topics.admin.delete_records([TopicPartition(topic, 0, offset)]).values():
            done.result(30)


@pytest.fixture(scope="module")
def story(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Story]:
    directory = tmp_path_factory.mktemp("restored-pasts")
    repo = Filled(directory / "home")
    repo.home.mkdir()
    share_kernels(repo.home)
    with rolled_back_kafka(directory, TOPICS) as broker:
        story = Story(broker, Archive(broker.bootstrap, new_place(repo.root)), Commands(repo.url, repo.home))
        for topic in TOPICS:
            broker.write(topic, "before", 100)
        story.take()
        broker.topics.delete(*TOPICS)
        story.restore(ORIGINAL)
        story.take()
        broker.copy_disk("restored")
        for topic in TOPICS:
            broker.write(topic, "A", 50)
        story.take()
        broker.put_back("restored")
        broker.write(GROWN, "B", 77, 7)
        broker.write(TRIMMED, "B", 50)
        broker.write(BEYOND, "B", 70)
        story.delete_before(TRIMMED, 80)
        story.delete_before(BEYOND, 150)
        story.take()
        starts = {TRIMMED: 80, BEYOND: 150}
        story.batches = {t: on_disk(broker.kafka, t, 0, starts.get(t, 0), story.cut(t)[1]) for t in TOPICS}
        yield story


def _said(done: KafkaBackupDone) -> dict[str, str]:
    """By topic, what is said of its log."""
    found = {f.where.removesuffix("-0").removesuffix("/0"): f.code for f in done.findings}
    return {topic: code for topic, code in found.items() if topic in TOPICS}


def test_a_restored_topic_is_backed_up_on(story: Story) -> None:
    """It has another topic id, and so a history of its own; what is written to it afterwards continues that."""
    assert story.pasts[RESTORED] == story.pasts[ORIGINAL]
    assert _said(story.backups[RESTORED]) == dict.fromkeys(TOPICS, "new-history")
    assert _said(story.backups[A]) == {}
    assert all(written_by(records) == {"before", "A"} for records in story.pasts[A].values())


def test_a_restored_topic_that_lost_its_end_begins_a_new_history(story: Story) -> None:
    """One has grown beyond its archived end since, one is shorter, one has the same end and lost its beginning."""
    done = story.backups[B]
    assert _said(done) == dict.fromkeys((GROWN, SHORTER, TRIMMED), "new-history")
    assert done.gaps == (), "nothing that the other past had is missing in this one"
    assert {topic: story.cut(topic) for topic in TOPICS} == {
        GROWN: (0, 177), SHORTER: (0, 100), TRIMMED: (80, 150), BEYOND: (150, 170),
    }  # fmt: skip


def test_no_backup_mixes_the_pasts_of_a_restored_topic(story: Story) -> None:
    backup = story.backups[B].entry.id
    assert {topic: story.archive.batches(backup, topic) for topic in TOPICS} == story.batches
    assert not any("A" in written_by(records) for records in story.pasts[B].values())
    for number in (A, B):
        assert story.restored(number) == story.pasts[number]
    story.archive.check(*(done.entry.id for done in story.backups))


def test_a_restore_reads_nothing_below_the_log_start_of_its_backup(story: Story) -> None:
    """Retention removed the last archived batch, so only epochs were compared: the log is continued without a finding.

    The archive has both pasts then, side by side. A backup of the second one begins behind the first.
    """
    assert story.cut(BEYOND) == (150, 170)
    assert written_by(story.pasts[B][BEYOND]) == {"B"}
    assert len(story.pasts[B][BEYOND]) == 20
