"""Ctrl-C and SIGTERM, sent to a real process whose workers are deaf: it ends within 8 s and leaves nothing behind."""

import os
import signal
from importlib import metadata
from pathlib import Path

import pytest

from logkeep.engine.spark.jvm.class_archive import class_archive
from logkeep.engine.spark.jvm.jars import spark_home
from logkeep.engine.spark.jvm.java import find_java
from logkeep.engine.spark.jvm.processes import descendants
from logkeep.model.cache import archive_dir, cache_dir
from tests.support.processes import files_below, program, wait_for

pytestmark = pytest.mark.xdist_group("spark")
PROMISE_S = 8


@pytest.mark.parametrize(
    ("number", "exit_code"), ((signal.SIGINT, 130), pytest.param(signal.SIGTERM, 143, marks=pytest.mark.soak))
)
def test_a_signal_ends_everything_although_workers_hang(number: int, exit_code: int, tmp_path: Path) -> None:
    traces = tmp_path / "traces"
    traces.mkdir()
    cache = cache_dir(os.environ, Path.home())
    arguments = ["tests.integration.spark.engine_program", "hang_in_c", "5", str(cache), str(traces)]
    with program(arguments, tmp_path, true_start=True) as run:
        wait_for(lambda: len(list(traces.iterdir())) == 2 or run.poll() is not None, "both workers to hang")
        family = descendants(run.pid)
        run.send_signal(number)
        output, errors = run.communicate(timeout=PROMISE_S)
        assert (run.returncode, errors) == (exit_code, "")
        assert '"error"' in output
        assert [process for process in family if process.alive] == []
    assert len(family) >= 4  # the JVM, the daemon, two workers
    assert len(list(traces.iterdir())) == 2  # no new unit was started
    assert [files_below(tmp_path / name) for name in ("home", "work", "tmp")] == [[], [], []]


def test_a_signal_while_the_jvm_starts_ends_it_and_blames_nobody(tmp_path: Path) -> None:
    cache = tmp_path / "cache"
    _place_archive(cache)
    archives = files_below(cache / "classes")
    arguments = ["tests.integration.spark.engine_program", "echo", "5", str(cache), str(tmp_path)]
    with program(arguments, tmp_path, true_start=True) as run:
        wait_for(lambda: any("SparkSubmit" in _command(process.pid) for process in descendants(run.pid)), "the JVM")
        family = descendants(run.pid)
        run.send_signal(signal.SIGINT)
        _output, errors = run.communicate(timeout=PROMISE_S)
        assert (run.returncode, errors) == (130, "")
        wait_for(lambda: not any(process.alive for process in family), "the JVM to go", patience_s=PROMISE_S)
    assert [files_below(tmp_path / name) for name in ("home", "work", "tmp", "cache/logs")] == [[], [], [], []]
    assert files_below(cache / "classes") == archives


def _place_archive(cache: Path) -> None:
    """A class archive under the name that a start on this machine looks for; the JVM ignores what is in it."""
    directory = archive_dir(cache)
    home = spark_home()
    archive = class_archive(directory, find_java(os.environ), home, metadata.version("pyspark"), "test")
    archive.prepare()
    archive.file.write_bytes(b"not an archive")


def _command(pid: int) -> str:
    try:
        return Path(f"/proc/{pid}/cmdline").read_text()
    except OSError:
        return ""
