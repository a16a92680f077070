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
        answer = _units(cluster, "meet_and_report", tmp_path, cluster.secret_file)
    assert len(set(answer["pids"])) == 2
    for package, surroundings in map(json.loads, answer["texts"]):
        assert Path(package).parent.parent.name == "logkeep.zip"
        directory, _mode, safe, paths = json.loads(surroundings)
        assert safe
        assert not {directory, ""} & set(paths), "a worker imports nothing from its directory"
    for process in (b"SparkSubmit", b"master.Master", b"worker.Worker", _EXECUTOR, b"pyspark.daemon"):
        assert any(process in line for line in seen), f"{process!r} was watched"
    assert not [line for line in seen if cluster.secret.encode() in line]


@pytest.mark.soak
def test_a_driver_with_another_secret_does_not_get_in(cluster: SparkCluster, tmp_path: Path) -> None:
    wrong = tmp_path / "wrong"
    wrong.write_text("another secret")
    answer = _units(cluster, "echo", tmp_path, wrong)
    assert answer["error"] in {"engine-unavailable", "task-failed"}, answer
