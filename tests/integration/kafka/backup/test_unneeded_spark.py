"""A Spark that starts in the background and is not needed: the work ends first, and nothing of the JVM is left."""

import json
import os
import signal
import sys
from pathlib import Path

import msgspec
import pytest

from logkeep.embedded.kafka import EmbeddedKafka
from logkeep.engine.spark.jvm.processes import RunningProcess, descendants
from logkeep.engine.speeds import EngineSpeeds
from logkeep.engine.speeds_file import this_machine
from logkeep.kafka.restore.write import write_label
from logkeep.model.cache import speeds_dir
from tests.support.cli.filled_repository import Filled
from tests.support.kafka.backup_steps import fill
from tests.support.kafka.topic_matrix import Matrix
from tests.support.processes import files_below, program, wait_for
from tests.support.servers.proxied_kafka import Shaky

pytestmark = pytest.mark.xdist_group("kafka-proxy")
PARTITIONS, RECORDS = 2, 3000


@pytest.fixture(scope="session")
def kafka(shaky: Shaky) -> EmbeddedKafka:
    return shaky.kafka


@pytest.fixture(scope="session")
def topics(shaky: Shaky) -> Matrix:
    return shaky.topics


def _slow_machine(cache: Path) -> None:
    """Speeds by which Spark pays for a few megabytes."""
    kind = f"file {write_label(prove=True)}"
    speeds = EngineSpeeds(this_machine(), 0.1, 0.1, {kind: 1e4}, {kind: 1e4})
    speeds_dir(cache).mkdir(mode=0o700, parents=True, exist_ok=True)
    (speeds_dir(cache) / "speeds.json").write_bytes(msgspec.json.encode(speeds))


def _jvms(pid: int) -> list[RunningProcess]:
    found = []
    for process in descendants(pid):
        try:
            binary, *words = Path(f"/proc/{process.pid}/cmdline").read_text().split("\0")
        except OSError:
            continue
        # Before it there are Spark's shell script and the launcher that makes its command: both have the class too.
        begun = binary.endswith("java") and "org.apache.spark.launcher.Main" not in words
        found += [process] if begun and "org.apache.spark.deploy.SparkSubmit" in words else []
    return found


def test_the_work_ends_before_spark_has_started(
    shaky: Shaky, kafka: EmbeddedKafka, topics: Matrix, repo: Filled, tmp_path: Path
) -> None:
    """The JVM is stopped in the middle of its start, so that the work ends first on every machine."""
    topic = fill(topics, "unneeded", PARTITIONS, RECORDS)
    repo.run("kafka", "backup", "--bootstrap-servers", kafka.bootstrap, "--source", "prod", "--topics", topic)
    _slow_machine(tmp_path / "home" / ".cache" / "logkeep")
    words = [
        *("kafka", "restore", "latest", "--source", "prod", "--repo", repo.url, "--bootstrap-servers", shaky.bootstrap),
        *("--rename", f"{topic}={topic}-restored", "--yes", "--confirm-cluster", kafka.cluster, "--json"),
    ]
    command = ["tests.support.adopting_program", sys.executable, "-m", "logkeep.cli", *words]
    shaky.sending.close_after(1 << 20)
    try:
        with program(command, tmp_path, true_start=True) as run:
            wait_for(lambda: bool(_jvms(run.pid)) or run.poll() is not None, "the JVM")
            assert run.poll() is None, run.communicate()
            (jvm,) = _jvms(run.pid)
            os.kill(jvm.pid, signal.SIGSTOP)
            wait_for(lambda: shaky.sending.closed or run.poll() is not None, "the work to be held")
            shaky.sending.open()
            output, errors = run.communicate()
    finally:
        shaky.sending.open()
    done = json.loads(output)
    # The script has a shell of its own, which the JVM that takes its place does not wait for: its adopter does.
    left = [process for process in done["left"] if process != "(bash) Z"]
    assert (done["code"], left, errors) == (0, [], ""), done
    restored = json.loads(done["out"])
    assert (restored["verdict"], [f["code"] for f in restored["findings"]]) == ("proven", [])
    assert not jvm.alive
    assert [files_below(tmp_path / name) for name in ("work", "tmp", "home/.cache/logkeep/logs")] == [[], [], []]
