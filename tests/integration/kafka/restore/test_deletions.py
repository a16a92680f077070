"""Keys that were deleted at the source, whose tombstones the cleaner removed before a backup could read them."""

import hashlib
import os
from collections.abc import Callable
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest
from confluent_kafka import Producer

from logkeep.embedded.kafka import EmbeddedKafka
from logkeep.engine.inline import InlineEngine
from logkeep.kafka.backup.run import KafkaBackup
from logkeep.kafka.backup.values import KafkaBackupDone, KafkaBackupOptions
from logkeep.kafka.client.settings import ClientSettings, endpoints
from logkeep.kafka.logs.brokers import WireFetchConnection
from logkeep.model.cache import cache_dir
from logkeep.model.time import random_token, utc_now
from logkeep.repository.backups.verification import Verification, stored_verifications
from logkeep.repository.chain.documents import read
from logkeep.repository.chain.freshness import put_freshness
from tests.integration.kafka.restore.drivers import Drivers, Point
from tests.integration.kafka.restore.scene import Scene
from tests.support.kafka.cleaned_topics import CleanedTopic, latest, markers, transaction
from tests.support.kafka.topic_matrix import BROKER, Matrix
from tests.support.processes import wait_for

pytestmark = pytest.mark.xdist_group("kafka-restore")

_UNPROVEN = "deletions-unproven"


def _codes(report: dict[str, object]) -> set[object]:
    findings = report["findings"]
    assert isinstance(findings, list)
    return {each["code"] for each in findings}


def _topic(scene: Scene, name: str, **config: str) -> CleanedTopic:
    named = {key.replace("_", "."): value for key, value in config.items()}
    return CleanedTopic(scene.topics, scene.kafka.bootstrap, name, named)


def _keys(*numbers: int) -> dict[bytes, bytes | None]:
    return {b"k%d" % number: b"value %d" % number for number in numbers}


def _words(scene: Scene, topic: CleanedTopic, *more: str) -> tuple[str, ...]:
    where = ("--bootstrap-servers", scene.kafka.bootstrap, "--source", "prod", "--topics", topic.name)
    return "kafka", "backup", *where, *more


def _back_up(scene: Scene, topic: CleanedTopic, *more: str, code: int = 0) -> dict[str, Any]:
    topic.tick()
    return scene.commands.json(*_words(scene, topic, *more), code=code)


def _restored(scene: Scene, topic: str, backup: int | str = "latest", offsets: str = "preserve") -> dict[bytes, bytes]:
    """Proven, and without a finding."""
    name = f"{offsets}-{backup}-{topic}"
    scene.restore(str(backup), "--rename", f"s/^/{offsets}-{backup}-/", "--offsets", offsets)
    return latest(scene.target.bootstrap, name)


def test_deleted_keys_stay_deleted(scene: Scene) -> None:
    """60 of 60 came back before: the archive has their values, and their tombstones were gone before any backup."""
    topic = _topic(scene, "deleted")
    topic.put(_keys(*range(60)))
    topic.put(_keys(7, 8, 9))  # several archived values: the one before must not come back either
    first = _back_up(scene, topic)["id"]
    topic.delete(*_keys(*range(1, 60)))
    topic.without(b"k1", b"k7", b"k59")
    foreseen = _back_up(scene, topic, "--dry-run")
    second = _back_up(scene, topic)["id"]
    third = _back_up(scene, topic)["id"]
    kept = {b"k0": b"value 0"}
    for offsets in ("preserve", "translate"):
        assert _restored(scene, "deleted", third, offsets) == kept
    assert _restored(scene, "deleted", second) == kept
    assert len(_restored(scene, "deleted", first)) == 60, "at that cut they were there"
    (line,) = foreseen["to_compare"]
    assert line.startswith("deleted/0, about ")
    commands = scene.commands
    (found,) = commands.json("info", str(third))["kafka"]["topics"]
    assert found["logs"][0]["buried"] == 62
    commands.json("verify", str(third), "--level", "records")
    commands.json("verify", str(third), "--level", "source", "--bootstrap-servers", scene.kafka.bootstrap)


def test_with_retention_too_deleted_keys_stay_deleted(scene: Scene) -> None:
    topic = _topic(scene, "both", cleanup_policy="compact,delete")
    topic.put(_keys(1, 2, 3))
    _back_up(scene, topic)
    topic.delete(b"k2")
    topic.without(b"k2")
    _back_up(scene, topic)
    assert _restored(scene, "both") == {b"k1": b"value 1", b"k3": b"value 3"}


def test_a_topic_that_is_copied_again_keeps_its_deletions(scene: Scene) -> None:
    topic = _topic(scene, "recopied")
    topic.put(_keys(1, 2, 3))
    _back_up(scene, topic)
    topic.delete(b"k2")
    topic.without(b"k2")
    _back_up(scene, topic, "--compacted", "incremental", code=2)
    scene.topics.change("recopied", "delete.retention.ms", "600000")
    _back_up(scene, topic, "--compacted", "recopy")
    assert _restored(scene, "recopied") == {b"k1": b"value 1", b"k3": b"value 3"}


def _lose_marker(scene: Scene, topic: CleanedTopic, producer: Producer, *, commit: bool) -> None:
    """Until the end marker of the producer's transaction is gone. A broker keeps it while the producer has no later
    batch, so there is another transaction, which ends in the other way."""
    wait_for(lambda: bool(markers(scene.kafka.bootstrap, topic.name)), "the marker")
    (first,) = markers(scene.kafka.bootstrap, topic.name)
    transaction(producer, topic.name, {b"k3": b"value 3"})
    (producer.commit_transaction if commit else producer.abort_transaction)(30)
    topic.clean(lambda _: first not in markers(scene.kafka.bootstrap, topic.name))


def test_an_aborted_transaction_whose_marker_is_gone(scene: Scene) -> None:
    """The next commit marker of the same producer would be taken for the end of what was aborted."""
    topic = _topic(scene, "aborted")
    topic.put(_keys(1, 2))
    producer = scene.topics.producer(transactional_id="aborting-alone")
    producer.init_transactions(30)
    transaction(producer, "aborted", {b"k2": b"never committed"})
    _back_up(scene, topic)
    producer.abort_transaction(30)
    _lose_marker(scene, topic, producer, commit=True)
    _back_up(scene, topic)
    assert _restored(scene, "aborted") == _keys(1, 2, 3) == latest(scene.kafka.bootstrap, "aborted")


def test_a_tombstone_in_a_transaction_that_is_open_at_the_cut(scene: Scene) -> None:
    """Committed between two backups; the cleaner removes its records and its marker before the second one."""
    topic = _topic(scene, "torn")
    topic.put(_keys(1, 2))
    producer = scene.topics.producer(transactional_id="deleting-alone")
    producer.init_transactions(30)
    transaction(producer, "torn", {b"k1": None})
    _back_up(scene, topic)
    producer.commit_transaction(30)
    _lose_marker(scene, topic, producer, commit=False)
    topic.without(b"k1")
    _back_up(scene, topic)
    assert _restored(scene, "torn") == _keys(2)


def test_transactions_that_end_between_two_backups(scene: Scene) -> None:
    """A tombstone and an aborted value, each in a transaction that is open at the cut."""
    topic = _topic(scene, "transacted")
    topic.put(_keys(1, 2, 3))
    deleting = scene.topics.producer(transactional_id="deleting")
    aborting = scene.topics.producer(transactional_id="aborting")
    for producer in (deleting, aborting):
        producer.init_transactions(30)
    transaction(deleting, "transacted", {b"k1": None})
    transaction(aborting, "transacted", {b"k2": b"never committed"})
    _back_up(scene, topic)
    deleting.commit_transaction(30)
    aborting.abort_transaction(30)
    topic.clean(lambda records: not any(r.key == b"k1" for r in records.values()))
    transaction(aborting, "transacted", {b"k4": b"value 4"})
    aborting.commit_transaction(30)
    _back_up(scene, topic)
    expected = {b"k2": b"value 2", b"k3": b"value 3", b"k4": b"value 4"}
    assert _restored(scene, "transacted") == expected == latest(scene.kafka.bootstrap, "transacted")


def test_a_topic_emptied_by_mistake_is_not_forgotten(scene: Scene) -> None:
    topic = _topic(scene, "emptied")
    everything = _keys(*range(1200))
    topic.put(everything)
    first = _back_up(scene, topic)["id"]
    topic.delete(*everything)
    topic.without(b"k0", b"k600", b"k1199")
    assert "deletions-suspicious" in _codes(_back_up(scene, topic, code=2))
    held = {row["id"]: row["held"] for row in scene.commands.json("list")["backups"]}
    assert [i for i, reason in held.items() if reason] == [first]
    assert len(_restored_with(scene, "emptied", code=2)) == 1200
    accepted = _back_up(scene, topic, "--accept-deletions", "emptied")
    assert _restored(scene, "emptied") == {}
    (note,) = [f for f in accepted["findings"] if f["code"] == "deletions-accepted"]
    assert (note["where"], note["severity"]) == (f"backup {first}", "note")
    assert f"`logkeep release {first}`" in note["what"]


def _restored_with(scene: Scene, topic: str, code: int) -> dict[bytes, bytes]:
    scene.restore("latest", "--rename", "s/^/doubtful-/", code=code)
    return latest(scene.target.bootstrap, f"doubtful-{topic}")


def test_a_backup_that_may_have_missed_deletions_says_so_everywhere(scene: Scene) -> None:
    topic = _topic(scene, "missed")
    topic.put(_keys(*range(60)))
    _back_up(scene, topic)  # every offset has its record: proven, whatever the clocks say
    topic.delete(*_keys(*range(1, 60)))
    topic.without(b"k1", b"k59")
    backup = _back_up(scene, topic, "--compacted", "incremental", code=2)["id"]
    commands = scene.commands
    assert _UNPROVEN in _codes(commands.json("info", str(backup)))
    assert _UNPROVEN in _codes(commands.json("verify", str(backup), code=2))
    (source,) = commands.json("status", code=2)["sources"]
    assert _UNPROVEN in source["warnings"][0]
    renamed = ("latest", "--rename", "s/^/again-/")
    assert _UNPROVEN in _codes(commands.json(*scene.restore_words(*renamed, "--dry-run"), code=2))
    assert _UNPROVEN in _codes(scene.restore(*renamed, code=2))


def test_a_backup_within_the_retention_of_tombstones_is_proven(scene: Scene) -> None:
    topic = _topic(scene, "in-time", delete_retention_ms="600000")
    topic.put(_keys(1, 2, 3))
    topic.put(_keys(1, 2, 3))
    topic.clean(lambda records: len({o for o in records if o < 3}) == 0)
    _back_up(scene, topic)
    topic.delete(b"k2")
    topic.put(_keys(1))
    topic.clean(lambda records: sum(r.key == b"k1" for r in records.values()) == 1)
    began = utc_now()
    newest = _back_up(scene, topic)["id"]
    scene.restore("latest", "--rename", "s/^/again-/")
    assert latest(scene.target.bootstrap, "again-in-time") == {b"k1": b"value 1", b"k3": b"value 3"}
    place, later = scene.repo.place(), utc_now() + timedelta(seconds=30)
    put_freshness(place, later, newest, 0, 3600)
    following = scene.commands.json("status")["sources"][0]["deletions_left_seconds"]
    put_freshness(place, later, newest, 0, -60)  # overdue: that run has ended, and what it saw was in its memory
    ended = scene.commands.json("status", code=2)["sources"][0]["deletions_left_seconds"]
    took_s = (utc_now() - began).total_seconds()  # minutes on a busy machine
    assert 20 < following - ended < 40 + took_s


def test_a_resumed_run_does_not_bring_deleted_keys_back(scene: Scene, forks: Drivers) -> None:
    """The value was copied by a process that was killed, and its tombstone is gone before the run is resumed."""
    topic = _topic(scene, "resumed")
    topic.put(_keys(1, 2, 3))
    topic.tick()
    killed = forks.run(scene.commands, *_words(scene, topic), point=Point("store", 1, "/journal/"))
    assert killed.killed
    topic.delete(b"k2")
    topic.without(b"k2")
    backup = _back_up(scene, topic, "--resume")
    assert scene.repo.ids == [backup["id"]], "it is the same backup"
    assert _restored(scene, "resumed") == _keys(1, 3)


class _ActsAfter(InlineEngine):
    """Something happens at the source after the first comparison, before the run goes on."""

    def __init__(self, label: str, act: Callable[[], None]) -> None:
        super().__init__()
        self.label, self.act, self.seen = label, act, list[str]()

    def map(self, task, units, result, *, label, weight):  # type: ignore[no-untyped-def]  # same as the parent's
        found = super().map(task, units, result, label=label, weight=weight)
        self.seen.append(label)
        if self.seen.count(self.label) == 1 and label == self.label:
            self.act()
        return found


def _run_with(scene: Scene, topic: CleanedTopic, engine: InlineEngine) -> KafkaBackupDone:
    settings = ClientSettings(endpoints(scene.kafka.bootstrap))
    task = KafkaBackup(scene.repo.place(), settings, utc_now, random_token)
    return task.run(KafkaBackupOptions(include=(topic.name,)), lambda _: engine)


def test_a_comparison_that_takes_longer_than_tombstones_stay(scene: Scene) -> None:
    """A key that it saw alive is deleted, and its tombstone is gone before the new offsets are read."""
    topic = _topic(scene, "slow")
    topic.put(_keys(1, 2, 3))
    _back_up(scene, topic)
    topic.delete(b"k1")
    topic.without(b"k1")

    def deleted() -> None:
        topic.delete(b"k2")
        topic.without(b"k2")
        topic.tick()

    engine = _ActsAfter("compare deletions", deleted)
    done = _run_with(scene, topic, engine)
    assert _restored(scene, "slow") == _keys(3)
    assert engine.seen.count("compare deletions") == 2
    assert not [f for f in done.findings if f.code == _UNPROVEN]


def test_files_for_a_stopped_broker_are_without_deleted_keys(scene: Scene, tmp_path: Path) -> None:
    """From an archive that was folded, at a cut before the newest one."""
    topic = _topic(scene, "filed")
    topic.put(_keys(*range(6)))
    topic.put(_keys(1, 2))
    _back_up(scene, topic)
    topic.delete(b"k1", b"k4")
    topic.without(b"k1", b"k4")
    cut = str(_back_up(scene, topic)["id"])
    topic.put({b"k0": b"later", b"k3": None})
    _back_up(scene, topic)
    (folded,) = scene.commands.json("kafka", "fold", "--source", "prod", "--yes")["logs"]
    assert folded["records_after"] < folded["records_before"]
    broker = EmbeddedKafka(tmp_path / "broker", cache_dir(os.environ, Path.home()), properties=BROKER)
    with broker:
        Matrix(broker).create("filed", 1, {"retention.ms": "-1", "retention.bytes": "-1"})
    data = str(tmp_path / "broker" / "data")
    scene.commands.json("kafka", "restore", cut, "--to-log-dirs", data, "--topics", "filed", "--yes")
    with broker:
        assert latest(broker.bootstrap, "filed") == _keys(0, 2, 3, 5)


def test_verify_at_the_source_names_keys_that_would_come_back(scene: Scene) -> None:
    topic = _topic(scene, "returning")
    topic.put(_keys(*range(5)))
    first = _back_up(scene, topic)["id"]
    topic.delete(b"k1", b"k3")
    topic.without(b"k1", b"k3")
    wrong = _back_up(scene, topic, "--compacted", "incremental", code=2)["id"]
    at_source = ("--level", "source", "--bootstrap-servers", scene.kafka.bootstrap)
    found = scene.commands.json("verify", str(wrong), *at_source, code=10)
    assert (found["verdict"], found["level"]) == ("good", "records")
    hashes = {hashlib.sha256(key).hexdigest(): offset for key, offset in ((b"k1", 1), (b"k3", 3))}
    assert {each["key_sha256"]: each["offsets"] for each in found["deleted_keys"]} == {
        digest: [offset] for digest, offset in hashes.items()
    }
    assert all(each["key"] is None for each in found["deleted_keys"])
    (finding,) = [f for f in found["findings"] if f["code"] == "deleted-keys-return"]
    assert all(digest in finding["what"] for digest in hashes)
    shown = scene.commands.json("verify", str(wrong), *at_source, "--show-keys", code=10)
    assert [each["key"] for each in shown["deleted_keys"]] == ["k1", "k3"]
    assert "offset 3: k3" in scene.commands.say("verify", str(wrong), *at_source, "--show-keys").out
    place = scene.repo.place()
    for _, name in stored_verifications(place):
        stored = read(place.store, name, Verification, place.repository)
        assert not any("k1" in f.what or "k3" in f.what for f in stored.findings)
    earlier = scene.commands.json("verify", str(first), *at_source)
    assert "deleted-since" in _codes(earlier), "at that cut they were there"
    assert earlier["deleted_keys"] == []
    cured = _back_up(scene, topic)["id"]
    after = scene.commands.json("verify", str(cured), *at_source)
    assert not {"deleted-keys-return", "deleted-since"} & _codes(after)
    assert after["level"] == "source"
    scene.commands.error("verify", str(wrong), "--level", "data", "--show-keys", code=40)


@pytest.mark.parametrize("bound", ["time", "density"])
def test_a_proven_run_fetches_new_bytes_only(scene: Scene, bound: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Not the archived part of the log once more."""
    retention = "600000" if bound == "time" else "100"
    lag = {"min_compaction_lag_ms": "600000", "max_compaction_lag_ms": "9223372036854775807"}
    topic = _topic(scene, f"fetched-{bound}", delete_retention_ms=retention, **(lag if bound == "density" else {}))
    topic.put({b"k%d" % n: os.urandom(2_000) for n in range(300)})
    if bound == "time":
        topic.put({b"k%d" % n: os.urandom(2_000) for n in range(20)})
        topic.clean(lambda records: not any(offset < 20 for offset in records))
    _back_up(scene, topic)
    topic.put({b"n%d" % n: os.urandom(2_000) for n in range(50)})
    if bound == "time":
        topic.put({b"n%d" % n: os.urandom(2_000) for n in range(10)})
        topic.clean(lambda records: sum(r.key == b"n0" for r in records.values()) == 1)
    received, fetched = WireFetchConnection.receive, list[int]()

    def counted(connection: WireFetchConnection) -> memoryview:
        frame = received(connection)
        fetched.append(len(frame))
        return frame

    monkeypatch.setattr(WireFetchConnection, "receive", counted)
    engine = _ActsAfter("", lambda: None)
    done = _run_with(scene, topic, engine)
    assert "compare deletions" not in engine.seen
    new = done.entry.summary.new_bytes
    again = 50_000  # the last archived batch is compared, and each answer has a header
    assert 0 <= sum(fetched) - new < again, (fetched, new)
