"""What a task of the data source leaves to the garbage collector that runs after it."""

import subprocess
import sys

_PROGRAM = """
import gc
from logkeep.engine.spark.data_source import TableReader, TablePartition
from logkeep.engine.spark.imported_modules import freeze_imported_modules

class Format:
    def rows(self, unit):
        found.append(gc.get_freeze_count())
        yield unit
    def units(self, options, filters):
        found.append(gc.get_freeze_count())
        return [1]

found, reader = [gc.get_freeze_count()], TableReader(Format(), {})
assert list(reader.read(TablePartition(7))) == [7]
import xmlrpc.client
held = [[] for _ in range(1000)]
assert [each.value for each in reader.partitions()] == [1]
held += [[] for _ in range(1000)]
freeze_imported_modules()
found.append(gc.get_freeze_count())
print(*found)
"""


def test_modules_are_frozen_once_and_what_tasks_hold_is_not() -> None:
    """In a process of its own: nothing is thawed again."""
    run = subprocess.run([sys.executable, "-c", _PROGRAM], capture_output=True, text=True, check=True)
    none, first, second, third = map(int, run.stdout.split())
    assert none == 0
    assert first > 10_000, "pyspark's own functions"
    assert second > first + 1000, "modules were loaded since"
    assert third <= second, "no module was loaded since"
