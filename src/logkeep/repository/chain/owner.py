"""Identifies the process that holds a lease, so that another process on the same host can see that it is gone.

Host name, boot id and process-id namespace must all agree before a missing process counts as dead: in a container with
the same host name, or after a reboot, an unknown process id proves nothing.
"""

import os
import socket
from pathlib import Path

import msgspec


class Owner(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """A process."""

    run: str
    host: str
    pid: int
    boot: str = ""
    namespace: str = ""
    born: str = ""
    """Start time of the process in clock ticks since boot: process ids are reused."""

    def __str__(self) -> str:
        return f"process {self.pid} on {self.host}"


def this_process(run: str) -> Owner:
    pid = os.getpid()
    return Owner(run, socket.gethostname(), pid, _text("/proc/sys/kernel/random/boot_id"), _namespace(), _born(pid))


def is_dead(owner: Owner, here: Owner) -> bool:
    """Whether the process `here` can know for certain that the owner's process is gone."""
    if not owner.boot or (owner.host, owner.boot, owner.namespace) != (here.host, here.boot, here.namespace):
        return False
    return _born(owner.pid) != owner.born


def is_alive(owner: Owner, here: Owner) -> bool:
    """Whether the process `here` can know for certain that the owner is another process that still runs."""
    if not owner.boot or (owner.host, owner.boot, owner.namespace) != (here.host, here.boot, here.namespace):
        return False
    return _born(owner.pid) == owner.born and (owner.pid, owner.born) != (here.pid, here.born)


def same_process(one: Owner, other: Owner) -> bool:
    """Whether two owners are the same process, whatever their runs."""
    return msgspec.structs.replace(one, run="") == msgspec.structs.replace(other, run="")


def _text(path: str) -> str:
    try:
        return Path(path).read_text().strip()
    except OSError:
        return ""


def _namespace() -> str:
    try:
        return str(Path("/proc/self/ns/pid").stat().st_ino)
    except OSError:
        return ""


def _born(pid: int) -> str:
    """Field 22 of /proc/PID/stat; the command name before it may contain spaces and brackets. A zombie is dead."""
    fields = _text(f"/proc/{pid}/stat").rpartition(")")[2].split()
    return "" if len(fields) < 20 or fields[0] in {"Z", "X"} else fields[19]
