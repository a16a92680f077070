"""A real standalone Spark cluster: a master and workers on this machine, from the pip package, with a secret."""

import os
import secrets
import socket
import sys
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field
from pathlib import Path

from logkeep.embedded.ports import free_ports
from logkeep.embedded.process import ServerProcess
from logkeep.engine.spark.jvm.jars import spark_home
from logkeep.engine.spark.jvm.processes import descendants, kill_all
from logkeep.model.cache import archive_dir, cache_dir
from tests.docs.pages import fences
from tests.support.processes import PATIENCE_S, ROOT

_SMALL = "-XX:TieredStopAtLevel=1 -XX:+UseSerialGC -XX:-UsePerfData"


@dataclass
class SparkCluster:
    """`secret` is empty for a cluster without authentication."""

    url: str
    directory: Path
    secret: str
    workers: list[ServerProcess] = field(default_factory=list)

    @property
    def secret_file(self) -> Path:
        return self.directory / "secret"

    @property
    def conf(self) -> list[str]:
        """What a driver on this machine needs besides the secret."""
        return [
            "spark.driver.host=127.0.0.1",
            "spark.executor.memory=512m",
            f"spark.executor.extraJavaOptions={_java_options()}",
        ]

    @property
    def flags(self) -> list[str]:
        """Of a command that runs on this cluster."""
        settings = [word for pair in self.conf for word in ("--spark-conf", pair)]
        named = ["--spark-secret-file", str(self.secret_file)] if self.secret else []
        return ["--master", self.url, *settings, *named]

    @property
    def variables(self) -> dict[str, str]:
        """Of a command that runs on this cluster."""
        return {"PYSPARK_PYTHON": sys.executable}

    def applications(self) -> set[str]:
        """Every application that had an executor here."""
        return {each.name for each in self.directory.glob("worker*/app-*")}

    def kill_worker(self, number: int) -> None:
        """As when its host is lost: the worker, its executors and their Python processes."""
        worker = self.workers[number]
        if worker.pid is not None:
            family = descendants(worker.pid)
            worker.kill()
            kill_all(family)

    def families(self) -> list[list[int]]:
        """Of each worker: itself, its executors and their Python processes."""
        pids = [worker.pid for worker in self.workers if worker.pid is not None]
        return [[pid, *(each.pid for each in descendants(pid))] for pid in pids]


@contextmanager
def spark_cluster(
    directory: Path, *, workers: int = 2, cores: int = 1, secure: bool = True, hidden: Path | None = None
) -> Iterator[SparkCluster]:
    """Runs until the block ends. The last worker finds `hidden` empty, as on a host that does not mount it."""
    (port,) = free_ports(1)
    cluster = SparkCluster(f"spark://127.0.0.1:{port}", directory, secrets.token_hex(16) if secure else "")
    properties = _properties(cluster)
    with ExitStack() as stack:
        arguments = ["--host", "127.0.0.1", "--port", str(port), "--webui-port", "0", *properties]
        server = stack.enter_context(_daemon("master.Master", arguments, directory / "master"))
        server.wait_until(lambda: _listens(port), PATIENCE_S)
        for number in range(workers):
            work = directory / f"worker{number}"
            size = ["--cores", str(cores), "--memory", f"{cores}g", "--webui-port", "0", "--work-dir", str(work)]
            arguments = ["--host", "127.0.0.1", *size, *properties, cluster.url]
            blind = hidden if number == workers - 1 else None
            cluster.workers.append(stack.enter_context(_daemon("worker.Worker", arguments, work, blind)))
        yield cluster


def _properties(cluster: SparkCluster) -> list[str]:
    """As the guide says: the secret is in a file that only its owner can read, not in an argument."""
    if not cluster.secret:
        return []
    cluster.secret_file.touch(mode=0o600)
    cluster.secret_file.write_text(f"{cluster.secret}\n")
    file = cluster.directory / "cluster.conf"
    file.touch(mode=0o600)
    file.write_text(_guide_properties().replace("SECRET", cluster.secret))
    return ["--properties-file", str(file)]


def _guide_properties() -> str:
    """The file of a master and its workers, as the guide prints it."""
    page = (ROOT / "docs" / "guides" / "spark-clusters.md").read_text()
    (found,) = [fence.body for fence in fences(page) if "spark.authenticate.secret" in fence.body]
    return found


@contextmanager
def _daemon(name: str, arguments: list[str], directory: Path, hidden: Path | None = None) -> Iterator[ServerProcess]:
    variables = {"SPARK_HOME": spark_home(), "SPARK_DAEMON_MEMORY": "256m"}
    variables |= {"PYTHONPATH": os.pathsep.join((str(ROOT / "src"), str(ROOT)))}
    variables |= {"SPARK_LOG_DIR": directory, "SPARK_LOCAL_DIRS": directory, "SPARK_NO_DAEMONIZE": "1"}
    variables |= {"SPARK_DAEMON_JAVA_OPTS": _java_options(), "SPARK_LAUNCHER_OPTS": _SMALL}
    empty = ["unshare", "-rm", "sh", "-ec", 'mount -t tmpfs none "$0"; exec "$@"', str(hidden)] if hidden else []
    command = [*empty, "env", *(f"{key}={value}" for key, value in variables.items())]
    command += [str(spark_home() / "bin" / "spark-class"), f"org.apache.spark.deploy.{name}", *arguments]
    server = ServerProcess(name, command, directory / f"{name}.log", cwd=directory).start()
    try:
        yield server
    finally:
        server.stop()


def _java_options() -> str:
    """The driver's class archive suits the master, workers and executors too: all have the same jars."""
    found = archive_dir(cache_dir(os.environ, Path.home())).glob("spark-*.jsa")
    archives = sorted(found, key=lambda archive: archive.stat().st_mtime)
    return " ".join([_SMALL, *(f"-XX:SharedArchiveFile={archive} -Xlog:cds*=off" for archive in archives[-1:])])


def _listens(port: int) -> bool:
    with socket.socket() as probe:
        return probe.connect_ex(("127.0.0.1", port)) == 0
