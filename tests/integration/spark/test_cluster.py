"""A driver that a real standalone cluster with a secret does not admit; `test_every_verb` has one that it admits."""

import json
import os
import sys
from pathlib import Path
from typing import Any

import pytest

from logkeep.model.cache import cache_dir
from tests.support.processes import PATIENCE_S, program
from tests.support.servers.spark_cluster import SparkCluster

pytestmark = pytest.mark.xdist_group("spark-cluster")


def _units(cluster: SparkCluster, task: str, tmp_path: Path, secret: Path) -> dict[str, Any]:
    traces = tmp_path / "traces"
    traces.mkdir(exist_ok=True)
    cache = cache_dir(os.environ, Path.home())
    words = ["tests.integration.spark.engine_program", task, "2", str(cache), str(traces), cluster.url]
    with program([*words, *cluster.conf], tmp_path, PYSPARK_PYTHON=sys.executable, SECRET_FILE=str(secret)) as run:
        output, errors = run.communicate(timeout=PATIENCE_S)
    assert errors == "", output
    answer: dict[str, Any] = json.loads(output)
    return answer


@pytest.mark.soak
def test_a_driver_with_another_secret_does_not_get_in(cluster: SparkCluster, tmp_path: Path) -> None:
    wrong = tmp_path / "wrong"
    wrong.write_text("another secret")
    answer = _units(cluster, "echo", tmp_path, wrong)
    assert answer["error"] in {"engine-unavailable", "task-failed"}, answer
