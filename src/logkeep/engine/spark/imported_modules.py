"""Keeps Python's garbage collector from visiting what a Spark worker has imported.

Spark's daemon collects garbage after each task, and after each step of planning a data source: with numba loaded, that
takes 50 ms of the processor.
"""

import gc
import sys

_modules_then = 0


def freeze_imported_modules() -> None:
    """Exclude what was imported so far from garbage collection. Call it when a task begins, after its imports: the
    garbage of the task before has been collected by then.

    The next call freezes modules that are imported later. If nothing was imported since the last call, nothing is
    frozen, so that the collector still visits the objects of other tasks of this process.
    """
    global _modules_then  # noqa: PLW0603 - of the whole process, as the collector is
    if len(sys.modules) != _modules_then:
        _modules_then = len(sys.modules)
        gc.freeze()
