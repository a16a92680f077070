"""Kernels compile where nothing can be kept, too."""

import subprocess
import sys

from logkeep.formats.jit import kernel


def test_a_kernel_without_a_place_for_its_cache_is_compiled_all_the_same() -> None:
    """Code that came from no file has none: what a read-only machine looks like to numba."""
    scope: dict[str, object] = {"kernel": kernel}
    exec("@kernel\ndef double(number):\n    return 2 * number\n", scope)  # noqa: S102 - our own two lines
    double = scope["double"]
    assert callable(double)
    assert double(21) == 42


_FOUR_READERS = """
import sys, threading
import logkeep.kafka.restore.replay.task
from logkeep.formats.compare.digest import SMALLEST
from logkeep.formats.kafka.batches import walk
from logkeep.formats.kafka.records import decode

def read():
    found.append(len(list(decode(SMALLEST, walk(SMALLEST).batches))))

before, found = "numba" in sys.modules, []
readers = [threading.Thread(target=read) for _ in range(4)]
for reader in readers:
    reader.start()
for reader in readers:
    reader.join()
print(before, "numba" in sys.modules, *found)
"""


def test_numba_is_not_imported_before_a_kernel_is_called() -> None:
    """A process that sends archived batches as they are has all kernels at hand and calls none. Here four threads call
    the first one at the same time."""
    said = subprocess.check_output([sys.executable, "-c", _FOUR_READERS], text=True)
    assert said.split() == ["False", "True", "1", "1", "1", "1"]
