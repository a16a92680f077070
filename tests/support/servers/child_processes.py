"""Child processes that cannot outlive the test that started them.

`leashed(argv, log)` starts a process which the kernel kills as soon as its parent is gone, even if the parent was
killed itself; leaving the block stops it: SIGTERM, then SIGKILL after a grace. Start it from a thread that lives as
long as the process should (pytest's main thread): the kernel watches the starting thread.
"""

import os
import subprocess
import sys
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path

_GRACE_S = 1.0

# PR_SET_PDEATHSIG is 1, SIGKILL 9. The parent may have died before the call: then there is nobody to notice it.
_LEASH = """
import ctypes, os, sys
if ctypes.CDLL(None, use_errno=True).prctl(1, 9, 0, 0, 0) != 0 or os.getppid() != int(sys.argv[1]):
    sys.exit("could not be tied to its parent")
os.execvp(sys.argv[2], sys.argv[2:])
"""


@contextmanager
def leashed(argv: list[str], log: Path, env: Mapping[str, str] | None = None) -> Iterator[subprocess.Popen[bytes]]:
    """Run `argv` with its output in `log` until the block ends."""
    command = [sys.executable, "-S", "-E", "-c", _LEASH, str(os.getpid()), *argv]
    with log.open("ab") as output:
        process = subprocess.Popen(
            command,
            stdin=subprocess.DEVNULL,
            stdout=output,
            stderr=subprocess.STDOUT,
            env=None if env is None else dict(env),
            start_new_session=True,
        )
    try:
        yield process
    finally:
        _stop(process)


def _stop(process: subprocess.Popen[bytes]) -> None:
    process.terminate()
    try:
        process.wait(_GRACE_S)
    except subprocess.TimeoutExpired:
        process.kill()
        process.wait()
