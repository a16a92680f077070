"""One Java server process: its start, its log, the wait until it answers, and its certain end.

It runs in a process group of its own, so a Ctrl-C on the terminal reaches only us, and it is killed by the kernel
when the thread that started it ends (Linux), so nothing is left behind even if we are killed: start servers from a
thread that lives as long as they should, normally the main one.
"""

import ctypes
import os
import signal
import subprocess
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Self

from logkeep.errors import ServerFailed
from logkeep.spark.java import find_java

_PR_SET_PDEATHSIG = 1
_POLL_S = 0.1
_STOP_S = 20.0
_TAIL_LINES = 15
_TOOL_TIMEOUT_S = 120
JAVA_OPTIONS = ("-Xmx512m", "-XX:+UseSerialGC", "-XX:TieredStopAtLevel=1", "-XX:-UsePerfData")


def java_command(
    class_path: Sequence[Path | str], main_class: str, arguments: Sequence[str], options: Sequence[str] = ()
) -> list[str]:
    """The command line of a small JVM."""
    java = str(find_java(os.environ).executable)
    path = os.pathsep.join(str(entry) for entry in class_path)
    return [java, *JAVA_OPTIONS, *options, "-cp", path, main_class, *arguments]


def run_tool(command: Sequence[str], main_class: str, cwd: Path, typed: str = "") -> str:
    """Run a Java program to its end, with what is typed into it; its output. Raises `ServerFailed` if it fails."""
    finished = subprocess.run(
        command, cwd=cwd, input=typed, capture_output=True, text=True, timeout=_TOOL_TIMEOUT_S, check=False
    )
    if finished.returncode != 0:
        first = (finished.stderr + finished.stdout).strip().splitlines()[:1] or ["no message"]
        raise ServerFailed(f"exit code {finished.returncode}: {first[0]}", subject=main_class)
    return finished.stdout


class ServerProcess:
    """A server that was started by `start`; `stop` may be called twice."""

    def __init__(self, name: str, command: Sequence[str], log: Path, *, cwd: Path) -> None:
        self.name = name
        self.log = log
        self._command = list(command)
        self._cwd = cwd
        self._process: subprocess.Popen[bytes] | None = None

    @property
    def pid(self) -> int | None:
        return self._process.pid if self._process else None

    def start(self) -> Self:
        self.log.parent.mkdir(parents=True, exist_ok=True)
        with self.log.open("ab") as log:
            self._process = subprocess.Popen(
                self._command,
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=subprocess.STDOUT,
                cwd=self._cwd,
                process_group=0,
                # Takes no lock and loads nothing between fork and exec, so other threads cannot harm it.
                preexec_fn=_die_with_parent(os.getpid()),  # noqa: PLW1509
            )
        return self

    def wait_until(self, ready: Callable[[], bool], timeout_s: float) -> None:
        """Ask `ready` until it says yes. Stops the server and raises `ServerFailed` when it exits or is too slow."""
        deadline = time.monotonic() + timeout_s
        while not ready():
            if self._process is None or self._process.poll() is not None:
                self._fail("it exited while starting")
            if time.monotonic() > deadline:
                self._fail(f"it did not answer within {timeout_s:.0f} s")
            time.sleep(_POLL_S)

    def stop(self) -> None:
        """SIGTERM, then SIGKILL for the whole group."""
        if self._process is None:
            return
        self._process.terminate()
        try:
            self._process.wait(_STOP_S)
        except subprocess.TimeoutExpired:
            os.killpg(self._process.pid, signal.SIGKILL)
            self._process.wait()
        self._process = None

    def kill(self) -> None:
        """SIGKILL: for tests of what survives a crash."""
        if self._process is not None:
            self._process.kill()
            self._process.wait()
            self._process = None

    def _fail(self, what: str) -> None:
        self.stop()
        error = ServerFailed(what, subject=self.name, remedy=f"see {self.log}")
        error.add_note("\n".join(self.log.read_text(errors="replace").splitlines()[-_TAIL_LINES:]))
        raise error


def _die_with_parent(parent: int) -> Callable[[], None]:
    """What the child does between fork and exec. The library is loaded before: after a fork nothing may be."""
    libc = ctypes.CDLL(None)

    def prepare() -> None:
        libc.prctl(_PR_SET_PDEATHSIG, signal.SIGKILL)
        if os.getppid() != parent:  # it was gone before we could ask
            os._exit(1)

    return prepare
