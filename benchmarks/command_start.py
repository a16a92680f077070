"""CPU seconds and memory of `--help` of every verb of both programs. The aim is at most 0.4 CPU seconds each.

Each call is a process of its own. Run on an idle machine: `python -m benchmarks.command_start [ROUNDS]`.
The first round is not counted: it writes bytecode, which an installed package already has.
"""

import os
import sys
import tempfile
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path

from logkeep.cli.frame.catalogue import VERBS
from logkeep.cli.zkbackup.main import COMMANDS

AIM_S = 0.4
_PROGRAMS = {"logkeep": "logkeep.cli", "zkbackup": "logkeep.cli.zkbackup"}


@dataclass(frozen=True)
class Start:
    """One call."""

    cpu_s: float
    peak_mb: float


def commands() -> Iterator[tuple[str, ...]]:
    """The words of every command, with its program first."""
    for program, entries in (("logkeep", VERBS), ("zkbackup", COMMANDS)):
        yield (program,)
        for entry in entries:
            yield (program, *entry.words.split())


def start(words: tuple[str, ...], environ: Mapping[str, str]) -> Start:
    """Run the command with --help and wait for it."""
    program, *rest = words
    arguments = [sys.executable, "-m", _PROGRAMS[program], *rest, "--help"]
    output = [(os.POSIX_SPAWN_OPEN, 1, os.devnull, os.O_WRONLY, 0)]
    pid = os.posix_spawn(sys.executable, arguments, environ, file_actions=output)
    _, status, used = os.wait4(pid, 0)
    if status:
        raise RuntimeError(f"{' '.join(words)} --help ended with {os.waitstatus_to_exitcode(status)}")
    return Start(used.ru_utime + used.ru_stime, used.ru_maxrss * 1024 / 1e6)


def main() -> None:
    rounds = int(sys.argv[1]) if len(sys.argv) > 1 else 3
    slow = 0
    with tempfile.TemporaryDirectory() as scratch:
        environ = {**os.environ, "PYTHONPYCACHEPREFIX": str(Path(scratch) / "bytecode")}
        environ.pop("PYTHONDONTWRITEBYTECODE", None)
        for words in commands():
            start(words, environ)
            best = min((start(words, environ) for _ in range(rounds)), key=lambda s: s.cpu_s)
            slow += best.cpu_s > AIM_S
            print(f"{' '.join(words):34} {best.cpu_s:5.2f} CPU s  {best.peak_mb:5.0f} MB")
    print(f"above {AIM_S} CPU s: {slow}")


if __name__ == "__main__":
    main()
