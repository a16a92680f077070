"""Hostile Avro and Parquet files: no crash, no index out of its array, no hang, and little memory."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

from tests.property import fuzzed_datasets

pytestmark = pytest.mark.xdist_group("checked-kernels")


def _run(*words: str) -> list[int]:
    """In a process of its own, with compiled code of its own: bounds checks are compiled in or not."""
    environ = {**os.environ, "NUMBA_BOUNDSCHECK": "1", "NUMBA_OPT": "0"}  # most of the time is compiling
    done = subprocess.run(
        [sys.executable, "-m", *words], env=environ, capture_output=True, text=True, check=False, timeout=550
    )
    assert done.returncode == 0, done.stderr
    return [int(number) for number in done.stdout.split()]


@pytest.mark.parametrize("count", [1_000, pytest.param(10_000, marks=pytest.mark.soak)])
@pytest.mark.parametrize("reader", ["avro", "parquet"])
def test_no_index_leaves_its_array(reader: str, count: int) -> None:
    readable, grown_mib = _run("tests.property.fuzzed_datasets", reader, str(count), "7")
    print(f"{reader}: {count} files, {readable} could be read, memory grew by {grown_mib} MiB")
    assert count // 10 < readable < count * 2 // 3, "most inputs must be broken, and many must not be"
    assert grown_mib < 64


def test_bombs_of_every_codec(tmp_path: Path) -> None:
    """Files of less than 1 MB that unpack to 128 MiB and more."""
    names = []
    for number, bomb in enumerate(fuzzed_datasets.bombs()):
        (tmp_path / str(number)).write_bytes(bomb)
        names.append(str(tmp_path / str(number)))
    refused, count, grown_mib = _run("tests.property.fuzzed_bombs", *names)
    assert refused == count == 9
    assert grown_mib < 64
