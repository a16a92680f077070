"""A restore that another process is carrying out is not called interrupted."""

import subprocess
import sys

import pytest

from tests.integration.kafka.restore.scene import Scene, write
from tests.support.kafka.topic_matrix import Matrix

pytestmark = pytest.mark.xdist_group("kafka-restore")
BEGIN = """
import sys
from logkeep.model.time import random_token, utc_now
from logkeep.repository.restores import NewRestore, RestoreTargetRef
from logkeep.repository.restores.stored import StoredRestore
from tests.support.cli.filled_repository import Filled
from pathlib import Path

place = Filled(Path(sys.argv[1])).place()
new = NewRestore(int(sys.argv[2]), "kafka", RestoreTargetRef(cluster_id="c"), b"{}", {})
print(StoredRestore.begin(place, new, utc_now, random_token).id, flush=True)
sys.stdin.read()
"""


def test_a_running_restore_and_one_whose_process_is_gone(scene: Scene) -> None:
    write(scene.topics, scene.topics.create("carried-out"), ["1"])
    backup = scene.back_up("carried-out")
    write(Matrix(scene.target), Matrix(scene.target).create("carried-out"), ["there"])
    command = [sys.executable, "-c", BEGIN, str(scene.repo.home), str(backup)]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as other:
        assert other.stdout is not None
        assert other.stdin is not None
        restore_id = other.stdout.readline().strip()
        running = scene.commands.error(*scene.restore_words("latest", "--yes"), code=31)
        other.stdin.close()
    gone = scene.commands.error(*scene.restore_words("latest", "--yes"), code=31)
    assert f"Restore {restore_id} is running (process {other.pid} on " in running
    assert "--resume" not in running
    assert "interrupted" not in running
    assert f"Restore {restore_id} was interrupted" in gone
    assert f"--resume {restore_id}" in gone
