"""Runs every call of a kernel in both forms, compiled and uncompiled, and compares what they return and write."""

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any
from unittest.mock import patch

import numpy as np

from logkeep.formats import jit


def _copied(value: Any) -> Any:
    if not isinstance(value, np.ndarray):
        return value
    copy = value.copy()
    copy.flags.writeable = value.flags.writeable
    return copy


@contextmanager
def both_forms() -> Iterator[dict[str, int]]:
    """Yields how many calls of each kernel were compared."""
    compared: dict[str, int] = {}

    def call(self: Any, *args: Any) -> Any:
        others = [_copied(arg) for arg in args]
        name = f"{self.function.__module__.rpartition('.')[2]}.{self.function.__name__}"
        result, expected = self.uncompiled(*others), jit._COMPILED.of(self)(*args)
        assert (result, type(result)) == (expected, type(expected)), name
        for number, (arg, other) in enumerate(zip(args, others, strict=True)):
            if isinstance(arg, np.ndarray):
                assert np.array_equal(arg, other), f"argument {number} of {name}"
        compared[name] = compared.get(name, 0) + 1
        return result

    with patch.object(jit._Kernel, "__call__", call):
        yield compared
