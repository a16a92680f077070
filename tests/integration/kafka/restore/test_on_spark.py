"""Backup, restore and drill on a local Spark: one session serves all phases of a command."""

from pathlib import Path

import pytest

from tests.integration.kafka.restore.scene import Scene, read, troubles, write

pytestmark = pytest.mark.xdist_group("kafka-restore")
_SPARK = ("--engine", "spark", "--parallel", "2")


def test_backup_restore_and_drill(scene: Scene) -> None:
    """The survey before a restore used to start a session, and the replay a second one, which Spark refuses."""
    topic = f"sparked-{Path(scene.repo.home).parent.name}"[:60]
    scene.topics.create(topic, 2)
    for partition, values in enumerate((["a", "b", "c"], ["d"])):
        write(scene.topics, topic, values, partition)
    where = ("--bootstrap-servers", scene.kafka.bootstrap, "--source", "prod", "--topics", topic)
    assert scene.commands.json("kafka", "backup", *where, *_SPARK)["new_offsets"] == 4
    target = ("--bootstrap-servers", scene.target.bootstrap)
    done = scene.commands.json("kafka", "restore", "latest", *target, *_SPARK, "--yes")
    assert (done["verdict"], done["records"], troubles(done)) == ("proven", 4, [])
    assert [read(scene.target, topic, partition) for partition in (0, 1)] == [["a", "b", "c"], ["d"]]
    drilled = scene.commands.json("drill", *target, *_SPARK)
    assert (drilled["verdict"], drilled["records"]) == ("proven", 4)
