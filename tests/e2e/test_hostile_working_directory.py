"""Commands in a directory where another user left files: none of them is imported by Spark's processes."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

from logkeep.model.cache import cache_dir
from tests.support.cli.filled_repository import Filled
from tests.support.cli.processes import clean_environment
from tests.support.core_limits import NONE, watched_core_limits

pytestmark = pytest.mark.xdist_group("spark")
_ANOTHER_UID = 65534
_PATIENCE_S = 300
_SHADOW = """
import os, sys
with open({trace!r}, "a") as trace:
    trace.write(f"imported as uid {{os.getuid()}} by {{sys.argv}}\\n")
here = os.path.dirname(os.path.abspath(__file__))
sys.path[:] = [entry for entry in sys.path if os.path.abspath(entry or ".") != here]
del sys.modules[__name__]
import {name} as real
sys.modules[__name__] = real
"""
"""Leaves a trace, then makes way for the real module."""


def test_spark_does_not_import_what_another_user_left_there(repo: Filled, tmp_path: Path) -> None:
    """And neither its JVM nor its workers can leave a core dump."""
    trace, hostile = tmp_path / "trace", tmp_path / "hostile"
    hostile.mkdir()
    for name in ("json", "socket", "pickle"):
        (hostile / f"{name}.py").write_text(_SHADOW.format(trace=str(trace), name=name))
    if os.geteuid() == 0:
        for each in (hostile, *hostile.iterdir()):
            os.chown(each, _ANOTHER_UID, _ANOTHER_UID)
    environment = clean_environment(repo.home, LOGKEEP_CACHE_DIR=str(cache_dir(os.environ, Path.home())))
    script = Path(sys.executable).parent / "logkeep"
    command = [str(script), "verify", "-r", repo.url, "--level", "data", "--engine", "spark", "--parallel", "1"]
    with watched_core_limits(os.getpid()) as limits:
        done = subprocess.run(
            command, cwd=hostile, env=environment, capture_output=True, text=True, timeout=_PATIENCE_S, check=False
        )
    assert (done.returncode, trace.exists()) == (0, False), trace.read_text() if trace.exists() else done.stderr
    assert limits == {"JVM of Spark": {NONE}, "Python worker": {NONE}}
