"""Starting a program, waiting for what it does, and looking for what it leaves behind."""

import os
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

from logkeep.engine.spark.jvm.processes import RunningProcess, descendants, kill_all
from tests.support.cli.forker import ForkedProcess

ROOT = Path(__file__).parents[2]
PATIENCE_S = 240.0
_ESTABLISHED = "01"


@contextmanager
def program(
    arguments: list[str], directory: Path, *, true_start: bool = False, **variables: str
) -> Iterator["subprocess.Popen[str]"]:
    """Run a module of the tests in a working directory and home directory of its own; kill all of it at the end."""
    home, work, temporary = (directory / name for name in ("home", "work", "tmp"))
    for each in (home, work, temporary):
        each.mkdir(exist_ok=True)
    paths = os.pathsep.join([str(ROOT / "src"), str(ROOT)])
    own = {"HOME": str(home), "TMPDIR": str(temporary), "LANG": "C.UTF-8", "PYTHONPATH": paths}
    environ = kept_variables("PATH", "JAVA_HOME") | own
    command = [sys.executable, "-m", *arguments]
    started = ForkedProcess(
        command,
        cwd=work,
        env=environ | variables,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        true_start=true_start,
    )
    family: list[RunningProcess] = []
    try:
        with started:
            try:
                yield started
            except BaseException:
                family = descendants(started.pid)
                started.kill()  # leaving `with` waits for its end
                raise
            family = descendants(started.pid)
    finally:
        family += descendants(started.pid)
        started.kill()
        kill_all(family)


def kept_variables(*names: str) -> dict[str, str]:
    """Of our own environment, with the place of the bytecode: to compile all modules takes seconds in each process."""
    kept = {name: os.environ[name] for name in (*names, "PYTHONPYCACHEPREFIX") if name in os.environ}
    return kept if kept.get("PYTHONPYCACHEPREFIX") else {**kept, "PYTHONDONTWRITEBYTECODE": "1"}


def wait_for(condition: Callable[[], bool], what: str, patience_s: float = PATIENCE_S) -> None:
    """Until it holds; what it waits for is made by another process, and it gives up after a long time."""
    deadline = time.monotonic() + patience_s
    while not condition():
        assert time.monotonic() < deadline, f"waited in vain for {what}"
        time.sleep(0.05)


def files_below(directory: Path) -> list[str]:
    return sorted(str(path.relative_to(directory)) for path in directory.rglob("*"))


def is_connected(pid: int, port: int) -> bool:
    """Whether a process has a TCP connection (IPv4) to this port."""
    place, found = Path(f"/proc/{pid}"), set[str]()
    with suppress(OSError):  # it has ended
        for each in list((place / "fd").iterdir()):
            with suppress(FileNotFoundError):  # closed while we looked
                found.add(str(each.readlink()))
        rows = [line.split() for line in (place / "net" / "tcp").read_text().splitlines()[1:]]
        return any(
            row[2].endswith(f":{port:04X}") and row[3] == _ESTABLISHED and f"socket:[{row[9]}]" in found for row in rows
        )
    return False
