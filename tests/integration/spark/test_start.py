"""Starting Spark: the class archive, what is left behind (nothing), and what users see when it cannot start."""

import json
import os
import stat
from contextlib import closing
from pathlib import Path

import pytest

from logkeep.engine.spark.engine import SparkEngine
from logkeep.engine.spark.settings import SparkSettings
from logkeep.errors import EngineUnavailable
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
def test_the_class_archive_is_made_used_and_harmless_when_corrupt(tmp_path: Path) -> None:
    cache = tmp_path / "cache"
    assert _echo(cache, tmp_path) == []
    (archive,) = (cache / "classes").iterdir()
    assert archive.suffix == ".jsa"
    assert [_mode(cache / name) for name in ("classes", "logs")] == [0o700, 0o700]
    assert _echo(cache, tmp_path) == [str(archive)]
    archive.chmod(0o600)
    with archive.open("r+b") as file:
        file.seek(archive.stat().st_size // 2)
        file.write(bytes(1_000_000))
    _echo(cache, tmp_path)
    assert list((cache / "logs").iterdir()) == []


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
