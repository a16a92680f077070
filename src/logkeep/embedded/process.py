"""A Java server process: start, log, readiness, stop.

It runs in a process group of its own, so Ctrl-C in the terminal does not reach it, and the kernel kills it when the
thread that started it ends (Linux), so it never outlives us: start servers from a thread that lives long enough,
normally the main one. Its working directory is private: only this user can enter it.
"""

import ctypes
import os
import signal
import subprocess
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Self

from logkeep.embedded.class_archive import archive_options, this_java
from logkeep.embedded.refusal import machine_trouble, without_frames
from logkeep.engine.spark.private_files import append_private, make_private
from logkeep.errors import ServerFailed, ServerRefused

_PR_SET_PDEATHSIG = 1
_POLL_S = 0.1
_STOP_S = 20.0
_TAIL_LINES = 15
_TAIL_BYTES = 1 << 18
_TOOL_TIMEOUT_S = 120
JAVA_OPTIONS = ("-Xmx512m", "-XX:+UseSerialGC", "-XX:TieredStopAtLevel=1", "-XX:-UsePerfData")


def java_command(
    cache: Path,
    class_path: Sequence[Path | str],
    main_class: str,
    arguments: Sequence[str],
    options: Sequence[str] = (),
) -> list[str]:
    """The command line of a small JVM, with the class archive of these jars if the cache has one."""
    own = [*JAVA_OPTIONS, *archive_options(cache, class_path), *options]
    path = os.pathsep.join(str(entry) for entry in class_path)
    return [str(this_java().executable), *own, "-cp", path, main_class, *arguments]


def run_tool(command: Sequence[str], main_class: str, cwd: Path, typed: str = "") -> str:
    """Run a Java program with `typed` as its input; returns its output. Raises `ServerFailed` if it fails."""
    finished = subprocess.run(
        command, cwd=cwd, input=typed, capture_output=True, text=True, timeout=_TOOL_TIMEOUT_S, check=False
    )
    if finished.returncode != 0:
        first = (finished.stderr + finished.stdout).strip().splitlines()[:1] or ["no message"]
        raise ServerFailed(f"exit code {finished.returncode}: {first[0]}", subject=main_class)
    return finished.stdout


class ServerProcess:
    """A server process; `stop` may be called twice."""

    def __init__(self, name: str, command: Sequence[str], log: Path, *, cwd: Path) -> None:
        self.name = name
        self.log = log
        self._command = list(command)
        self._cwd = cwd
        self._process: subprocess.Popen[bytes] | None = None
        self._log_from = 0
        """The position in the log at which this start begins."""

    @property
    def pid(self) -> int | None:
        return self._process.pid if self._process else None

    def start(self) -> Self:
        make_private(self._cwd)
        make_private(self.log.parent)
        with append_private(self.log) as log:
            self._log_from = os.fstat(log.fileno()).st_size
            self._process = subprocess.Popen(
                self._command,
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=subprocess.STDOUT,
                cwd=self._cwd,
                env=os.environ | {"PYTHONSAFEPATH": "1"},
                process_group=0,
                # Takes no lock and loads nothing between fork and exec, so other threads cannot harm it.
                preexec_fn=_die_with_parent(os.getpid()),  # noqa: PLW1509
            )
        return self

    def wait_until(self, ready: Callable[[], bool], timeout_s: float) -> None:
        """Wait until `ready` returns True. Raises `ServerFailed` if the server is too slow or the host fails it, and
        `ServerRefused` if it refuses its files."""
        deadline = time.monotonic() + timeout_s
        while not ready():
            if self._process is None or self._process.poll() is not None:
                raise self._exited()
            if time.monotonic() > deadline:
                self.stop()
                raise self._failed(ServerFailed, f"the server did not answer within {timeout_s:.0f} s")
            time.sleep(_POLL_S)

    def check_running(self) -> None:
        """Raise `ServerFailed` if a server that was started has ended by itself."""
        if self._process is not None and self._process.poll() is not None:
            raise self._failed(ServerFailed, f"the server ended with exit code {self._process.returncode}")

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

    def _exited(self) -> ServerFailed:
        """`ServerRefused` only if the server itself reported its files as the cause."""
        code = self._process.returncode if self._process is not None else -signal.SIGKILL
        self.stop()
        trouble = machine_trouble(code, self._log_lines())
        if trouble is None:
            return self._failed(ServerRefused, "the server exited while starting")
        what, remedy = trouble
        return self._failed(ServerFailed, what, remedy)

    def _failed(self, kind: type[ServerFailed], what: str, remedy: str | None = None) -> ServerFailed:
        error = kind(what, subject=self.name, remedy=remedy or f"see {self.log}")
        error.add_note("\n".join(self._log_lines()[-_TAIL_LINES:]))
        return error

    def _log_lines(self) -> list[str]:
        with self.log.open("rb") as log:
            log.seek(max(self.log.stat().st_size - _TAIL_BYTES, self._log_from))
            return without_frames(log.read().decode(errors="replace").splitlines())


def _die_with_parent(parent: int) -> Callable[[], None]:
    """Runs in the child between fork and exec. The library is loaded before: loading after a fork is unsafe."""
    libc = ctypes.CDLL(None)

    def prepare() -> None:
        libc.prctl(_PR_SET_PDEATHSIG, signal.SIGKILL)
        if os.getppid() != parent:  # the parent ended before
            os._exit(1)

    return prepare
