"""Finds and kills the child processes of a JVM that had to be killed. Reads /proc (Linux)."""

import os
import signal
from collections.abc import Iterable
from contextlib import suppress
from pathlib import Path
from typing import NamedTuple

_PROC = Path("/proc")


class RunningProcess(NamedTuple):
    """A process, identified by its id and its start time: ids are used again."""

    pid: int
    parent: int
    started: int

    @property
    def alive(self) -> bool:
        now = find_process(self.pid)
        return now is not None and now.started == self.started

    def kill(self) -> None:
        if self.alive:
            with suppress(ProcessLookupError, PermissionError):
                os.kill(self.pid, signal.SIGKILL)


def find_process(pid: int) -> RunningProcess | None:
    """The process with this id; None if it has ended, also while it is a zombie."""
    try:
        # The command name may hold spaces and brackets: fields count from the last closing bracket.
        fields = (_PROC / str(pid) / "stat").read_text().rpartition(")")[2].split()
    except OSError:
        return None
    return None if fields[0] in {"Z", "X"} else RunningProcess(pid, int(fields[1]), int(fields[19]))


def descendants(pid: int) -> list[RunningProcess]:
    """All child processes of `pid` and theirs, without itself."""
    found: list[RunningProcess] = []
    waiting = [pid]
    everything = [process for entry in _PROC.glob("[0-9]*") if (process := find_process(int(entry.name)))]
    while waiting:
        parent = waiting.pop()
        children = [process for process in everything if process.parent == parent]
        found.extend(children)
        waiting.extend(child.pid for child in children)
    return found


def family_with_argument(ancestor: int, argument: str) -> list[RunningProcess]:
    """The descendants of `ancestor` whose command line contains `argument`, and their descendants."""
    named = [process for process in descendants(ancestor) if argument in _arguments(process.pid)]
    return named + [below for process in named for below in descendants(process.pid)]


def kill_all(processes: Iterable[RunningProcess]) -> None:
    for process in processes:
        process.kill()


def _arguments(pid: int) -> list[str]:
    try:
        return (_PROC / str(pid) / "cmdline").read_text(errors="replace").split("\0")
    except OSError:
        return []
