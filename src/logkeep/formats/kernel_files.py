"""Stored machine code of kernels: which directories are used, and how numba reads and writes them.

`make install` compiles every kernel into a directory beside this module. That one is read first, if only root or this
user can change it: stored kernels are machine code, and another user who can write there could run code as us. What it
lacks (another processor, another version of numba, changed kernels) is read from the cache directory, else compiled and
stored there. Where nothing can be stored, each process compiles for itself.
"""

import hashlib
import importlib.resources
import logging
import os
import pickle
import sys
from collections.abc import Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass
from functools import cache
from importlib.resources.abc import Traversable
from pathlib import Path
from typing import Any

from logkeep.errors import ConfigError
from logkeep.file_owners import private_directory, who_can_change_below, who_can_replace
from logkeep.model.cache import CACHE_REMEDY, cache_dir

BESIDE_THE_PACKAGE = Path(__file__).with_name("compiled")
_UNREADABLE = (OSError, EOFError, pickle.UnpicklingError)
"""What a file does that another process removed or a full disk cut short."""
_log = logging.getLogger(__name__)


@cache
def edition() -> str:
    """A hash of all kernels: numba checks the file of a kernel for changes, but not the files of what it calls."""
    sources = _kernel_modules(importlib.resources.files("logkeep.formats"))
    texts = (source.read_bytes() for source in sorted(sources, key=lambda f: f.name))
    checked = "-checked" if os.environ.get("NUMBA_BOUNDSCHECK", "0") != "0" else ""
    return hashlib.sha256(b"".join(texts)).hexdigest()[:16] + checked


def _kernel_modules(folder: Traversable) -> Iterator[Traversable]:
    """At any depth; on workers of other hosts the package is a zip file."""
    for each in folder.iterdir():
        if each.name.endswith("_kernels.py"):
            yield each
        elif each.is_dir() and not each.name.startswith((".", "__")):
            yield from _kernel_modules(each)


@dataclass(frozen=True)
class KernelPlaces:
    """Where stored code is read, in this order, and where new code is stored; None: nowhere."""

    read: tuple[Path, ...]
    write: Path | None


def kernel_places(environ: Mapping[str, str], home: Path) -> KernelPlaces:
    """The directories that only root and this user can change."""
    own = cache_dir(environ, home) / "kernels" / edition()
    usable = _is_ours(own)
    shipped = (BESIDE_THE_PACKAGE,) if _is_trusted(BESIDE_THE_PACKAGE) else ()
    return KernelPlaces((*shipped, own) if usable else shipped, own if usable else None)


def _is_ours(directory: Path) -> bool:
    try:
        private_directory(directory, remedy=CACHE_REMEDY)
    except ConfigError as error:
        _log.warning("compiled kernels are neither loaded nor stored: %s; %s", error, error.remedy)
        return False
    except OSError:  # as where nothing can be written
        return False
    return os.access(directory, os.W_OK)


def _is_trusted(directory: Path) -> bool:
    try:
        reason = who_can_replace(directory) or who_can_change_below(directory)
    except OSError:  # as where it does not exist
        return False
    if reason:
        _log.info("the kernels beside the package are not loaded: %s", reason)
    return not reason


class KernelFiles:
    """The stored code of one kernel, with the methods that numba calls on a function's cache."""

    def __init__(self, function: Any, places: KernelPlaces) -> None:
        from numba.core import caching  # noqa: PLC0415 - heavy, and loaded by the caller

        index_file: Any = caching.IndexDataCacheFile
        code = function.__code__
        source = _source_hash(function.__module__)
        self._function, self._places = function, places if source else KernelPlaces((), None)
        name = f"{Path(code.co_filename).stem}.{function.__name__}-{code.co_firstlineno}"
        stamp = edition(), source
        self._files = {place: index_file(str(place), name, stamp) for place in self._places.read}

    @property
    def cache_path(self) -> str | None:
        return None if self._places.write is None else str(self._places.write)

    def stored_signatures(self) -> set[Any]:
        """The argument types for which code is stored."""
        return {key[0] for file in self._files.values() for key in file._load_index()}

    def load_overload(self, signature: Any, target: Any) -> Any:
        """The code for these argument types; None if it has to be compiled."""
        from numba.core import compiler  # noqa: PLC0415 - as above

        result: Any = compiler.CompileResult
        target.refresh()
        for place, file in self._files.items():
            try:
                stored = file.load(self._key(signature, target.codegen()))
            except _UNREADABLE:
                self._discard(place)
                continue
            if stored is not None:
                return result._rebuild(target, *stored)
        _report_compilation(self._places.write)
        return None

    def save_overload(self, signature: Any, compiled: Any) -> None:
        if self._places.write is None:
            return
        try:
            self._places.write.mkdir(parents=True, exist_ok=True)
            self._files[self._places.write].save(self._key(signature, compiled.codegen), compiled._reduce())
        except _UNREADABLE as error:
            _log.info("a compiled kernel could not be stored", extra={"reason": str(error)})

    def _discard(self, place: Path) -> None:
        """An index that cannot be read would keep others from being stored."""
        if place == self._places.write:
            with suppress(OSError):
                self._files[place].flush()

    def flush(self) -> None:
        """Nothing: other processes use these files."""

    def _key(self, signature: Any, codegen: Any) -> tuple[Any, ...]:
        """The processor and its features are part of it, and of the files' head the versions of Python and numba."""
        text = hashlib.sha256(self._function.__code__.co_code).hexdigest()
        return signature, codegen.magic_tuple(), text


@cache
def _source_hash(module: str) -> str:
    """Of a file, or of a file in an archive of modules. Empty for code that came from none: it is not stored."""
    spec = getattr(sys.modules.get(module), "__spec__", None)
    get_source = getattr(getattr(spec, "loader", None), "get_source", None)
    text = get_source(module) if get_source is not None else None
    return hashlib.sha256(text.encode()).hexdigest() if text else ""


@cache
def _report_compilation(stored_in: Path | None) -> None:
    """Once in a process: a user who waits wants to know why."""
    where = f"stored in {stored_in}" if stored_in else "not stored: set LOGKEEP_CACHE_DIR to a directory of your own"
    _log.warning("compiling kernels, which takes about ten seconds; they are %s", where)
