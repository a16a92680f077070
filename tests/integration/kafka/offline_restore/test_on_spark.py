"""The tasks of an offline restore in Spark's workers write the same bytes as in one process."""

import json
import os
from pathlib import Path

import pytest

from logkeep.model.cache import cache_dir
from tests.support.kafka.handmade_batches import dense
from tests.support.kafka.offline_restore import backed_up, made_target, offline, tree
from tests.support.processes import program

pytestmark = pytest.mark.xdist_group("spark")


@pytest.mark.soak
def test_the_same_bytes(tmp_path: Path) -> None:
    """With rolled segments; every day tests/integration/spark/test_every_verb.py compares the same on a cluster."""
    logs = {f"orders-{p}": [dense(base, 5, producer=p).encode() for base in range(p, p + 50, 5)] for p in range(3)}
    backed = backed_up(tmp_path, logs)
    here, there = made_target(tmp_path / "here", list(logs)), made_target(tmp_path / "there", list(logs))
    assert offline(backed.place, backed.backup, [here], segment_bytes=300).good
    cache = str(cache_dir(os.environ, Path.home()))
    module = "tests.integration.kafka.offline_restore.spark_restore"
    arguments = [module, str(tmp_path / "repository"), str(there), str(backed.backup), cache]
    with program(arguments, tmp_path) as run:
        said, complaint = run.communicate()
    assert run.returncode == 0, complaint
    assert json.loads(said) == {"good": True, "records": 150, "logs": 3}
    assert tree(there) == tree(here)
