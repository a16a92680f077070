"""Compiled functions ("kernels"), by numba: the only module that imports it.

Compiled code is stored in the cache directory for the next process: loading numba and its code takes a second or two,
compiling ten. Where nothing can be written, or where another user can write, each process compiles for itself. numba is
imported when the first kernel is called: a process that only copies archived batches never needs it.

Kernels live in modules called `…_kernels`. They read untrusted bytes. numba checks no bounds, so every kernel does: an
index is compared with its end before it is used.
"""

import hashlib
import importlib.resources
import logging
import os
import threading
from collections.abc import Callable
from pathlib import Path
from typing import Any, Generic, ParamSpec, TypeVar, cast

from logkeep.errors import ConfigError
from logkeep.file_owners import private_directory
from logkeep.model.cache import CACHE_REMEDY, cache_dir

P = ParamSpec("P")
R = TypeVar("R")
_log = logging.getLogger(__name__)


def _edition() -> str:
    """A hash of all kernels: numba checks the file of a kernel for changes, but not the files of what it calls."""
    folders = [f for f in importlib.resources.files("logkeep.formats").iterdir() if f.is_dir()]
    sources = [file for folder in folders for file in folder.iterdir() if file.name.endswith("_kernels.py")]
    texts = (source.read_bytes() for source in sorted(sources, key=lambda f: f.name))
    return hashlib.sha256(b"".join(texts)).hexdigest()[:16]


# numba reads this when it is imported, and only this module imports it.
os.environ.setdefault("NUMBA_CACHE_DIR", str(cache_dir(os.environ, Path.home()) / "kernels" / _edition()))


def _cache_is_ours(directory: Path) -> bool:
    """Stored kernels are machine code: another user who can write there could run code as us."""
    try:
        private_directory(directory, remedy=CACHE_REMEDY)
    except ConfigError as error:
        _log.warning("compiled kernels are neither loaded nor stored: %s; %s", error, error.remedy)
        return False
    except OSError:  # as where nothing can be written
        return False
    return True


class _Kernel(Generic[P, R]):
    """A function that is registered with numba when the first kernel of all is called."""

    def __init__(self, function: Callable[P, R], *, stored: bool) -> None:
        self._function, self._stored = function, stored
        self._compiled: Any = None
        self.ready = False
        self.__doc__ = function.__doc__
        _KERNELS.append(self)

    def __call__(self, *args: P.args, **kwargs: P.kwargs) -> R:
        if not self.ready:
            _register_all()
        return cast(R, self._compiled(*args, **kwargs))

    def __getattr__(self, name: str) -> Any:
        """Other attributes of numba's function."""
        if not self.ready:
            _register_all()
        return getattr(self._compiled, name)

    @property
    def registered(self) -> bool:
        return self._compiled is not None

    def register(self, njit: Callable[..., Any], *, use_cache: bool) -> None:
        if not self._stored:
            self._compiled = njit(self._function)
            return
        if not use_cache:
            self._compiled = njit(nogil=True)(self._function)
            return
        try:
            self._compiled = njit(cache=True, nogil=True)(self._function)
        except RuntimeError:  # numba found no writable directory
            self._compiled = njit(nogil=True)(self._function)

    def link(self) -> None:
        """Kernels call each other; numba can only call functions of its own."""
        around = self._function.__globals__
        known = {name: found for name, found in around.items() if isinstance(found, _Kernel) and found.registered}
        around.update({name: found._compiled for name, found in known.items()})


_KERNELS: list[_Kernel[..., Any]] = []
_REGISTERING = threading.Lock()


def _register_all() -> None:
    """Register and link all kernels. Nothing is compiled yet."""
    with _REGISTERING:
        import numba  # noqa: PLC0415 - heavy, and this is the first call

        new = [each for each in _KERNELS if not each.ready]
        use_cache = _cache_is_ours(Path(os.environ["NUMBA_CACHE_DIR"]))
        for each in new:
            each.register(numba.njit, use_cache=use_cache)
        for each in new:
            each.link()
        for each in new:
            each.ready = True


def kernel(function: Callable[P, R]) -> Callable[P, R]:
    """Compile a function for the types it is first called with; it runs without the interpreter's lock."""
    return _Kernel(function, stored=True)


def inlined(function: Callable[P, R]) -> Callable[P, R]:
    """A small function that kernels call; the compiler inlines it."""
    return _Kernel(function, stored=False)
