"""A broker whose disk was put back, and a clone of it: every backup has exactly the past that it was taken of.

The cluster id, the topic ids, the leader epochs and their borders are the same in all these pasts. An independent
consumer records each of them, and reads what a restore brings back.
"""

from collections.abc import Iterator
from contextlib import closing
from dataclasses import dataclass, field

import pytest

from logkeep.engine.inline import InlineEngine
from logkeep.kafka.backup.values import KafkaBackupDone, KafkaBackupOptions
from logkeep.kafka.follow.run import FollowedCluster
from logkeep.kafka.salvage.run import SalvageDone
from tests.support.cli.filled_repository import Filled
from tests.support.kafka.command_in_process import Commands
from tests.support.kafka.copied_logs import on_disk
from tests.support.kafka.kernel_cache import share_kernels
from tests.support.kafka.salvage_steps import salvaged
from tests.support.kafka.whole_backups import Archive, new_place
from tests.support.servers.rolled_back_kafka import Recorded, RolledBackKafka, rolled_back_kafka, written_by

pytestmark = pytest.mark.xdist_group("kafka-pasts")
TOPICS = ("plain", "straddling", "same-end")
A, B, A_AGAIN = 0, 1, 2


class _Dies(InlineEngine):
    """Copies, and does not live to commit."""

    def map(self, task, units, result, *, label, weight):  # type: ignore[no-untyped-def]  # as its parent
        done = super().map(task, units, result, label=label, weight=weight)
        if label == "copy":
            raise RuntimeError("killed after the copy")
        return done


@dataclass
class Story:
    """Two pasts from one disk, backed up one after the other under one name, and then the first one again."""

    broker: RolledBackKafka
    archive: Archive
    interrupted: Archive
    followed: Archive
    commands: Commands
    pasts: list[dict[str, Recorded]] = field(default_factory=list)
    backups: list[KafkaBackupDone] = field(default_factory=list)
    batches: list[dict[str, list[bytes]]] = field(default_factory=list)
    """As the broker has them on its disk."""
    rounds: list[KafkaBackupDone] = field(default_factory=list)
    resumed: KafkaBackupDone | None = None
    salvage: SalvageDone | None = None

    def take(self) -> None:
        done = self.archive.back_up(*TOPICS)
        self.backups.append(done)
        self.pasts.append(self.broker.recorded(*TOPICS))
        ends = {log.topic: cut.end for log, cut in self.archive.cuts(done.entry.id).items()}
        self.batches.append({t: on_disk(self.broker.kafka, t, 0, 0, ends[t]) for t in TOPICS})

    def restored(self, number: int) -> dict[str, Recorded]:
        """What a consumer reads of a backup after its restore under other names."""
        prefix, backup = f"back{number}-", self.backups[number].entry.id
        where = ("--bootstrap-servers", self.broker.bootstrap, "--rename", f"s/^/{prefix}/", "--engine", "inline")
        cluster = self.archive.record(backup).cluster_id
        done = self.commands.json("kafka", "restore", str(backup), *where, "--confirm-cluster", cluster, "--yes")
        assert done["verdict"] == "proven"
        found = self.broker.recorded(*(prefix + topic for topic in TOPICS))
        return {topic.removeprefix(prefix): records for topic, records in found.items()}


def _said(done: KafkaBackupDone | SalvageDone | None) -> dict[str, str]:
    """By topic, what is said of its log."""
    assert done is not None
    return {f.where.removesuffix("-0").removesuffix("/0"): f.code for f in done.findings if f.where != "groups"}


NEW_HISTORIES = dict.fromkeys(TOPICS, "new-history")


@pytest.fixture(scope="module")
def story(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Story]:
    directory = tmp_path_factory.mktemp("pasts")
    repo = Filled(directory / "home")
    repo.home.mkdir()
    share_kernels(repo.home)
    with rolled_back_kafka(directory, TOPICS) as broker:
        roots = (repo.root, directory / "interrupted", directory / "followed")
        one, two, three = (Archive(broker.bootstrap, new_place(root)) for root in roots)
        story = Story(broker, one, two, three, Commands(repo.url, repo.home))
        broker.write("plain", "before", 700, 50)
        broker.write("straddling", "before", 100)
        broker.write("same-end", "before", 100)
        broker.copy_disk("before")
        broker.write("plain", "A", 500, 50)
        broker.write("straddling", "A", 50)
        broker.write("same-end", "A", 50)
        story.take()
        with pytest.raises(RuntimeError, match="killed"):
            Archive(broker.bootstrap, story.interrupted.place, _Dies()).back_up(*TOPICS)
        _follow(story)
        story.take()
        story.resumed = story.interrupted.back_up(*TOPICS, resume=True)
        broker.put_back("A")
        broker.write("plain", "more of A", 30)
        story.take()
        story.salvage = salvaged(story.interrupted.place, [broker.disk_of("A")], include=TOPICS)[1]
        yield story


def _follow(story: Story) -> None:
    """Rounds in one past and, after the disk was put back and written to up to the same end, in the other one."""
    broker, options = story.broker, KafkaBackupOptions(include=("same-end",))
    with closing(FollowedCluster(story.followed.task, options, lambda _: InlineEngine(), 0.0)) as cluster:
        story.rounds += [cluster.round() for _ in range(3)]
        broker.put_back("before", keep="A")
        broker.write("plain", "B", 500, 50)
        broker.write("straddling", "B", 77, 7)
        broker.write("same-end", "B", 50)
        story.rounds += [cluster.round() for _ in range(2)]


def test_a_disk_that_was_put_back_begins_a_new_history(story: Story) -> None:
    """Found by the last archived batch alone: one log has the same end in both pasts, two have a larger one."""
    assert [len(past["plain"]) for past in story.pasts[:2]] == [1200, 1200]
    assert written_by(story.pasts[B]["plain"]) == {"before", "B"}
    assert story.restored(B) == story.pasts[B]
    assert story.restored(A) == story.pasts[A]
    assert _said(story.backups[B]) == NEW_HISTORIES
    assert all("other-past" in f.what for f in story.backups[B].findings)


def test_a_batch_over_the_archived_end_is_no_gap(story: Story) -> None:
    done = story.backups[B]
    assert done.gaps == ()
    cut = story.archive.cut(done.entry.id, "straddling")
    assert (cut.start, cut.end) == (0, 177)
    assert story.archive.batches(done.entry.id, "straddling") == story.batches[B]["straddling"]


def test_a_clone_under_the_same_name_begins_a_history_each_time(story: Story) -> None:
    assert _said(story.backups[A_AGAIN]) == NEW_HISTORIES
    assert written_by(story.pasts[A_AGAIN]["plain"]) == {"before", "A", "more"}
    assert story.restored(A_AGAIN) == story.pasts[A_AGAIN]
    story.archive.check(*(done.entry.id for done in story.backups))


def test_what_an_interrupted_run_copied_of_another_past_is_not_resumed(story: Story) -> None:
    done = story.resumed
    assert _said(done) == NEW_HISTORIES
    assert done is not None
    assert {t: story.interrupted.batches(done.entry.id, t) for t in TOPICS} == story.batches[B]


def test_a_following_run_compares_again_after_a_broker_was_restarted(story: Story) -> None:
    """Nothing else shows it: the log has the same end and leader epoch as in the round before."""
    assert [done.changed for done in story.rounds] == [True, False, False, True, False]
    before, after = story.rounds[2], story.rounds[3]
    assert _said(after) == {"same-end": "new-history"}
    assert before.facts.bounds == after.facts.bounds
    assert before.facts.topics == after.facts.topics
    assert story.followed.batches(before.entry.id, "same-end") == story.batches[A]["same-end"]
    assert story.followed.batches(after.entry.id, "same-end") == story.batches[B]["same-end"]


def test_a_salvaged_disk_with_another_past_begins_a_new_history(story: Story) -> None:
    """One log on the disk is shorter than its archive, as if its broker had lagged behind."""
    done = story.salvage
    assert done is not None
    assert done.entry is not None
    assert {t: code for t, code in _said(done).items() if t in TOPICS} == NEW_HISTORIES
    assert {t: story.interrupted.batches(done.entry.id, t) for t in TOPICS} == story.batches[A]


def test_the_source_is_judged_and_not_the_backup(story: Story) -> None:
    """The only copy of records that the cluster no longer has stays good, and can be restored."""
    backup, servers = story.backups[B].entry.id, ("--bootstrap-servers", story.broker.bootstrap)
    report = story.commands.json("verify", str(backup), "--level", "source", *servers, "--engine", "inline", code=10)
    assert (report["verdict"], report["level"], report["also_damaged"]) == ("good", "records", [])
    said = {(f["where"].partition("/")[0], f["code"], f["severity"]) for f in report["findings"]}
    differs = {(topic, "source-differs", "warning") for topic in ("plain", "same-end")}
    assert said >= {*differs, ("straddling", "not-comparable", "warning")}, "the last one is shorter than the backup"
    health = {row["id"]: row["health"] for row in story.commands.json("list")["backups"]}
    assert health[backup] == "good"
    fine = story.commands.json("verify", str(story.backups[A].entry.id), "--level", "source", *servers)
    assert (fine["verdict"], fine["level"]) == ("good", "source")
