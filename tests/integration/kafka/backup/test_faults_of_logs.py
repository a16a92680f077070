"""What becomes of logs while they are copied: lost beginnings and ends, topics deleted and made again, more of them."""

import json
import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest
from confluent_kafka import TopicPartition
from confluent_kafka.cimpl import NewPartitions

from logkeep.formats.kafka.batches import walk
from logkeep.kafka.backup.values import KafkaBackupDone
from tests.support.cli.filled_repository import Done as Finished
from tests.support.cli.filled_repository import Filled, document
from tests.support.cli.processes import logkeep
from tests.support.kafka.backup_steps import add, assert_whole, beside, fill
from tests.support.kafka.copied_logs import on_disk
from tests.support.kafka.whole_backups import Archive, new_place
from tests.support.processes import wait_for
from tests.support.servers.proxied_kafka import Shaky

pytestmark = pytest.mark.xdist_group("kafka-proxy")
MEGABYTE = 1_000_000


class Command:
    """The real command on a repository of its own, which can be held up in the middle of its copy."""

    def __init__(self, shaky: Shaky, home: Path) -> None:
        self._shaky = shaky
        self.repo = Filled(home)
        self.archive = Archive(shaky.bootstrap, new_place(self.repo.root))

    def run(self, *arguments: str) -> Finished:
        command = ("kafka", "backup", "--bootstrap-servers", self._shaky.bootstrap, "--source", "prod", "--json")
        return logkeep(*command, *arguments, home=self.repo.home, env={"LOGKEEP_REPO": self.repo.url})

    @contextmanager
    def held(self, *arguments: str) -> Iterator[list[Finished]]:
        """It has got 12 MB of its topics and gets no more until the block ends; then it is finished."""
        done: list[Finished] = []
        with beside(lambda: self.run(*arguments)) as running:
            with self._shaky.held_after(12 * MEGABYTE):
                assert not running.done(), running.result().stderr
                yield done
            done.append(running.result())

    def told(self, done: list[Finished], code: int) -> dict[str, Any]:
        assert done[0].returncode == code, done[0].stderr + done[0].stdout
        return document(done[0])


@pytest.fixture
def command(shaky: Shaky, tmp_path: Path) -> Command:
    (tmp_path / "home").mkdir()
    return Command(shaky, tmp_path / "home")


def _delete_before(shaky: Shaky, topic: str, offset: int) -> None:
    for future in shaky.topics.admin.delete_records([TopicPartition(topic, 0, offset)]).values():
        future.result(30)


@pytest.mark.parametrize(("more", "code"), [((), 21), (("--allow-gaps",), 2)])
def test_retention_during_the_copy_is_a_gap_with_its_offsets(
    shaky: Shaky, command: Command, more: tuple[str, ...], code: int
) -> None:
    """The new log start lies inside a batch, far behind what was copied."""
    topic = fill(shaky.topics, f"overtaken-{code}", 1, 2400, size=10_000)
    first = command.run("--topics", fill(shaky.topics, f"calm-{code}", 1, 10))
    with command.held("--topics", topic, *more) as done:
        before = on_disk(shaky.kafka, topic, 0, 0, 2400)
        _delete_before(shaky, topic, 2345)
    report = command.told(done, code)
    archive, backup_id = command.archive, report["id"]
    (gap,) = archive.manifest(backup_id).gaps
    assert report["gaps"] == [f"{gap.log} [{gap.start}, {gap.end}): {gap.reason}"]
    spans = [(b, int(h["base_offset"]), int(h["base_offset"] + h["last_offset_delta"])) for b, h in _headers(before)]
    (holder,) = [base for _, base, last in spans if base <= 2345 <= last]
    assert holder == gap.end
    assert 0 < gap.start < gap.end
    assert archive.batches(backup_id, topic) == [b for b, base, last in spans if last < gap.start or base >= gap.end], (
        "everything outside of the gap is there, and nothing inside of it"
    )
    archive.check(json.loads(first.stdout)["id"], backup_id)


def _headers(batches: list[bytes]) -> list[tuple[bytes, Any]]:
    return [(batch, walk(batch).batches.headers[0]) for batch in batches]


def _kept_as_far_as_copied(command: Command, backup_id: int, topic: str, before: list[bytes]) -> None:
    """What was copied of a topic that is no more is the beginning of it, and the rest is a gap."""
    (gap,) = command.archive.manifest(backup_id).gaps
    assert gap.reason == "the topic was deleted before it was copied"
    kept = [b for b, h in _headers(before) if int(h["base_offset"]) < gap.start]
    assert 0 < gap.start < gap.end == command.archive.cut(backup_id, topic).end
    assert command.archive.batches(backup_id, topic) == kept
    assert topic in {t.name for t in command.archive.record(backup_id).topics}
    command.archive.check(backup_id)


def test_a_topic_deleted_and_made_again_during_the_copy(shaky: Shaky, command: Command) -> None:
    topic = fill(shaky.topics, "replaced", 1, 100)
    first = command.told([command.run("--topics", topic)], 0)["id"]
    old = command.archive.batches(first, topic)
    add(shaky.topics, topic, 1, 2400, size=10_000)
    before = on_disk(shaky.kafka, topic, 0, 0, 2500)
    with command.held("--topics", topic) as done:
        shaky.topics.delete(topic)
        shaky.topics.create(topic)
        add(shaky.topics, topic, 1, 150)
    report = command.told(done, 21)
    assert ["re-created" in f["what"] for f in report["findings"]] == [True]
    _kept_as_far_as_copied(command, report["id"], topic, before)
    assert command.archive.batches(first, topic) == old
    later = command.told([command.run("--topics", topic)], 0)
    assert later["new_offsets"] == 150, "the new topic, from its beginning"
    assert command.archive.cut(later["id"], topic).log.history != command.archive.cut(first, topic).log.history
    assert_whole(command.archive, shaky.kafka, later["id"])
    command.archive.check(first, report["id"])


@pytest.mark.parametrize("cut", [False, True])
def test_a_topic_deleted_during_the_copy_is_told_and_the_others_are_there(
    shaky: Shaky, command: Command, cut: bool
) -> None:
    """Found out by a fetch, or by looking for the leader after the connection was cut as well."""
    names = [f"goes-{cut}-{number}" for number in (1, 2)]
    vanishing, staying = fill(shaky.topics, names[0], 1, 2400, size=10_000), fill(shaky.topics, names[1], 2, 100)
    before = on_disk(shaky.kafka, vanishing, 0, 0, 2400)
    first = command.told([command.run("--topics", staying)], 0)["id"]
    with command.held("--topics", f"goes-{cut}-.*") as done:
        shaky.topics.delete(vanishing)
        if cut:
            shaky.proxy.hang_up()
    report = command.told(done, 21)
    assert [(f["where"], "deleted" in f["what"]) for f in report["findings"]] == [(vanishing, True)]
    _kept_as_far_as_copied(command, report["id"], vanishing, before)
    for partition in range(2):
        assert command.archive.batches(report["id"], staying, partition) == on_disk(
            shaky.kafka, staying, partition, 0, 100
        )
    later = command.told([command.run("--topics", f"goes-{cut}-.*")], 2)
    assert [f["code"] for f in later["findings"]] == ["topic-gone"]
    command.archive.check(first)


def test_the_only_topic_deleted_during_the_copy(shaky: Shaky, command: Command) -> None:
    topic = fill(shaky.topics, "vanishes", 1, 2400, size=10_000)
    before = on_disk(shaky.kafka, topic, 0, 0, 2400)
    with command.held("--topics", topic) as done:
        shaky.topics.delete(topic)
    _kept_as_far_as_copied(command, command.told(done, 21)["id"], topic, before)


@pytest.mark.parametrize("again", [False, True])
def test_a_topic_deleted_while_the_cluster_is_asked(shaky: Shaky, faulty: Archive, again: bool) -> None:
    """At many points between the first question and the copy, in a first and in a later backup."""
    staying, names = fill(shaky.topics, f"asked-{again}", 1, 20), f"asked-{again}.*"
    for allowed in range(500, 6000, 900):
        topic = fill(shaky.topics, f"asked-{again}-{allowed}", 1, 20)
        if again:
            faulty.back_up(names)
        done = _deleted_after(shaky, faulty, names, topic, allowed)
        assert staying in {log.topic for log in faulty.cuts(done.entry.id)}
        faulty.check(done.entry.id)


def _deleted_after(shaky: Shaky, archive: Archive, names: str, topic: str, size_bytes: int) -> KafkaBackupDone:
    """A backup that is held after so many bytes, or is done with fewer, while a topic is deleted."""
    with beside(lambda: archive.back_up(names)) as backup:
        shaky.gate.close_after(size_bytes)
        try:
            wait_for(lambda: shaky.gate.closed or backup.done(), "the hold or the end")
            shaky.topics.delete(topic)
        finally:
            shaky.gate.open()
        return backup.result()


def test_partitions_added_during_the_copy_are_in_the_next_backup(shaky: Shaky, command: Command) -> None:
    topic = fill(shaky.topics, "widened", 1, 2400, size=10_000)
    with command.held("--topics", topic) as done:
        for future in shaky.topics.admin.create_partitions([NewPartitions(topic, 3)]).values():
            future.result(30)
        producer = shaky.topics.producer()
        for partition in (1, 2):
            producer.produce(topic, os.urandom(100), None, partition)
        assert producer.flush(30) == 0
    report = command.told(done, 0)
    assert (report["partitions"], report["findings"]) == (1, [])
    assert_whole(command.archive, shaky.kafka, report["id"])
    later = command.told([command.run("--topics", topic)], 0)
    assert (later["partitions"], later["new_offsets"]) == (3, 2)
    assert_whole(command.archive, shaky.kafka, later["id"])


def _logs(shaky: Shaky, topic: str) -> list[Path]:
    return sorted((shaky.kafka.directory / "data" / f"{topic}-0").iterdir())


def test_a_log_that_lost_its_end_begins_a_new_history(shaky: Shaky, faulty: Archive) -> None:
    """As after an unclean election: the broker comes back with less than it had, and goes on from there."""
    topic = fill(shaky.topics, "truncated", 1, 100)
    first = faulty.back_up(topic).entry.id
    old = faulty.batches(first, topic)
    shaky.kafka.kill()
    (log,) = [path for path in _logs(shaky, topic) if path.suffix == ".log"]
    data = log.read_bytes()
    log.write_bytes(data[: int(walk(data).batches.positions[2])])
    for path in _logs(shaky, topic):
        if path.suffix in {".index", ".timeindex", ".snapshot", ".txnindex"} or path.name == "leader-epoch-checkpoint":
            path.unlink()
    for name in ("recovery-point-offset-checkpoint", "replication-offset-checkpoint"):
        (shaky.kafka.directory / "data" / name).unlink(missing_ok=True)
    shaky.kafka.start()
    producer = shaky.topics.producer(batch_num_messages=20)
    for _ in range(200):
        producer.produce(topic, b"after the accident", None, 0)
    producer.flush(60)
    done = faulty.back_up(topic)
    assert [f.code for f in done.findings] == ["new-history"]
    histories = [faulty.cut(i, topic).log.history for i in (first, done.entry.id)]
    assert histories[1] == f"{histories[0]}-1"
    assert_whole(faulty, shaky.kafka, done.entry.id)
    assert faulty.batches(first, topic) == old
    faulty.check(first)
    third = faulty.back_up(topic)
    assert (third.findings, third.plan.units) == ((), ())
    assert_whole(faulty, shaky.kafka, third.entry.id)
