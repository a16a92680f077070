"""The one door to numba: functions that are compiled, once per machine.

Compiled code is kept on disk below the cache directory, for the next process finds it there: importing numba and
loading what it compiled costs a second or two, compiling ten. Where nothing can be written (a read-only machine),
each process compiles for itself. Import this module only where records are decoded: numba is heavy.

Kernels live in modules called `…_kernels`. They read bytes that anybody may have written. numba checks no bounds by
itself, so every kernel does: an index is compared with its end before it is used.
"""

import hashlib
import importlib.resources
import os
from collections.abc import Callable
from pathlib import Path
from typing import ParamSpec, TypeVar, cast

from logkeep.model.cache import cache_dir

P = ParamSpec("P")
R = TypeVar("R")


def _edition() -> str:
    """A name for the kernels as they are: numba looks at the file of a kernel, not at those of what it calls."""
    folder = importlib.resources.files("logkeep.formats")
    every = (*folder.iterdir(), *(folder / "zookeeper").iterdir())
    sources = [file for file in every if file.name.endswith("_kernels.py")]
    texts = (source.read_bytes() for source in sorted(sources, key=lambda f: f.name))
    return hashlib.sha256(b"".join(texts)).hexdigest()[:16]


# numba reads this when it is imported, and nobody else imports it.
os.environ.setdefault("NUMBA_CACHE_DIR", str(cache_dir(os.environ, Path.home()) / "kernels" / _edition()))

import numba  # noqa: E402 - the setting above must come first


def kernel(function: Callable[P, R]) -> Callable[P, R]:
    """Compile a function for the types it is first called with; it runs without the interpreter's lock."""
    try:
        return cast(Callable[P, R], numba.njit(cache=True, nogil=True)(function))
    except RuntimeError:  # numba found no place that it may write to
        return cast(Callable[P, R], numba.njit(nogil=True)(function))


def inlined(function: Callable[P, R]) -> Callable[P, R]:
    """A small piece of kernels. The compiler puts it where it is called."""
    return cast(Callable[P, R], numba.njit(function))
