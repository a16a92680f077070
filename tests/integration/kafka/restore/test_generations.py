"""A compacted topic on a real broker is copied anew beside its active copy, and one backup switches all partitions."""

from typing import Any

import pytest

from tests.integration.kafka.restore.scene import Scene
from tests.support.kafka.cleaned_topics import CONFIG, TICK
from tests.support.kafka.consumer_view import seen
from tests.support.processes import wait_for

pytestmark = pytest.mark.xdist_group("kafka-restore")

NAME, PARTITIONS, ROUNDS = "renewed", 3, 8
COORDINATION = "_compacted_log_backup_coordination"
_EVENTS = ("--coordination-topic", COORDINATION, "--instance", "a")


class _Topic:
    """Three partitions; a key stays in its partition."""

    def __init__(self, scene: Scene) -> None:
        self.scene, self._ticks = scene, 0
        self._producer = scene.topics.producer()
        scene.topics.create(NAME, PARTITIONS, CONFIG)

    def put(self, value: bytes | None, *numbers: int) -> None:
        for number in numbers:
            self._producer.produce(NAME, value, b"k%d" % number, number % PARTITIONS)
        assert self._producer.flush(30) == 0

    def tick(self) -> None:
        self._ticks += 1
        for partition in range(PARTITIONS):
            self._producer.produce(NAME, b"now", TICK + b"%d" % self._ticks, partition)
        assert self._producer.flush(30) == 0

    def cleaned(self, count: int) -> None:
        """Until the cleaner has left at most so many records with one of our keys."""

        def done() -> bool:
            self.tick()
            return sum(not _is_tick(r) for p in range(PARTITIONS) for r in _records(self.scene, NAME, p)) <= count

        wait_for(done, "the cleaner")


def _is_tick(record: Any) -> bool:
    return bool(record.key.startswith(TICK))


def _records(scene: Scene, name: str, partition: int, *, target: bool = False) -> list[Any]:
    return list(seen((scene.target if target else scene.kafka).bootstrap, name, partition).values())


def _latest(scene: Scene, name: str, *, target: bool = False) -> dict[bytes, bytes]:
    table: dict[bytes, bytes | None] = {}
    for partition in range(PARTITIONS):
        for record in _records(scene, name, partition, target=target):
            table[record.key] = record.value
    return {key: value for key, value in table.items() if value is not None and not key.startswith(TICK)}


def _back_up(scene: Scene, topic: _Topic, *more: str) -> dict[str, Any]:
    topic.tick()
    where = ("--bootstrap-servers", scene.kafka.bootstrap, "--source", "prod", "--topics", NAME)
    return scene.commands.json("kafka", "backup", *where, "--catch-up-bytes", "400", *_EVENTS, *more)


def _rows(scene: Scene) -> list[dict[str, Any]]:
    rows: list[dict[str, Any]] = scene.commands.json("kafka", "generations")["generations"]
    return rows


def _states(scene: Scene) -> set[tuple[int, str]]:
    return {(row["number"], row["state"]) for row in _rows(scene)}


def _restored(scene: Scene, backup: object) -> dict[bytes, bytes]:
    scene.restore(str(backup), "--rename", f"s/^/{backup}-/")
    return _latest(scene, f"{backup}-{NAME}", target=True)


def test_a_cycle(scene: Scene) -> None:
    topic, commands = _Topic(scene), scene.commands
    scene.topics.create(COORDINATION, 1, {})
    for value in (b"one", b"two", b"three"):
        topic.put(value, *range(60))
    first = _back_up(scene, topic)["id"]
    topic.put(None, *range(30, 60))
    topic.cleaned(30)
    planned = commands.json("kafka", "generations", "new", "--topics", NAME, "--dry-run")
    assert [(g["topic"], g["number"], g["under_way"]) for g in planned["generations"]] == [(NAME, 1, False)]
    assert _states(scene) == {(0, "Active")}, "a dry run changes nothing"
    commands.json("kafka", "generations", "new", "--topics", NAME)
    assert _states(scene) == {(0, "Active"), (1, "Catch-up")}
    beside = _back_up(scene, topic)
    assert beside["catch_up"].startswith("renewed, generation 1: ")
    (again,) = commands.json("kafka", "generations", "new", "--topics", NAME)["generations"]
    assert again["under_way"], "one that is under way is left as it is"
    assert _records(scene, COORDINATION, 0) == []
    reports = [beside]
    while (1, "Active") not in _states(scene):
        assert len(reports) < ROUNDS, "the catch-up never became active"
        reports.append(_back_up(scene, topic))
    last = reports[-1]
    assert "new-generation" in {f["code"] for f in last["findings"]}
    assert _states(scene) == {(0, "Passive"), (1, "Active")}
    passive = [row for row in _rows(scene) if row["state"] == "Passive"]
    active = [row for row in _rows(scene) if row["state"] == "Active"]
    assert [len(passive), len(active)] == [PARTITIONS, PARTITIONS], "one commit switches all partitions"
    assert {i for row in passive for i in row["needed_by"]} == {first, *(r["id"] for r in reports[:-1])}
    assert sum(r["stored_bytes"] for r in active) < sum(r["stored_bytes"] for r in passive)
    events = _records(scene, COORDINATION, 0)
    assert [(r.key, r.value[:12]) for r in events] == [
        (NAME.encode(), bytes([kind]) + b"\x02a\x0erenewed" + bytes([2 * partition]))
        for kind in (2, 0)
        for partition in range(PARTITIONS)
    ], "PASSIVATE, then ACTIVATE, after the commit"
    kept = {b"k%d" % number: b"three" for number in range(30)}
    assert _restored(scene, last["id"]) == kept == _latest(scene, NAME)
    assert _restored(scene, beside["id"]) == kept, "the active generation went on meanwhile"
    assert len(_restored(scene, first)) == 60, "at that cut they were there"
    commands.json("verify", str(last["id"]), "--level", "records")
    commands.json("prune", "--keep-last", "1", "--yes")
    assert _states(scene) == {(1, "Active")}


def test_what_cannot_have_a_generation_is_refused(scene: Scene) -> None:
    scene.topics.create("by-age", 1, {"cleanup.policy": "delete"})
    scene.back_up("by-age")
    commands = scene.commands
    assert "not compacted" in commands.error("kafka", "generations", "new", "--topics", "by-age", code=40)
    assert "no topic matches" in commands.error("kafka", "generations", "new", "--topics", "nothing", code=40)
    assert "no topic is named" in commands.error("kafka", "generations", "new", code=40)
    assert _rows(scene) == []
    alone = ("kafka", "backup", "--bootstrap-servers", scene.kafka.bootstrap, "--standby")
    assert "--standby is for runs with --follow" in commands.error(*alone, code=40)
