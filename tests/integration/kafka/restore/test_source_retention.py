"""Archived topics are trimmed by their own retention, on a real broker that deletes: what it still has is archived."""

import time

import pytest

from tests.integration.kafka.restore.scene import Scene, bounds, read, set_config, stored, troubles
from tests.support.processes import wait_for

pytestmark = pytest.mark.xdist_group("kafka-restore")

_HOUR_MS = 3_600_000
_ROLLS = {"retention.ms": "-1", "segment.ms": "600000"}
"""Nothing is deleted yet; records of another hour begin another segment of the broker."""
_NOW = ("--grace", "0s", "--gc-age", "0s", "--gc-interval", "0s", "--yes")


def _write(scene: Scene, topic: str, name: str, count: int, hours_ago: float) -> None:
    producer, moment = scene.topics.producer(), int(time.time() * 1000 - hours_ago * _HOUR_MS)
    for i in range(count):
        producer.produce(topic, f"{name} {i}", partition=0, timestamp=moment + i)
    assert producer.flush(30) == 0


def _values(name: str, count: int) -> list[str]:
    return [f"{name} {i}" for i in range(count)]


def test_a_topic_with_a_short_retention_is_trimmed_and_its_neighbour_is_not(scene: Scene) -> None:
    commands = scene.commands
    for topic in ("hourly", "kept"):
        scene.topics.create(topic, 1, _ROLLS)
        _write(scene, topic, "old", 100, 3)
    first = scene.back_up("hourly", "kept")
    for topic in ("hourly", "kept"):
        _write(scene, topic, "young", 50, 0)
    second = scene.back_up("hourly", "kept")
    set_config(scene.kafka, "hourly", "retention.ms", str(_HOUR_MS))
    wait_for(lambda: bounds(scene.kafka, "hourly") == (100, 150), "the broker to delete its old segment")
    third = scene.back_up("hourly", "kept")
    commands.json("verify", str(second), "--level", "records")  # its digests are of a range that is trimmed later

    before = stored(scene.repo)
    waiting = commands.json("prune", "--source-retention", "--dry-run")
    assert {t["topic"]: t["trimmed"] for t in waiting["topics"]} == {"hourly": False, "kept": False}
    assert all("its retention is known since" in t["reason"] for t in waiting["topics"]), "no grace has passed"
    planned = commands.json("prune", "--source-retention", "--grace", "0s", "--dry-run")
    assert stored(scene.repo) == before
    verdicts = {t["topic"]: (t["trimmed"], t["reason"]) for t in planned["topics"]}
    assert verdicts["hourly"] == (True, f"1 partition: beyond 1h and below the log start of backup {third}")
    assert verdicts["kept"] == (False, "kept forever")
    done = commands.json("prune", "--source-retention", *_NOW)
    assert [t["id"] for t in done["trimmed"]] == [t["id"] for t in planned["trimmed"]] == [first, second]
    gone = {name for name in before if "/topics/" in name} - stored(scene.repo).keys()
    assert {name.split("/topics/")[1].split("/")[0] for name in gone} == {"hourly"}
    assert commands.json("prune", "--source-retention", *_NOW)["trimmed"] == []

    listed = {row["id"]: row for row in commands.json("list")["backups"]}
    assert [listed[i]["trimmed_records"] for i in (first, second, third)] == [100, 100, 0]
    assert [listed[i]["records"] for i in (first, second, third)] == [100, 200, 200]
    for backup in (first, second, third):
        commands.json("verify", str(backup), "--level", "records")
        codes = {f["code"] for f in commands.json("info", str(backup))["findings"]}
        assert ("trimmed" in codes) == (backup != third)

    for backup, expected in ((first, []), (second, _values("young", 50))):
        plan = commands.json(*scene.restore_words(str(backup), "--rename", f"s/$/-{backup}/", "--dry-run"), code=2)
        assert [f["code"] for f in troubles(plan)] == ["trimmed"]
        scene.restore(str(backup), "--rename", f"s/$/-{backup}/", "--offsets", "preserve", code=2)
        assert read(scene.target, f"hourly-{backup}") == expected
        assert read(scene.target, f"kept-{backup}") == _values("old", 100) + _values("young", 50)[: len(expected)]
    assert bounds(scene.target, f"hourly-{second}") == (100, 150)

    # Everything that the live topic holds is in the archive, also in the next backup, which continues a trimmed one.
    commands.json("delete", str(third), "--yes")
    _write(scene, "hourly", "later", 5, 0)
    latest = scene.back_up("hourly", "kept")
    commands.json("verify", str(latest), "--level", "source", "--bootstrap-servers", scene.kafka.bootstrap)
    scene.restore(str(latest), "--rename", "s/$/-live/", "--offsets", "preserve")
    for topic in ("hourly", "kept"):
        assert read(scene.target, f"{topic}-live") == read(scene.kafka, topic)
        assert bounds(scene.target, f"{topic}-live") == bounds(scene.kafka, topic)
