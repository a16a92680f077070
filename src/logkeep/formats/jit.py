"""Functions that read and write many records ("kernels"): compiled by numba, or run uncompiled where that is faster.

To load numba and stored code takes a second or two and 150 MB, to compile ten seconds. So a process runs its first
calls uncompiled, until the work that they had is `MOST_UNCOMPILED_US`; from then on every call is compiled. Both ways
give equal results: uncompiled numbers are numpy's, which wrap as compiled ones do, and Python's numbers, which do not,
are converted before the call. Small functions may have an uncompiled form of their own that calls a library.

Kernels live in modules called `…_kernels`. They read untrusted bytes. numba checks no bounds, so every kernel does: an
index is compared with its end before it is used. `kernel_files` says where compiled code is stored.
"""

import os
import threading
import time
from collections.abc import Callable, Iterator
from functools import update_wrapper
from pathlib import Path
from types import FunctionType
from typing import Any, Final, Generic, ParamSpec, TypeVar, cast

import numpy as np

from logkeep.formats.kernel_files import KernelFiles, kernel_places

P = ParamSpec("P")
R = TypeVar("R")
Work = Callable[..., int]
"""How many microseconds a call with these arguments takes uncompiled, estimated from their sizes."""

MOST_UNCOMPILED_US: Final = 1_000_000
"""What loading numba and stored kernels costs at least, measured. Compiling them takes ten times as long."""


_MUCH_LONGER: Final = 4
"""A call that takes this many times its estimate counts with its real time: a busy machine alone is not as slow."""


class _Kernel(Generic[P, R]):
    """One function in two forms, interpreted and compiled."""

    def __init__(self, function: Callable[P, R], work: Work | None, library: Callable[P, R] | None = None) -> None:
        self.function, self.work, self.library = cast(FunctionType, function), work, library
        self.__doc__ = function.__doc__
        _KERNELS.append(self)

    def __call__(self, *args: P.args, **kwargs: P.kwargs) -> R:
        compiled = _COMPILED.functions.get(self)
        if compiled is None:
            if self.work is not None and _spend(estimate_us := self.work(*args, **kwargs)):
                began_ns = time.perf_counter_ns()
                try:
                    return self.uncompiled(*args, **kwargs)
                finally:
                    _correct(estimate_us, (time.perf_counter_ns() - began_ns) // 1000)
            compiled = _COMPILED.of(self)
        return cast(R, compiled(*args, **kwargs))

    def uncompiled(self, *args: P.args, **kwargs: P.kwargs) -> R:
        """The same result by the interpreter."""
        given = {name: _wrapping(value) for name, value in kwargs.items()}
        with np.errstate(over="ignore"):
            return cast(R, _plain(_INTERPRETED.of(self)(*map(_wrapping, args), **given)))

    def __getattr__(self, name: str) -> Any:
        """Other attributes of numba's function."""
        if name.startswith("__"):
            raise AttributeError(name)
        return getattr(_COMPILED.of(self), name)


class _KernelForm:
    """All kernels in one form. They call each other: each form has copies of its own of the modules' names."""

    def __init__(self, make: Callable[[list[_Kernel[..., Any]], Callable[..., Any]], Iterator[Any]]) -> None:
        self._make = make
        self._names: dict[int, dict[str, Any]] = {}
        self._lock = threading.Lock()
        self.functions: dict[_Kernel[..., Any], Any] = {}

    def of(self, one: _Kernel[..., Any]) -> Any:
        if one not in self.functions:
            self.add_all()
        return self.functions[one]

    def add_all(self) -> None:
        """Make and link the functions of all kernels that were declared since the last time."""
        with self._lock:
            new = [each for each in _KERNELS if each not in self.functions]
            made = dict(zip(new, self._make(new, self._copy), strict=True))
            known = {**self.functions, **made}
            for each in new:
                around = each.function.__globals__
                linked = {name: known[found] for name, found in around.items() if isinstance(found, _Kernel)}
                self._names_of(each).update({**around, **linked})
            self.functions = known

    def _names_of(self, one: _Kernel[..., Any]) -> dict[str, Any]:
        return self._names.setdefault(id(one.function.__globals__), {})

    def _copy(self, one: _Kernel[..., Any]) -> Any:
        old = one.function
        made = FunctionType(old.__code__, self._names_of(one), old.__name__, old.__defaults__, old.__closure__)
        return update_wrapper(made, old)


def _interpreted(new: list[_Kernel[..., Any]], copy: Callable[..., Any]) -> Iterator[Any]:
    return (each.library or copy(each) for each in new)


def _registered(new: list[_Kernel[..., Any]], copy: Callable[..., Any]) -> Iterator[Any]:
    """Nothing is compiled yet. Small functions become part of what calls them, and are not stored by themselves."""
    import numba  # noqa: PLC0415 - heavy, and small work does without it

    places = kernel_places(os.environ, Path.home())
    for each in new:
        function = copy(each)
        made: Any = numba.njit(nogil=True)(function) if each.work else numba.njit(function)
        if each.work:
            made._cache = KernelFiles(function, places)
        yield made


_KERNELS: list[_Kernel[..., Any]] = []
_INTERPRETED = _KernelForm(_interpreted)
_COMPILED = _KernelForm(_registered)
_spent_us = 0


def _spend(work_us: int) -> bool:
    """Whether a call with this much work is still run uncompiled. Threads may disagree by a call; no result differs."""
    global _spent_us  # noqa: PLW0603 - one number for the whole process
    if _spent_us + work_us > MOST_UNCOMPILED_US:
        return False
    _spent_us += work_us
    return True


def _correct(estimate_us: int, took_us: int) -> None:
    """Untrusted bytes may hold much more work than their sizes show, such as a record with many thousand headers."""
    global _spent_us  # noqa: PLW0603
    _spent_us += max(took_us - _MUCH_LONGER * estimate_us, 0)


def compile_from_now_on() -> None:
    """Every later call is compiled, or loaded from where compiled code is stored."""
    _COMPILED.add_all()


def load_stored_kernels() -> None:
    """Load all stored code, so that a forked process finds it loaded."""
    compile_from_now_on()
    for made in _COMPILED.functions.values():
        if isinstance(stored := made._cache, KernelFiles):
            for signature in stored.stored_signatures():
                made.compile(signature)


def kernel(work: Work) -> Callable[[Callable[P, R]], Callable[P, R]]:
    """A function that is compiled for the types it is called with; it runs without the interpreter's lock then."""
    return lambda function: _Kernel(function, work)


def inlined(function: Callable[P, R]) -> Callable[P, R]:
    """A small function that kernels call; the compiler inlines it."""
    return _Kernel(function, None)


def inlined_or(library: Callable[P, R]) -> Callable[[Callable[P, R]], Callable[P, R]]:
    """The same, for a function whose result a library computes faster than the interpreter."""
    return lambda function: _Kernel(function, None, library)


def _wrapping(value: Any) -> Any:
    return np.int64(value) if isinstance(value, int) else value


def _plain(result: Any) -> Any:
    """As compiled functions return numbers."""
    if isinstance(result, tuple):
        return tuple(map(_plain, result))
    return result.item() if isinstance(result, np.generic) else result
