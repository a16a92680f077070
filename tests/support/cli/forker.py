"""Commands from a preloaded process: `logkeep` and `zkbackup` as processes of their own that start in milliseconds.

Python needs between half a second and three to import what a command needs, and the tests start more than a thousand
commands. Each test worker therefore has one server process, the forker. It has imported everything but obstore and
Spark, and it runs no thread. For each command it forks; the child gets the caller's environment, working directory,
umask, streams and ignored signals, and runs the module as `python -m` does.

    with ForkedProcess([*REAL, "list"], env=..., cwd=..., stdout=subprocess.PIPE) as process: ...
    run([*REAL, "list"], env=..., cwd=..., capture_output=True)

A `ForkedProcess` is a `subprocess.Popen`: it has the command's own process id, takes signals and returns its exit code.
Scripts use the program of `command_script`, which asks the same forker (see `forker_client`).

What differs from a true start: the parent is the forker, the session is the forker's, and /proc shows the forker's
command line. A caller that needs one of these, or sets a variable that Python or a library reads at its start, gets
a true start: `_forkable` decides. A command ends with SIGKILL when its caller ends first.
"""

import atexit
import contextlib
import gc
import marshal
import os
import runpy
import selectors
import shlex
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, NoReturn

ROOT = Path(__file__).parents[3]
CLIENT = Path(__file__).with_name("forker_client.py")
_UNTOUCHED = ("obstore", "pyspark")
"""They run threads, which a fork would lose."""
_SKIPPED = (
    *("logkeep.store.buckets.store", "logkeep.store.buckets.object_errors"),
    *("logkeep.engine.spark.worker", "logkeep.engine.spark.data_source"),
    *("logkeep.cli.__main__", "logkeep.cli.zkbackup.__"),
)
_READ_AT_START = ("PYTHON", "LC_", "NUMBA_", "OPENBLAS_", "OMP_", "LD_")
"""How variables begin that Python or a library reads when it starts (`forker_client` has the same list)."""
_USUAL = {
    "PYTHONPATH": os.pathsep.join([str(ROOT / "src"), str(ROOT)]),
    "PYTHONPYCACHEPREFIX": os.environ.get("PYTHONPYCACHEPREFIX", ""),
    "PYTHONDONTWRITEBYTECODE": "1",
}
"""Variables of this kind that change nothing."""
_SIZE = 8
_START_S = 60


class ForkedProcess(subprocess.Popen[Any]):
    """A `python -m MODULE` command as a fork of the preloaded process, or as a true start where a fork would differ."""

    def __init__(self, command: Sequence[str], *, true_start: bool = False, **options: Any) -> None:
        self._answers: socket.socket | None = None
        self._true_start = true_start
        super().__init__(list(command), **options)

    def _execute_child(
        self, args: list[str], executable: Any, preexec_fn: Any, close_fds: bool, pass_fds: Any, cwd: Any,
        env: Mapping[str, str] | None, startupinfo: Any, creationflags: int, shell: bool, p2cread: int, p2cwrite: int,
        c2pread: int, c2pwrite: int, errread: int, errwrite: int, *rest: Any,
    ) -> None:  # fmt: skip
        pipes = (p2cread, p2cwrite, c2pread, c2pwrite, errread, errwrite)
        given = os.environ if env is None else env
        special = (
            self._true_start
            or preexec_fn
            or pass_fds
            or shell
            or executable
            or not close_fds
            or any(map(_is_set, rest[1:]))
        )
        if special or not _forkable(args, given):
            super()._execute_child(  # type: ignore[misc]
                args, executable, preexec_fn, close_fds, pass_fds, cwd, env, startupinfo, creationflags, shell,
                *pipes, *rest,
            )  # fmt: skip
            return
        wanted = Wanted(args[2], tuple(args[3:]), dict(given), os.fspath(cwd) if cwd else str(Path.cwd()), _umask(), ())
        streams = [mine if theirs == -1 else theirs for mine, theirs in enumerate((p2cread, c2pwrite, errwrite))]
        try:
            self._answers = _ask(_forker(), wanted, streams)
            self.pid = _number(self._answers)
            self._child_created = True
        finally:
            self._close_pipe_fds(*pipes)  # type: ignore[attr-defined]

    def _try_wait(self, flags: int) -> tuple[int, int]:
        if self._answers is None:
            found: tuple[int, int] = super()._try_wait(flags)  # type: ignore[misc]
            return found
        if flags & os.WNOHANG and not _readable(self._answers):
            return 0, 0
        status = _number(self._answers)
        self._answers.close()
        return self.pid, status

    def _internal_poll(self, *_: Any, **__: Any) -> int | None:
        if self._answers is None:
            found: int | None = super()._internal_poll(*_, **__)  # type: ignore[misc]
            return found
        with self._waitpid_lock:  # type: ignore[attr-defined]
            if self.returncode is None:
                pid, status = self._try_wait(os.WNOHANG)
                if pid:
                    self._handle_exitstatus(status)  # type: ignore[attr-defined]
        return self.returncode


def run(
    command: Sequence[str],
    *,
    timeout: float,
    input: str | None = None,  # noqa: A002 - as in subprocess.run
    **options: Any,
) -> subprocess.CompletedProcess[str]:
    """`subprocess.run` of a text command that captures both streams, without a check of the exit code."""
    stdin = subprocess.DEVNULL if input is None else subprocess.PIPE
    pipes: dict[str, Any] = {"stdin": stdin, "stdout": subprocess.PIPE, "stderr": subprocess.PIPE}
    with ForkedProcess(command, text=True, **pipes, **options) as process:
        try:
            out, err = process.communicate(input, timeout=timeout)
        except BaseException:
            process.kill()
            raise
    return subprocess.CompletedProcess(process.args, process.returncode, out, err)


def command_script(module: str) -> str:
    """The text of a /bin/sh script that runs a module with the script's arguments, streams and environment."""
    client = f"{shlex.quote(sys.executable)} -S -E {shlex.quote(str(CLIENT))}"
    return f'#!/bin/sh\nexec {client} {shlex.quote(str(_forker()))} {module} "$@"\n'


@dataclass(frozen=True)
class Wanted:
    """One command as its caller wants it."""

    module: str
    arguments: tuple[str, ...]
    environment: dict[str, str]
    directory: str
    umask: int
    ignored: tuple[int, ...]
    """Signals that the caller ignores, as a shell's background job ignores Ctrl-C."""


def _is_set(option: Any) -> bool:
    return option not in (None, False, -1)


def _forkable(command: Sequence[str], environment: Mapping[str, str]) -> bool:
    """The same interpreter with a module, and no variable that Python or a library reads when it starts."""
    if command[:2] != [sys.executable, "-m"] or not hasattr(os, "pidfd_open"):
        return False
    if environment.get("LANG") != "C.UTF-8" or "PYTHONPATH" not in environment:
        return False
    special = {name: value for name, value in environment.items() if name.startswith(_READ_AT_START)}
    return all(_USUAL.get(name) == value for name, value in special.items())


def _umask() -> int:
    now = os.umask(0)
    os.umask(now)
    return now


def _readable(connection: socket.socket) -> bool:
    with selectors.DefaultSelector() as selector:
        selector.register(connection, selectors.EVENT_READ)
        return bool(selector.select(0))


def _ask(address: Path, wanted: Wanted, streams: Sequence[int]) -> socket.socket:
    text = marshal.dumps(tuple(vars(wanted).values()))  # may raise: nothing is connected yet
    connection = socket.socket(socket.AF_UNIX)
    connection.connect(str(address))
    socket.send_fds(connection, [len(text).to_bytes(_SIZE)], list(streams))
    connection.sendall(text)
    return connection


def _number(connection: socket.socket) -> int:
    return int.from_bytes(_exactly(connection, _SIZE))


def _exactly(connection: socket.socket, size: int) -> bytes:
    received = b""
    while len(received) < size:
        more = connection.recv(size - len(received))
        if not more:
            raise ConnectionError("the other side of the forker's socket is gone")
        received += more
    return received


_started: dict[int, Path] = {}


def _forker() -> Path:
    """The address of this process's forker, which is started with the first command and ends with this process."""
    if (mine := os.getpid()) not in _started:
        directory = Path(tempfile.mkdtemp(prefix="logkeep-forker-"))
        address = directory / "socket"
        process = subprocess.Popen(
            [sys.executable, "-m", "tests.support.cli.forker", str(address)],
            stdin=subprocess.PIPE, stdout=subprocess.PIPE, cwd=ROOT, env=_environment(), start_new_session=True,
        )  # fmt: skip
        assert process.stdin is not None
        assert process.stdout is not None
        assert process.stdout.readline() == b"ready\n", "the forker did not start"
        process.stdout.close()
        atexit.register(_end, process, directory)
        _started[mine] = address
    return _started[mine]


def _environment() -> dict[str, str]:
    names = ("PATH", "HOME", "TMPDIR", "LOGKEEP_CACHE_DIR", "XDG_CACHE_HOME", "COVERAGE_PROCESS_CONFIG")
    kept = {name: os.environ[name] for name in names if name in os.environ}
    usual = {name: value for name, value in _USUAL.items() if value and name != "PYTHONDONTWRITEBYTECODE"}
    single = {"OPENBLAS_NUM_THREADS": "1", "JE_ARROW_MALLOC_CONF": "background_thread:false"}
    return {**kept, **usual, **single, "LANG": "C.UTF-8"}


def _end(process: "subprocess.Popen[bytes]", directory: Path) -> None:
    if process.stdin is not None:
        process.stdin.close()
    process.wait(_START_S)
    shutil.rmtree(directory, ignore_errors=True)


def _serve(address: str) -> "_Fork | None":
    """Answer until the test process ends. Returns in a forked child, with the command that it is to run."""
    server = _Server(address)
    os.write(1, b"ready\n")
    os.dup2(2, 1)
    while True:
        found = server.turn()
        if isinstance(found, _Fork):
            return found
        if found is _OVER:
            return None


_OVER = object()


@dataclass
class _Fork:
    """What a forked child is to do."""

    wanted: Wanted
    streams: list[int]


@dataclass
class _Server:
    address: str
    selector: selectors.DefaultSelector = field(default_factory=selectors.DefaultSelector)
    running: dict[int, tuple[int, int, socket.socket]] = field(default_factory=dict)
    """By connection: the command's process, a descriptor that is readable when it has ended, and the connection."""

    def __post_init__(self) -> None:
        self.listener = socket.socket(socket.AF_UNIX)
        self.listener.bind(self.address)
        self.listener.listen(64)
        self.selector.register(self.listener, selectors.EVENT_READ, self._accepted)
        self.selector.register(0, selectors.EVENT_READ, self._test_process_ended)

    def turn(self) -> object:
        for key, _ in self.selector.select():
            if found := key.data():
                return found
        return None

    def _accepted(self) -> object:
        connection, _ = self.listener.accept()
        connection.settimeout(_START_S)  # a caller that connects and says nothing must not stop the others for ever
        try:
            size, streams, _, _ = socket.recv_fds(connection, _SIZE, 3)
            wanted = Wanted(*marshal.loads(_exactly(connection, int.from_bytes(size))))  # noqa: S302 - our own
        except (ConnectionError, EOFError, TimeoutError):
            connection.close()
            return None
        pid = os.fork()
        if pid == 0:
            self._close(connection)
            return _Fork(wanted, streams)
        for stream in streams:
            os.close(stream)
        ended, number = os.pidfd_open(pid), connection.fileno()
        self.running[number] = (pid, ended, connection)
        self.selector.register(ended, selectors.EVENT_READ, lambda: self._ended(number))
        self.selector.register(connection, selectors.EVENT_READ, lambda: self._caller_left(number))
        with contextlib.suppress(OSError):
            connection.sendall(pid.to_bytes(_SIZE))
        return None

    def _close(self, latest: socket.socket) -> None:
        """In a child: an object that is collected later would close a descriptor that the command has opened."""
        self.selector.close()
        for connection in (self.listener, latest, *(each[-1] for each in self.running.values())):
            connection.close()

    def _ended(self, number: int) -> None:
        pid, ended, connection = self.running.pop(number)
        self.selector.unregister(ended)
        if connection in self.selector.get_map():
            self.selector.unregister(connection)
        _, status = os.waitpid(pid, 0)
        os.close(ended)
        with contextlib.suppress(OSError):
            connection.sendall(status.to_bytes(_SIZE))
        connection.close()

    def _caller_left(self, number: int) -> None:
        if number not in self.running:
            return
        pid, _, connection = self.running[number]
        self.selector.unregister(connection)
        with contextlib.suppress(ProcessLookupError):
            os.kill(pid, signal.SIGKILL)

    def _test_process_ended(self) -> object:
        for pid, _, _ in self.running.values():
            os.kill(pid, signal.SIGKILL)
        return _OVER


def _preload() -> None:
    """Import what commands need. A module that starts a thread or loads obstore would make forks unsafe."""
    for name in _modules():
        __import__(name)
    _load_kernels()
    assert threading.active_count() == 1
    assert len(list(Path("/proc/self/task").iterdir())) == 1, "a preloaded module runs a thread"
    found = [name for name in _UNTOUCHED if name in sys.modules]
    assert not found, f"a preloaded module loads {found}"
    gc.collect()
    gc.freeze()


def _load_kernels() -> None:
    """Load what numba has compiled on this machine: the code is the same wherever a command keeps its own cache."""
    from logkeep.formats import jit  # noqa: PLC0415 - only the forker loads it

    jit.load_stored_kernels()


def _modules() -> Iterator[str]:
    for path in sorted((ROOT / "src" / "logkeep").rglob("*.py")):
        name = ".".join(path.relative_to(ROOT / "src").with_suffix("").parts).removesuffix(".__init__")
        if not name.startswith(_SKIPPED):
            yield name


def _become(fork: _Fork) -> NoReturn:
    """Be the command: as a new process that was started with `python -m`."""
    wanted = fork.wanted
    for number, stream in enumerate(fork.streams):
        os.dup2(stream, number)
    os.closerange(3, os.sysconf("SC_OPEN_MAX") if os.sysconf("SC_OPEN_MAX") < 1 << 16 else 1 << 16)
    for kind in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP, signal.SIGQUIT):
        usual = signal.default_int_handler if kind == signal.SIGINT else signal.SIG_DFL
        signal.signal(kind, signal.SIG_IGN if kind in wanted.ignored else usual)
    os.environ.clear()
    os.environ.update(wanted.environment)
    time.tzset()
    os.umask(wanted.umask)
    _open_streams()
    code = 1
    try:
        os.chdir(wanted.directory)
        sys.path[0] = wanted.directory
        sys.argv = [wanted.module, *wanted.arguments]
        runpy.run_module(wanted.module, run_name="__main__", alter_sys=True)
        code = 0
    except SystemExit as end:
        code = _exit_code(end)
    except KeyboardInterrupt:
        sys.excepthook(*sys.exc_info())
        signal.signal(signal.SIGINT, signal.SIG_DFL)
        os.kill(os.getpid(), signal.SIGINT)
    except BaseException:  # noqa: BLE001 - as the interpreter does for what nothing caught
        sys.excepthook(*sys.exc_info())
    _leave(code)


def _open_streams() -> None:
    """Streams as Python opens them at its start: this depends on what the descriptors are."""
    for name, number, mode in (("stdin", 0, "r"), ("stdout", 1, "w"), ("stderr", 2, "w")):
        before = getattr(sys, name)
        lines = name == "stderr" or os.isatty(number)
        opened = open(  # noqa: SIM115 - open for the whole process
            number, mode, encoding=before.encoding, errors=before.errors, closefd=False,
            buffering=1 if lines and mode == "w" else -1,
        )  # fmt: skip
        opened.mode = mode  # type: ignore[misc]
        opened.buffer.raw.name = f"<{name}>"  # type: ignore[attr-defined]
        setattr(sys, name, opened)
        setattr(sys, f"__{name}__", opened)


def _exit_code(end: SystemExit) -> int:
    if end.code is None or isinstance(end.code, int):
        return end.code or 0
    print(end.code, file=sys.stderr)
    return 1


def _leave(code: int) -> NoReturn:
    """What the interpreter does at its end, without taking every module apart."""
    try:
        threading._shutdown()  # type: ignore[attr-defined]
        atexit._run_exitfuncs()
        sys.stdout.flush()
    except OSError:
        code = 120
    finally:
        with contextlib.suppress(OSError):
            sys.stderr.flush()
        os._exit(code & 0xFF)


if __name__ == "__main__":
    _preload()
    if (forked := _serve(sys.argv[1])) is not None:
        _become(forked)
