"""Backup, restore and drill on a local Spark: one session serves all phases of a command."""

from pathlib import Path

import pytest

from tests.integration.kafka.restore.scene import Scene, read, troubles, write

pytestmark = pytest.mark.xdist_group("kafka-restore")
_SPARK = ("--engine", "spark", "--parallel", "2")


@pytest.mark.parametrize("all_three", [False, pytest.param(True, marks=pytest.mark.soak)], ids=["restore", "all"])
def test_backup_restore_and_drill(scene: Scene, all_three: bool) -> None:
    """The survey before a restore used to start a session, and the replay a second one, which Spark refuses.

    Backup and drill each start a session of their own; tests/integration/spark/test_every_verb.py counts them too.
    """
    topic = f"sparked-{Path(scene.repo.home).parent.name}"[:60]
    scene.topics.create(topic, 2)
    for partition, values in enumerate((["a", "b", "c"], ["d"])):
        write(scene.topics, topic, values, partition)
    where = ("--bootstrap-servers", scene.kafka.bootstrap, "--source", "prod", "--topics", topic)
    engine = _SPARK if all_three else ("--engine", "inline")
    assert scene.commands.json("kafka", "backup", *where, *engine)["new_offsets"] == 4
    target = ("--bootstrap-servers", scene.target.bootstrap)
    done = scene.commands.json("kafka", "restore", "latest", *target, *_SPARK, "--yes")
    assert (done["verdict"], done["records"], troubles(done)) == ("proven", 4, [])
    assert [read(scene.target, topic, partition) for partition in (0, 1)] == [["a", "b", "c"], ["d"]]
    if all_three:
        drilled = scene.commands.json("drill", *target, *_SPARK)
        assert (drilled["verdict"], drilled["records"]) == ("proven", 4)
