"""A real standalone cluster of a master and two workers, started from the pip package; the package is shipped to it."""

import json
import os
import socket
import sys
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path

import pytest

from logkeep.embedded.ports import free_ports
from logkeep.embedded.process import ServerProcess
from logkeep.engine.spark.jars import spark_home
from logkeep.model.cache import cache_dir
from tests.support.processes import PATIENCE_S, ROOT, program

pytestmark = pytest.mark.xdist_group("spark")


@contextmanager
def _daemon(name: str, arguments: list[str], directory: Path) -> Iterator[ServerProcess]:
    variables = {"SPARK_HOME": spark_home(), "SPARK_DAEMON_MEMORY": "256m", "PYTHONPATH": ROOT}
    variables |= {"SPARK_LOG_DIR": directory, "SPARK_LOCAL_DIRS": directory, "SPARK_NO_DAEMONIZE": "1"}
    variables |= {"SPARK_DAEMON_JAVA_OPTS": "-XX:TieredStopAtLevel=1 -XX:+UseSerialGC -XX:-UsePerfData"}
    command = ["env", *(f"{key}={value}" for key, value in variables.items())]
    command += [str(spark_home() / "bin" / "spark-class"), f"org.apache.spark.deploy.{name}", *arguments]
    server = ServerProcess(name, command, directory / f"{name}.log", cwd=directory).start()
    try:
        yield server
    finally:
        server.stop()


@pytest.fixture
def master(tmp_path: Path) -> Iterator[str]:
    (port,) = free_ports(1)
    url = f"spark://127.0.0.1:{port}"
    with ExitStack() as stack:
        arguments = ["--host", "127.0.0.1", "--port", str(port), "--webui-port", "0"]
        server = stack.enter_context(_daemon("master.Master", arguments, tmp_path))
        server.wait_until(lambda: _listens(port), PATIENCE_S)
        for number in (1, 2):
            work = tmp_path / f"worker{number}"
            work.mkdir()
            size = ["--cores", "1", "--memory", "1g", "--webui-port", "0", "--work-dir", str(work)]
            stack.enter_context(_daemon("worker.Worker", ["--host", "127.0.0.1", *size, url], work))
        yield url


def test_units_run_on_two_workers_with_the_shipped_package(master: str, tmp_path: Path) -> None:
    traces = tmp_path / "traces"
    traces.mkdir()
    cache = cache_dir(os.environ, Path.home())
    conf = ["spark.executor.memory=512m", "spark.driver.host=127.0.0.1"]
    conf += ["spark.executor.extraJavaOptions=-XX:TieredStopAtLevel=1 -XX:+UseSerialGC"]
    arguments = ["tests.integration.spark.engine_program", "meet", "2", str(cache), str(traces), master, *conf]
    with program(arguments, tmp_path, PYSPARK_PYTHON=sys.executable) as run:
        output, errors = run.communicate(timeout=PATIENCE_S)
    assert (run.returncode, errors) == (0, ""), output
    answer = json.loads(output)
    assert len(set(answer["pids"])) == 2
    assert {Path(text).parent.parent.name for text in answer["texts"]} == {"logkeep.zip"}


def _listens(port: int) -> bool:
    with socket.socket() as probe:
        return probe.connect_ex(("127.0.0.1", port)) == 0
