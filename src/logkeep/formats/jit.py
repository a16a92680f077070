"""The one door to numba: functions that are compiled, once per machine.

Compiled code is kept on disk below the cache directory, for the next process finds it there: importing numba and
loading what it compiled costs a second or two, compiling ten. Where nothing can be written (a read-only machine),
each process compiles for itself. numba is heavy, so it is imported when the first kernel is called: a process that only
passes archived batches on never needs it.

Kernels live in modules called `…_kernels`. They read bytes that anybody may have written. numba checks no bounds by
itself, so every kernel does: an index is compared with its end before it is used.
"""

import hashlib
import importlib.resources
import os
import threading
from collections.abc import Callable
from pathlib import Path
from typing import Any, Generic, ParamSpec, TypeVar, cast

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


class _Kernel(Generic[P, R]):
    """A function that numba is told of when the first one of all is called."""

    def __init__(self, function: Callable[P, R], *, stored: bool) -> None:
        self._function, self._stored = function, stored
        self._compiled: Any = None
        self.ready = False
        self.__doc__ = function.__doc__
        _KERNELS.append(self)

    def __call__(self, *args: P.args, **kwargs: P.kwargs) -> R:
        if not self.ready:
            _tell_all()
        return cast(R, self._compiled(*args, **kwargs))

    def __getattr__(self, name: str) -> Any:
        """Whatever else numba's functions have."""
        if not self.ready:
            _tell_all()
        return getattr(self._compiled, name)

    @property
    def told(self) -> bool:
        return self._compiled is not None

    def tell(self, njit: Callable[..., Any]) -> None:
        if not self._stored:
            self._compiled = njit(self._function)
            return
        try:
            self._compiled = njit(cache=True, nogil=True)(self._function)
        except RuntimeError:  # numba found no place that it may write to
            self._compiled = njit(nogil=True)(self._function)

    def meet(self) -> None:
        """Kernels call each other, and numba knows none but its own."""
        around = self._function.__globals__
        known = {name: found for name, found in around.items() if isinstance(found, _Kernel) and found.told}
        around.update({name: found._compiled for name, found in known.items()})


_KERNELS: list[_Kernel[..., Any]] = []
_TELLING = threading.Lock()


def _tell_all() -> None:
    """Nothing is compiled yet; but no kernel is ready before each has met those that it calls."""
    with _TELLING:
        import numba  # noqa: PLC0415 - heavy, and this is the first call

        new = [each for each in _KERNELS if not each.ready]
        for each in new:
            each.tell(numba.njit)
        for each in new:
            each.meet()
        for each in new:
            each.ready = True


def kernel(function: Callable[P, R]) -> Callable[P, R]:
    """Compile a function for the types it is first called with; it runs without the interpreter's lock."""
    return _Kernel(function, stored=True)


def inlined(function: Callable[P, R]) -> Callable[P, R]:
    """A small piece of kernels. The compiler puts it where it is called."""
    return _Kernel(function, stored=False)
