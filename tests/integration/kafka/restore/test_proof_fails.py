"""What must not be believed: others who meddle while a restore runs, and archives that are damaged. Exit 30, or 10."""

import json
from collections.abc import Callable
from typing import Any

import pytest
from confluent_kafka import TopicPartition

from logkeep.formats.kafka.batches import walk
from logkeep.kafka.logs import archived
from logkeep.kafka.restore import write as writing_logs
from logkeep.kafka.restore.replay import task
from tests.integration.kafka.restore.scene import Scene, group_positions, positions, read, troubles, write
from tests.support.kafka.client_view_of_configs import own_configs, topic_names
from tests.support.kafka.group_topic import commit
from tests.support.kafka.topic_matrix import Matrix
from tests.support.processes import wait_for

pytestmark = pytest.mark.xdist_group("kafka-restore")
RECORDS = [f"{i}" for i in range(20)]


@pytest.fixture
def backed(scene: Scene) -> Scene:
    """One topic of two partitions, and a group that reads it."""
    name = f"proof-{scene.repo.home.parent.name}"[:60]
    scene.topics.create(name, 2, {"retention.ms": "86400000000"})
    for partition in (0, 1):
        write(scene.topics, name, RECORDS, partition)
    commit(scene.kafka.bootstrap, "provers", {(name, 0): 5, (name, 1): 20})
    scene.back_up(name)
    return scene


def _before(monkeypatch: pytest.MonkeyPatch, module: Any, name: str, meddle: Callable[[], None]) -> None:
    """Somebody meddles the first time before the product does something."""
    usual, done = getattr(module, name), list[bool]()

    def meddled(*arguments: Any, **named: Any) -> Any:
        if not done:
            done.append(True)
            meddle()
        return usual(*arguments, **named)

    monkeypatch.setattr(module, name, meddled)


def _failed(scene: Scene, topic: str, *more: str) -> dict[str, Any]:
    """It ends with 30; configs stay temporary, groups where they were, and the receipt says so."""
    before = positions(scene.target)
    done = scene.restore("--rename", f"s/.*/{topic}/", *more, code=30)
    assert done["verdict"] == "failed"
    assert own_configs(scene.target, topic)["retention.ms"] == "-1", "it has its own configs already"
    assert positions(scene.target) == before
    (row,) = scene.commands.json("receipts", "list")["restores"]
    assert (row["id"], row["state"]) == (done["restore"], "failed")
    return done


@pytest.mark.parametrize("offsets", ("preserve", "translate"))
def test_a_foreign_writer(backed: Scene, monkeypatch: pytest.MonkeyPatch, offsets: str) -> None:
    """It writes before the first record of ours: partition and offset are named, and nothing stands behind it."""
    scene, topic = backed, f"foreign-{offsets}"
    meddler = Matrix(scene.target)
    with monkeypatch.context() as patched:
        _before(patched, writing_logs, "replay", lambda: write(meddler, topic, ["foreign"], 1))
        done = _failed(scene, topic, "--offsets", offsets)
    (finding,) = troubles(done)
    assert (finding["code"], finding["where"]) == ("foreign-writer", f"{topic}/1")
    assert "the log ends at 1" in finding["what"], finding
    assert read(scene.target, topic, 1) == ["foreign"]
    assert read(scene.target, topic, 0) == RECORDS
    again = scene.restore("--resume", str(done["restore"]), code=30)
    assert [f["where"] for f in troubles(again)] == [f"{topic}/1"]
    scene.commands.json(
        "kafka", "restore", "abort", str(done["restore"]), "--bootstrap-servers", scene.target.bootstrap, "--yes"
    )
    wait_for(lambda: topic not in topic_names(scene.target), "the broker to hear of it")


def test_records_taken_away_before_they_are_compared(backed: Scene, monkeypatch: pytest.MonkeyPatch) -> None:
    scene, meddler = backed, Matrix(backed.target)

    def meddle() -> None:
        for future in meddler.admin.delete_records([TopicPartition("shortened", 0, 7)]).values():
            future.result(30)

    with monkeypatch.context() as patched:
        _before(patched, task, "prove", meddle)
        done = _failed(scene, "shortened", "--offsets", "translate")
    (finding,) = troubles(done)
    assert (finding["code"], finding["where"]) == ("proof-failed", "shortened/0")
    assert "the log begins at offset 7 instead of 0" in finding["what"]
    states = {p["partition"]: p["outcome"] for p in done["partitions"]}
    assert states == {0: "proof-failed", 1: "done"}
    shown = scene.commands.json("receipts", "show", str(done["restore"]))
    assert {p["partition"]: p["outcome"] for p in shown["partitions"]} == states


def test_a_damaged_archive(backed: Scene) -> None:
    """One bit of a record: the object is named, the other partition comes back, and nothing is called good."""
    scene = backed
    path = scene.repo.file("sources/prod/topics/*/*/partition=1/*.log")
    data = bytearray(path.read_bytes())
    data[-3] ^= 1
    path.chmod(0o644)
    path.write_bytes(data)
    done = _failed(scene, "damaged")
    (finding,) = troubles(done)
    assert (finding["code"], finding["where"]) == ("archive-damaged", "damaged/1")
    assert path.name in finding["what"], finding
    assert read(scene.target, "damaged", 0) == RECORDS
    assert set(read(scene.target, "damaged", 1)) <= set(RECORDS)
    # As soon as a verification has seen it, a restore does not even begin.
    scene.commands.json("verify", "--level", "data", code=10)
    assert "found this backup damaged" in scene.refused("--rename", "s/.*/never/", code=10)


@pytest.mark.parametrize("hashed", (True, False), ids=("small", "large"))
def test_an_archived_batch_under_another_offset(backed: Scene, monkeypatch: pytest.MonkeyPatch, hashed: bool) -> None:
    """One bit that no CRC-32C covers: the last batch seems to stand behind the end, and must not be left out."""
    scene, topic = backed, f"another-offset-{'small' if hashed else 'large'}"
    if not hashed:
        monkeypatch.setattr(archived, "HASHED_BYTES", 0)
    path = scene.repo.file("sources/prod/topics/*/*/partition=1/*.log")
    data = bytearray(path.read_bytes())
    data[int(walk(bytes(data)).batches.positions[-1]) + 3] ^= 1
    path.chmod(0o644)
    path.write_bytes(data)
    (finding,) = troubles(_failed(scene, topic))
    assert (finding["code"], finding["where"]) == ("archive-damaged", f"{topic}/1")
    assert path.name in finding["what"], finding
    assert read(scene.target, topic, 0) == RECORDS
    assert read(scene.target, topic, 1) == []


def test_an_object_that_is_gone(backed: Scene) -> None:
    """It is missed before anything is made, by a dry run too."""
    scene = backed
    path = scene.repo.file("sources/prod/topics/*/*/partition=0/*.log")
    path.unlink()
    for more in ((), ("--dry-run",)):
        said = scene.refused("--rename", "s/.*/object-gone/", *more, code=10)
        assert path.name in said
    # Without what is lost it may begin.
    assert scene.restore("--rename", "s/.*/object-left/", "--partitions", "1")["verdict"] == "proven"


def test_groups_are_set_when_the_trouble_is_mended(backed: Scene) -> None:
    """An object comes back from elsewhere, and --resume ends what was begun."""
    scene = backed
    path = scene.repo.file("sources/prod/topics/*/*/partition=0/*.log")
    kept = path.read_bytes()
    path.chmod(0o644)
    path.write_bytes(kept[:-3] + bytes([kept[-3] ^ 1]) + kept[-2:])
    done = _failed(scene, "mended")
    path.write_bytes(kept)
    again = scene.restore("--resume", str(done["restore"]))
    assert (again["verdict"], again["group_names"]) == ("proven", ["provers"])
    assert [read(scene.target, "mended", p) for p in (0, 1)] == [RECORDS, RECORDS]
    found = {
        p: offset for (topic, p), (offset, _) in group_positions(scene.target, "provers").items() if topic == "mended"
    }
    assert found == {0: 5, 1: 20}


@pytest.mark.parametrize("offsets", ("preserve", "translate"))
def test_records_that_went_after_the_end(backed: Scene, offsets: str) -> None:
    """Retention works on what was restored: a comparison finds that, and the restore stays what it was."""
    scene, topic = backed, f"aged-{offsets}"
    done = scene.restore("--rename", f"s/.*/{topic}/", "--offsets", offsets)
    restore = str(done["restore"])
    meddler = Matrix(scene.target)
    for future in meddler.admin.delete_records([TopicPartition(topic, 0, 3)]).values():
        future.result(30)
    again = scene.restore("--resume", restore, code=30)
    assert (again["verdict"], [f["where"] for f in troubles(again)]) == ("changed", [f"{topic}/0"])
    said = scene.commands.say(*scene.restore_words("--resume", restore, "--yes"))
    assert "had succeeded" in said.out
    assert "abort" not in said.out
    (row,) = scene.commands.json("receipts", "list")["restores"]
    assert (row["state"], row["changed"] is not None) == ("proven", True)
    shown = scene.commands.json("receipts", "show", restore)
    assert [p["outcome"] for p in shown["partitions"]] == ["done", "done"]
    assert {p["partition"]: p["outcome"] for p in shown["compared_again"]["partitions"]} == {
        0: "proof-failed",
        1: "done",
    }
    words = ("kafka", "groups", "restore", restore, "--bootstrap-servers", scene.target.bootstrap, "--dry-run")
    rows = json.loads(scene.commands.say(*words, "--json").out)["positions"]
    assert {r["partition"]: r["offset"] for r in rows if r["topic"] == topic} == {0: 5, 1: 20}
