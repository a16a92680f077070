"""Hostile bytes under numba's own bounds checks: nothing is read where nothing is, nothing crashes, nothing hangs."""

import os
import subprocess
import sys

import pytest

pytestmark = pytest.mark.xdist_group("checked-kernels")


@pytest.mark.parametrize("count", [6_000, pytest.param(120_000, marks=pytest.mark.soak)])
def test_no_index_leaves_its_array(count: int) -> None:
    """In a process of its own, with compiled code of its own: bounds checks are compiled in or not."""
    environ = {**os.environ, "NUMBA_BOUNDSCHECK": "1", "NUMBA_OPT": "0"}  # most of the time is compiling
    command = [sys.executable, "-m", "tests.property.fuzzed_records", str(count), "7"]
    done = subprocess.run(command, env=environ, capture_output=True, text=True, check=False, timeout=550)
    assert done.returncode == 0, done.stderr
    readable, sent, grown_mib = (int(number) for number in done.stdout.split())
    assert count // 20 < readable < count, "most inputs must be broken, and many must not be"
    assert sent > count // 50
    assert grown_mib < 64
