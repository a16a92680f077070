"""Starts pyarrow without pandas, which takes 0.3 CPU seconds to load and which only Spark needs.

pyarrow looks for pandas once, when the first array is made, and works without it. `start_arrow` makes this first array
and hides pandas from pyarrow meanwhile, in this thread only: another thread may be starting Spark, which needs pandas.
"""

import sys
import threading
from collections.abc import Sequence
from importlib.machinery import ModuleSpec
from types import ModuleType

import pyarrow as pa


class _NoPandas:
    """A finder that answers, to one thread, that pandas is not installed."""

    def __init__(self) -> None:
        self._thread = threading.get_ident()

    def find_spec(
        self, name: str, _path: Sequence[str] | None = None, _target: ModuleType | None = None
    ) -> ModuleSpec | None:
        if name == "pandas" and threading.get_ident() == self._thread:
            raise ModuleNotFoundError("pandas is not needed here", name=name)
        return None


def start_arrow() -> None:
    """Make the first array. Modules that make arrays call this; later calls change nothing.

    Where pyspark or pandas is loaded already, nothing is hidden: pyarrow may be used with pandas there.
    """
    if "pandas" in sys.modules or "pyspark" in sys.modules:
        return
    finder = _NoPandas()
    sys.meta_path.insert(0, finder)
    try:
        pa.array([0])
    finally:
        sys.meta_path.remove(finder)
