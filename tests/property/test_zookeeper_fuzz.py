"""Hostile logs and snapshots: nothing is read where nothing is, nothing crashes, nothing hangs, memory stays small."""

import os
import subprocess
import sys

import pytest

pytestmark = pytest.mark.xdist_group("checked-kernels")


@pytest.mark.parametrize("count", [1500, pytest.param(15_000, marks=pytest.mark.soak)])
def test_no_bytes_break_the_readers(count: int) -> None:
    """In a process of its own, with compiled code of its own: bounds checks are compiled in or not."""
    environ = {**os.environ, "NUMBA_BOUNDSCHECK": "1", "NUMBA_OPT": "0"}  # most of the time is compiling
    command = [sys.executable, "-m", "tests.property.fuzzed_zookeeper_files", str(count), "11"]
    done = subprocess.run(command, env=environ, capture_output=True, text=True, check=False, timeout=550)
    assert done.returncode == 0, done.stderr
    some, whole, grown_mib = (int(number) for number in done.stdout.split())
    assert count // 2 < some < count
    assert count // 10 < whole < count * 2 // 3, "many inputs must be broken, and many must not be"
    assert grown_mib < 32
