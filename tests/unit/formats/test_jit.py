"""Kernels: small work runs uncompiled and without numba; they compile where nothing can be stored, too."""

import subprocess
import sys

from logkeep.formats.jit import kernel


def test_a_kernel_without_a_place_for_its_cache_is_compiled_all_the_same() -> None:
    """Code that came from no file has none: what a read-only machine looks like to numba."""
    scope: dict[str, object] = {"kernel": kernel}
    exec("@kernel(lambda number: 1 << 60)\ndef double(number):\n    return 2 * number\n", scope)  # noqa: S102 - our own
    double = scope["double"]
    assert callable(double)
    assert double(21) == 42


_FOUR_READERS = """
import sys, threading
import logkeep.kafka.restore.replay.task
from logkeep.formats import jit
from logkeep.formats.compare.digest import SMALLEST
from logkeep.formats.kafka.batches import walk
from logkeep.formats.kafka.records import decode

def read():
    found.append(len(list(decode(SMALLEST, walk(SMALLEST).batches))))

def four_readers():
    readers = [threading.Thread(target=read) for _ in range(4)]
    for reader in readers:
        reader.start()
    for reader in readers:
        reader.join()
    return "numba" in sys.modules

found = []
print(four_readers(), end=" ")
jit.MOST_UNCOMPILED_US = 0
print(four_readers(), *found)
"""


def test_small_work_runs_without_numba_and_more_of_it_is_compiled() -> None:
    """Four threads call the first kernel at the same time, once for each form."""
    said = subprocess.check_output([sys.executable, "-c", _FOUR_READERS], text=True)
    assert said.split() == ["False", "True", *"11111111"]
