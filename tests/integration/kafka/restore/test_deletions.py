"""Keys that were deleted at the source, whose tombstones the cleaner removed before a backup could read them."""

from typing import Any

import pytest

from tests.integration.kafka.restore.scene import Scene
from tests.support.kafka.cleaned_topics import CleanedTopic, latest, transaction

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


def _back_up(scene: Scene, topic: CleanedTopic, *more: str, code: int = 0) -> dict[str, Any]:
    topic.tick()
    where = ("--bootstrap-servers", scene.kafka.bootstrap, "--source", "prod", "--topics", topic.name)
    return scene.commands.json("kafka", "backup", *where, *more, code=code)


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
    (line,) = _back_up(scene, topic, "--dry-run")["to_compare"]
    assert line.startswith("deleted/0, about ")
    second = _back_up(scene, topic)["id"]
    third = _back_up(scene, topic)["id"]
    kept = {b"k0": b"value 0"}
    for offsets in ("preserve", "translate"):
        assert _restored(scene, "deleted", third, offsets) == kept
    assert _restored(scene, "deleted", second) == kept
    assert len(_restored(scene, "deleted", first)) == 60, "at that cut they were there"
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


def test_transactions_whose_markers_are_gone(scene: Scene) -> None:
    """A tombstone in a transaction that is open at the cut, and an aborted value: both end between two backups."""
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
    _back_up(scene, topic, "--accept-deletions", "emptied")
    assert _restored(scene, "emptied") == {}


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
    _back_up(scene, topic)
    scene.restore("latest", "--rename", "s/^/again-/")
    assert latest(scene.target.bootstrap, "again-in-time") == {b"k1": b"value 1", b"k3": b"value 3"}
