"""Runs a command as the adopter of all of its processes: what it leaves, running or dead and not waited for, is named.

`python -m tests.support.adopting_program COMMAND…` prints one JSON document when the command has ended.
"""

import ctypes
import json
import os
import subprocess
import sys
from pathlib import Path

_PR_SET_CHILD_SUBREAPER = 36


def main(*command: str) -> int:
    if ctypes.CDLL(None, use_errno=True).prctl(_PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0) != 0:
        raise OSError(ctypes.get_errno(), "prctl")
    ended = subprocess.run(command, capture_output=True, text=True, check=False)
    print(json.dumps({"code": ended.returncode, "out": ended.stdout, "err": ended.stderr, "left": _adopted()}))
    return 0


def _adopted() -> list[str]:
    """Our child processes now: the command's, whose parents have ended before them."""
    children = Path(f"/proc/{os.getpid()}/task/{os.getpid()}/children").read_text().split()
    return [" ".join(Path(f"/proc/{child}/stat").read_text().split(" ", 3)[1:3]) for child in children]


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))
