"""Permissions that count for root too: the thread gives its power over files away and takes it back."""

import ctypes
import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from stat import S_IMODE

_VERSION = 0x20080522
_OVER_FILES = 0b110
"""CAP_DAC_OVERRIDE and CAP_DAC_READ_SEARCH."""
_LIBC = ctypes.CDLL(None, use_errno=True)


class _Header(ctypes.Structure):
    _fields_ = (("version", ctypes.c_uint32), ("pid", ctypes.c_int))


class _Set(ctypes.Structure):
    _fields_ = (("effective", ctypes.c_uint32), ("permitted", ctypes.c_uint32), ("inheritable", ctypes.c_uint32))


@contextmanager
def closed(path: Path, mode: int = 0) -> Iterator[None]:
    """The path has this mode meanwhile, and nobody is above that."""
    was = S_IMODE(path.stat().st_mode)
    path.chmod(mode)
    sets = (_Set * 2)()
    header = _Header(_VERSION, 0)
    _call("capget", header, sets)
    before = sets[0].effective
    sets[0].effective = before & ~_OVER_FILES
    _call("capset", header, sets)
    try:
        yield
    finally:
        sets[0].effective = before
        _call("capset", header, sets)
        path.chmod(was)


def _call(name: str, header: _Header, sets: "ctypes.Array[_Set]") -> None:
    if getattr(_LIBC, name)(ctypes.byref(header), sets) != 0:
        raise OSError(ctypes.get_errno(), os.strerror(ctypes.get_errno()))
