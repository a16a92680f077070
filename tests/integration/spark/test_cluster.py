"""A real standalone cluster of a master and two workers, with a secret; the package is shipped to it."""

import json
import os
import sys
from pathlib import Path
from typing import Any

import pytest

from logkeep.model.cache import cache_dir
from tests.support.command_lines import watched_command_lines
from tests.support.processes import PATIENCE_S, program
from tests.support.servers.spark_cluster import SparkCluster

pytestmark = pytest.mark.xdist_group("spark-cluster")
_EXECUTOR = b"CoarseGrainedExecutorBackend"


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


def test_units_run_on_two_workers_with_the_shipped_package_and_the_secret_is_in_no_argument(
    cluster: SparkCluster, tmp_path: Path
) -> None:
    with watched_command_lines() as seen:
        answer = _units(cluster, "meet", tmp_path, cluster.secret_file)
    assert len(set(answer["pids"])) == 2
    assert {Path(text).parent.parent.name for text in answer["texts"]} == {"logkeep.zip"}
    for process in (b"SparkSubmit", b"master.Master", b"worker.Worker", _EXECUTOR, b"pyspark.daemon"):
        assert any(process in line for line in seen), f"{process!r} was watched"
    assert not [line for line in seen if cluster.secret.encode() in line]


def test_workers_of_a_cluster_import_nothing_from_their_directory(cluster: SparkCluster, tmp_path: Path) -> None:
    answer = _units(cluster, "surroundings", tmp_path, cluster.secret_file)
    for directory, _mode, safe, paths in map(json.loads, answer["texts"]):
        assert safe
        assert not {directory, ""} & set(paths)


@pytest.mark.soak
def test_a_driver_with_another_secret_does_not_get_in(cluster: SparkCluster, tmp_path: Path) -> None:
    wrong = tmp_path / "wrong"
    wrong.write_text("another secret")
    answer = _units(cluster, "echo", tmp_path, wrong)
    assert answer["error"] in {"engine-unavailable", "task-failed"}, answer
