"""Starting Spark: the class archive, what is left behind (nothing), and what users see when it cannot start."""

import json
import os
import shutil
import stat
from contextlib import closing
from importlib import metadata
from pathlib import Path

import pytest

from logkeep.engine.spark.engine import SparkEngine
from logkeep.engine.spark.jvm.class_archive import class_archive
from logkeep.engine.spark.jvm.jars import spark_home
from logkeep.engine.spark.jvm.java import find_java
from logkeep.engine.spark.settings import SparkSettings
from logkeep.errors import EngineUnavailable
from logkeep.model.cache import archive_dir, cache_dir
from tests.integration.spark import tasks as spark_tasks
from tests.support.processes import PATIENCE_S, files_below, program

pytestmark = pytest.mark.xdist_group("spark")


def _echo(cache: Path, directory: Path) -> list[str]:
    """Run the program in empty directories; the archives its JVM has mapped."""
    with program(
        ["tests.integration.spark.engine_program", "echo", "2", str(cache), "x", "local[1]"], directory
    ) as run:
        output, errors = run.communicate(timeout=2 * PATIENCE_S)
    assert (run.returncode, errors) == (0, "")
    answer = json.loads(output)
    assert answer["texts"] == ["unit 0", "unit 1"]
    assert [files_below(directory / name) for name in ("home", "work", "tmp")] == [[], [], []]
    mapped: list[str] = answer["mapped"]
    return mapped


@pytest.mark.timeout(1800)
@pytest.mark.parametrize("shared", [True, pytest.param(False, marks=pytest.mark.soak)], ids=["shared", "own"])
def test_the_class_archive_is_made_used_and_harmless_when_corrupt(tmp_path: Path, shared: bool) -> None:
    """To make one takes a minute: every day it is the one that the first start of Spark on this machine has made."""
    cache = cache_dir(os.environ, Path.home()) if shared else tmp_path / "cache"
    archive = _archive_in(cache)
    if not archive.exists():
        assert _echo(cache, tmp_path) == []
        assert [_mode(cache / name) for name in ("classes", "logs")] == [0o700, 0o700]
    assert _echo(cache, tmp_path) == [str(archive)]
    damaged = _archive_in(tmp_path / "damaged")
    damaged.parent.mkdir(mode=0o700, parents=True)
    shutil.copyfile(archive, damaged)
    with damaged.open("r+b") as file:
        file.seek(damaged.stat().st_size // 2)
        file.write(bytes(1_000_000))
    _echo(tmp_path / "damaged", tmp_path)
    assert list((tmp_path / "damaged" / "logs").iterdir()) == []
    assert [each.suffix for each in damaged.parent.iterdir()] == [".jsa"]


def _archive_in(cache: Path) -> Path:
    java, version = find_java(os.environ), metadata.version("pyspark")
    return class_archive(archive_dir(cache), java, spark_home(), version, "test").file


@pytest.mark.parametrize(
    ("script", "expected"),
    (
        (None, "JAVA_HOME does not contain a Java runtime (bin/java)"),
        ("echo 'openjdk version \"11.0.2\" 2019-01-15' >&2", "Java 11 is too old; Java 17 or later is needed"),
        ("exit 1", "it does not answer `-version` like a Java runtime"),
    ),
)
def test_java_that_is_missing_or_too_old_is_named(
    script: str | None,
    expected: str,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capfd: pytest.CaptureFixture[str],
) -> None:
    monkeypatch.setenv("JAVA_HOME", str(tmp_path))
    if script is not None:
        java = tmp_path / "bin" / "java"
        java.parent.mkdir()
        java.write_text(f"#!/bin/sh\n{script}\n")
        java.chmod(0o700)
    _expect_unavailable(SparkSettings(tmp_path / "cache"), expected)
    assert capfd.readouterr() == ("", "")


def test_a_failed_start_shows_its_cause_and_the_end_of_the_log(
    tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    settings = SparkSettings(tmp_path / "cache", "local[1]", {"spark.driver.extraJavaOptions": "-Xms9g"})
    files = len(list(Path("/proc/self/fd").iterdir()))
    error = _expect_unavailable(settings, "Spark did not start: Error occurred during initialization of VM")
    assert len(list(Path("/proc/self/fd").iterdir())) == files, "the pipe to the JVM is still open"
    (log,) = (tmp_path / "cache" / "logs").iterdir()
    assert str(log) in error.remedy
    assert (_mode(log), _mode(log.parent)) == (0o600, 0o700)
    assert error.__notes__[0] in log.read_text()
    assert capfd.readouterr() == ("", "")


def _mode(path: Path) -> int:
    return stat.S_IMODE(path.stat().st_mode)


def _expect_unavailable(settings: SparkSettings, what: str) -> EngineUnavailable:
    earlier = dict(os.environ)
    with closing(SparkEngine(settings)) as engine, pytest.raises(EngineUnavailable) as caught:
        engine.map(spark_tasks.echo, [spark_tasks.Unit(1)], spark_tasks.Answer, label="echo", weight=spark_tasks.weight)
    assert caught.value.what == what
    assert dict(os.environ) == earlier
    return caught.value
