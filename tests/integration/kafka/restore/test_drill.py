"""Drills: a whole restore to where it does no harm, its proof, and nothing left behind but the receipt."""

from typing import Any

import pytest

from logkeep.embedded.kafka import EmbeddedKafka
from logkeep.kafka.restore import write as writing_logs
from logkeep.kafka.restore.replay import task
from logkeep.reports.drill import SCRATCH
from tests.integration.kafka.restore.scene import Scene, positions, troubles, write
from tests.support.kafka.client_view_of_configs import topic_names
from tests.support.kafka.group_topic import commit
from tests.support.kafka.topic_matrix import Matrix
from tests.support.processes import wait_for

pytestmark = pytest.mark.xdist_group("kafka-restore")


@pytest.fixture
def backed(scene: Scene) -> Scene:
    name = f"drilled-{scene.repo.home.parent.name}"[:60]
    scene.topics.create(name, 2)
    write(scene.topics, name, ["a", "b", "c"])
    commit(scene.kafka.bootstrap, "drilled", {(name, 0): 1})
    scene.back_up(name)
    return scene


def _shown(scene: Scene, state: str) -> None:
    """`receipts`, `list` and `status` all tell of it."""
    (row,) = scene.commands.json("receipts", "list")["restores"]
    assert (row["drill"], row["state"]) == (True, state)
    (backup,) = scene.commands.json("list")["backups"]
    told = scene.commands.json("status", code=_anything(scene))["sources"][0]["last_restore"]
    assert backup["last_restore"] == told
    assert (told["id"], told["drill"], told["state"]) == (row["id"], True, state)


def _anything(scene: Scene) -> int:
    return scene.commands.say("status", "--json").code


def test_in_a_cluster(backed: Scene) -> None:
    """Scratch topics come and go; groups and topics of the cluster are left alone."""
    _wait_until_clean(backed.target)
    before = topic_names(backed.target), positions(backed.target)
    words = ("drill", "--bootstrap-servers", backed.target.bootstrap, "--engine", "inline")
    done = backed.commands.json(*words)
    assert (done["verdict"], done["topics"], done["records"], troubles(done)) == ("proven", 1, 3, [])
    _wait_until_clean(backed.target)
    assert (topic_names(backed.target), positions(backed.target)) == before
    _shown(backed, "proven")
    assert "a drill is not resumed" in backed.refused("--resume", str(done["restore"]), code=40)


def test_in_the_cluster_that_was_backed_up(backed: Scene) -> None:
    """It does no harm there either."""
    before = topic_names(backed.kafka), positions(backed.kafka)
    done = backed.commands.json("drill", "--bootstrap-servers", backed.kafka.bootstrap, "--engine", "inline")
    assert done["verdict"] == "proven"
    _wait_until_clean(backed.kafka)
    assert (topic_names(backed.kafka), positions(backed.kafka)) == before


def test_in_a_broker_of_its_own(backed: Scene) -> None:
    done = backed.commands.json("drill", "--embedded", "--engine", "inline")
    assert (done["verdict"], done["where"], done["records"]) == ("proven", "embedded broker", 3)
    assert done["seconds"] > 0
    _shown(backed, "proven")


def _wait_until_clean(kafka: EmbeddedKafka) -> None:
    """Brokers show a deleted topic for a while."""
    wait_for(lambda: not any(name.startswith(SCRATCH) for name in topic_names(kafka)), "the scratch topics to go")


def test_one_that_fails(backed: Scene, monkeypatch: pytest.MonkeyPatch) -> None:
    """Somebody writes into a scratch topic: 12, the place is named, and the topics go all the same."""
    _wait_until_clean(backed.target)
    usual, before = task.replay, topic_names(backed.target)

    def meddled(*arguments: Any) -> Any:
        (scratch,) = topic_names(backed.target) - before
        write(Matrix(backed.target), scratch, ["foreign"])
        return usual(*arguments)

    monkeypatch.setattr(writing_logs, "replay", meddled)
    done = backed.commands.json("drill", "--bootstrap-servers", backed.target.bootstrap, "--engine", "inline", code=12)
    assert (done["verdict"], [f["code"] for f in troubles(done)]) == ("failed", ["foreign-writer"])
    _wait_until_clean(backed.target)
    _shown(backed, "failed")


def test_a_damaged_archive(backed: Scene) -> None:
    path = backed.repo.file("sources/prod/topics/*/*/partition=0/*.log")
    data = path.read_bytes()
    path.chmod(0o644)
    path.write_bytes(data[:-3] + bytes([data[-3] ^ 1]) + data[-2:])
    done = backed.commands.json("drill", "--bootstrap-servers", backed.target.bootstrap, "--engine", "inline", code=12)
    assert path.name in troubles(done)[0]["what"]
    _wait_until_clean(backed.target)


def test_a_lost_object(backed: Scene) -> None:
    """The restore that it rehearses would not begin; a drill tells so with a receipt."""
    path = backed.repo.file("sources/prod/topics/*/*/partition=0/*.log")
    path.unlink()
    done = backed.commands.json("drill", "--bootstrap-servers", backed.target.bootstrap, "--engine", "inline", code=12)
    assert path.name in troubles(done)[0]["what"]
    _wait_until_clean(backed.target)
    _shown(backed, "failed")
