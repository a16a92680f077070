"""Calls of both programs in this process, with streams as bytes: piped, or on a terminal whose user says no."""

import io
import os
import pty
import sys
import threading
import tty
from contextlib import redirect_stderr, redirect_stdout
from dataclasses import dataclass
from pathlib import Path

from logkeep.cli.frame.main import logkeep
from logkeep.cli.frame.world import World
from logkeep.cli.terminal.console import standard_console
from logkeep.cli.zkbackup.main import PROGRAM as ZKBACKUP
from logkeep.config.places import NOWHERE
from tests.support.cli.streams import logs_as_before, text_of

_PROGRAMS = {"logkeep": logkeep(), "zkbackup": ZKBACKUP}


@dataclass(frozen=True)
class Shown:
    """What one call wrote, and how it ended."""

    code: int
    text: str


def piped(program: str, arguments: list[str], home: Path) -> Shown:
    """stdout and stderr, one after the other."""
    out, err = (io.TextIOWrapper(io.BytesIO(), encoding="utf-8", errors="surrogateescape") for _ in range(2))
    with redirect_stdout(out), redirect_stderr(err), logs_as_before():
        code = _call(program, arguments, home)
    return Shown(code, "".join(text_of(stream) for stream in (out, err)))


def on_terminal(program: str, arguments: list[str], home: Path) -> Shown:
    """The same as one terminal shows it; every question gets a no."""
    master, slave = pty.openpty()
    tty.setraw(slave)
    os.write(master, b"n\n" * 8)
    read: list[bytes] = []
    reader = threading.Thread(target=lambda: read.extend(iter(lambda: _some(master), b"")))
    reader.start()
    terminal = os.fdopen(slave, "r+b", buffering=0)
    stream = io.TextIOWrapper(
        io.BufferedWriter(terminal), encoding="utf-8", errors="surrogateescape", write_through=True
    )
    typed, before = io.TextIOWrapper(io.BufferedReader(io.FileIO(os.dup(slave), "rb"))), sys.stdin
    try:
        sys.stdin = typed
        with redirect_stdout(stream), redirect_stderr(stream), logs_as_before():
            code = _call(program, arguments, home)
    finally:
        sys.stdin = before
        stream.close()
        typed.close()
        reader.join()
        os.close(master)
    return Shown(code, b"".join(read).decode("utf-8", "surrogateescape"))


def _some(master: int) -> bytes:
    try:
        return os.read(master, 1 << 16)
    except OSError:  # the other side is closed
        return b""


def _call(program: str, arguments: list[str], home: Path) -> int:
    kept = {name: os.environ[name] for name in ("PATH", "JAVA_HOME", "LOGKEEP_CACHE_DIR") if name in os.environ}
    environ = {**kept, "HOME": str(home), "LANG": "C.UTF-8", "TERM": "xterm"}
    found = _PROGRAMS[program]
    world = World(environ, standard_console(environ), lambda _: NOWHERE, json=found.asks_for_json(arguments))
    return found.call(arguments, world)
