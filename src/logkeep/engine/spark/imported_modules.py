"""Keeps Python's garbage collector from visiting what a Spark worker has imported.

Spark's daemon collects garbage after each task, and after each step of planning a data source: with numba loaded, that
takes 50 ms of the processor.
"""

import gc
import sys

_modules_then = 0


def freeze_imported_modules() -> None:
    """Call it when a task begins, after its imports: garbage of the task before has been collected then.

    Modules that are imported later are frozen by the next call. Where nothing was imported since, nothing is frozen:
    what other tasks of this process hold stays with the collector.
    """
    global _modules_then  # noqa: PLW0603 - of the whole process, as the collector is
    if len(sys.modules) != _modules_then:
        _modules_then = len(sys.modules)
        gc.freeze()
