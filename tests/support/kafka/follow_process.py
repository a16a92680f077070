"""`logkeep kafka backup --follow` as a process: its lines as they come, and signals to it."""

import json
import os
import subprocess
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from tempfile import TemporaryFile
from typing import IO, Any

from tests.support.cli.filled_repository import Filled
from tests.support.cli.forker import ForkedProcess
from tests.support.cli.processes import REAL, clean_environment
from tests.support.processes import wait_for


class Following:
    """One run. Rounds are read from its stdout while it runs."""

    def __init__(self, process: "subprocess.Popen[bytes]", out: Path, errors: IO[bytes]) -> None:
        self.process, self._out, self._errors = process, out, errors

    def documents(self) -> list[dict[str, Any]]:
        """Every whole line so far."""
        lines = self._out.read_text().splitlines(keepends=True)
        return [json.loads(line) for line in lines if line.endswith("\n")]

    def rounds(self) -> list[dict[str, Any]]:
        return [d for d in self.documents() if "round" in d]

    def new_offsets(self) -> int:
        return sum(d["new_offsets"] for d in self.rounds())

    def wait_for_offsets(self, offsets: int) -> None:
        self._wait(lambda: self.new_offsets() >= offsets, f"{offsets} offsets")

    def wait_for_rounds(self, more: int, seen: int | None = None, **wanted: object) -> list[dict[str, Any]]:
        """So many more rounds of a kind, behind those that were seen: by now, or before what they are to tell."""
        seen = len(self.rounds()) if seen is None else seen

        def found() -> list[dict[str, Any]]:
            return [d for d in self.rounds()[seen:] if all(d[name] == value for name, value in wanted.items())]

        self._wait(lambda: len(found()) >= more, f"{more} rounds with {wanted}")
        return found()

    def wait_for_message(self, text: str) -> None:
        """On stderr."""
        self._wait(lambda: text.encode() in os.pread(self._errors.fileno(), 1 << 20, 0), f"the message {text!r}")

    def ended(self, signal_number: int) -> int:
        self.process.send_signal(signal_number)
        return self.process.wait(120)

    def _wait(self, condition: Any, what: str) -> None:
        wait_for(lambda: condition() or self.process.poll() is not None, what)
        assert condition(), f"it ended with {self.process.poll()} before {what}"


@contextmanager
def following(
    repo: Filled,
    arguments: Sequence[str],
    lines_file: str = "lines.json",
    program: Sequence[str] = REAL,
    **variables: str,
) -> Iterator[Following]:
    """Start it, and see that it is gone at the end."""
    out = repo.home / lines_file
    environment = clean_environment(repo.home, **{"LOGKEEP_REPO": repo.url} | variables)
    with out.open("wb") as lines, TemporaryFile() as errors:
        process = ForkedProcess(
            [*program, *arguments, "--follow", "--json"], env=environment, cwd=repo.home, stdout=lines, stderr=errors
        )
        try:
            yield Following(process, out, errors)
        finally:
            process.kill()
            process.wait()
            errors.seek(0)
            print(errors.read().decode())
