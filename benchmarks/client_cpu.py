"""CPU seconds of this process and all that it started: workers and their JVM, but not the broker."""

import os
from pathlib import Path

_TICKS = os.sysconf("SC_CLK_TCK")


def client_cpu_s(without: int) -> float:
    """User and system time so far, of the living and of those they have buried.

    `without` is the pid of a process that is left out, with all below it.
    """
    parents, spent = {}, {}
    for stat in Path("/proc").glob("[0-9]*/stat"):
        try:
            fields = stat.read_text().rsplit(")", 1)[1].split()
        except OSError:
            continue  # gone meanwhile
        pid = int(stat.parent.name)
        parents[pid] = int(fields[1])
        spent[pid] = sum(map(int, fields[11:15])) / _TICKS
    return sum(seconds for pid, seconds in spent.items() if _belongs(pid, parents, without))


def _belongs(pid: int, parents: dict[int, int], without: int) -> bool:
    while pid in parents:
        if pid == without:
            return False
        if pid == os.getpid():
            return True
        pid = parents[pid]
    return False
