"""Keeps secrets in the memory of this process from other processes of the same user, and out of core dumps.

A core dump of a process that has read a password contains it: `forbid_core_dumps` is called at the start of every
process, and children inherit it. Where the system passes dumps to a program, that limit may not count. So a process
that reads a secret also calls `hide_memory`: the kernel then writes no dump of it, and no other process of the same
user can read its memory or attach a debugger.

The kernel closes `/proc/PID/fd` of such a process too. A backup of ZooKeeper keeps the server's files open, and its
Spark workers read purged ones there: while `files_are_pinned`, memory is not hidden. Linux only; elsewhere the limit of
core dumps is all there is.
"""

import ctypes
import resource
import sys
import threading
from collections.abc import Callable

_PR_SET_DUMPABLE = 4


class _Memory:
    """What this process holds."""

    def __init__(self, set_dumpable: Callable[[bool], None]) -> None:
        self._set_dumpable = set_dumpable
        self._lock = threading.Lock()
        self._secrets, self._pins = False, 0

    def hide(self) -> None:
        with self._lock:
            self._secrets = True
            self._apply()

    def pin(self, change: int) -> None:
        with self._lock:
            self._pins += change
            self._apply()

    def _apply(self) -> None:
        if self._secrets:
            self._set_dumpable(self._pins > 0)


def _set_dumpable(dumpable: bool) -> None:
    if sys.platform == "linux":
        ctypes.CDLL(None).prctl(_PR_SET_DUMPABLE, int(dumpable), 0, 0, 0)


_MEMORY = _Memory(_set_dumpable)


def forbid_core_dumps() -> None:
    """For this process and its children."""
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))


def hide_memory() -> None:
    """This process holds a secret from now on."""
    _MEMORY.hide()


def files_are_pinned() -> None:
    """This process holds files open that others read through it, until `files_are_released`."""
    _MEMORY.pin(1)


def files_are_released() -> None:
    _MEMORY.pin(-1)
