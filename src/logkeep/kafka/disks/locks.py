"""The lock that a broker has on each of its directories, seen from outside.

A broker locks `.lock` for itself alone while it runs. A shared lock on the same file is refused then; and while we have
one, no broker starts. The lock belongs to the open file, not to the process: several holders in one process do not
take it from each other.
"""

import fcntl
import os
import struct

_SHARED = struct.pack("hhqqi4x", fcntl.F_RDLCK, os.SEEK_SET, 0, 0, 0)


def share(file: int) -> bool:
    """Whether the lock is ours now; it is given back when the file is closed."""
    try:
        fcntl.fcntl(file, fcntl.F_OFD_SETLK, _SHARED)
    except OSError:
        return False
    return True
