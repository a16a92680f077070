"""Attempts at a replay in processes of their own, which a test kills whenever it likes.

A program that has everything imported forks one child for each attempt: a child is there in milliseconds.
"""

import contextlib
import itertools
import json
import os
import pickle
import signal
import subprocess
import sys
import tempfile
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from logkeep.errors import LogkeepError
from logkeep.formats.warm import warm
from logkeep.kafka.client.connection import Connection
from logkeep.kafka.client.frames import Bytes
from logkeep.kafka.client.produce import API
from logkeep.kafka.restore.facts.units import ReplayUnit
from logkeep.kafka.restore.replay import holes
from logkeep.kafka.restore.replay.task import ReplayTiming, replay

ROOT = Path(__file__).parents[4]
KILLED = "killed"


class Attempts:
    """The door to the forking program. One attempt at a time."""

    def __init__(self, process: "subprocess.Popen[str]") -> None:
        self._process = process
        self.pid = 0

    def start(
        self, unit: ReplayUnit, *, dies_before: str = "", dies_after: int = 0, timeout_ms: int = holes.TIMEOUT_MS
    ) -> None:
        """`dies_before`: the name of a function of `holes` instead of which the attempt kills itself. `dies_after`: the
        number of the Produce request after which it does."""
        with tempfile.NamedTemporaryFile(delete=False) as file:
            pickle.dump(unit, file)
        asked = {"unit": file.name, "dies_before": dies_before, "dies_after": dies_after, "timeout_ms": timeout_ms}
        self._say(asked)
        self.pid = int(self._answer())

    def kill(self) -> str:
        with contextlib.suppress(ProcessLookupError):  # it came to its end before
            os.kill(self.pid, signal.SIGKILL)
        return self.ended()

    def ended(self) -> str:
        """How it ended: `KILLED`, or the outcomes of its logs, or the name of an error."""
        return str(self._answer())

    @property
    def over(self) -> bool:
        """Whether the attempt has ended by itself; the forking program has not looked yet, or has."""
        try:
            return Path(f"/proc/{self.pid}/stat").read_text().rpartition(")")[2].split()[0] == "Z"
        except (FileNotFoundError, ProcessLookupError):  # gone, or going while we read
            return True

    def _say(self, what: dict[str, Any]) -> None:
        assert self._process.stdin is not None
        print(json.dumps(what), file=self._process.stdin, flush=True)

    def _answer(self) -> Any:
        assert self._process.stdout is not None
        line = self._process.stdout.readline()
        assert line, "the forking program is gone"
        return json.loads(line)


@contextmanager
def attempts() -> Iterator[Attempts]:
    process = subprocess.Popen(
        [sys.executable, "-m", "tests.integration.kafka.replay.attempts"],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        env=os.environ | {"PYTHONPATH": os.pathsep.join([str(ROOT / "src"), str(ROOT)])},
        cwd=ROOT,
        text=True,
    )
    with process:
        try:
            yield Attempts(process)
        finally:
            assert process.stdin is not None
            process.stdin.close()


def _serve() -> None:
    warm()
    for line in sys.stdin:
        asked = json.loads(line)
        answers, answer = os.pipe()
        pid = os.fork()
        if pid == 0:
            os.close(answers)
            os.dup2(2, 1)
            os._exit(_attempt(asked, answer))
        os.close(answer)
        print(json.dumps(pid), flush=True)
        with os.fdopen(answers) as told:
            said = told.read()
        killed = os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]) == -signal.SIGKILL
        Path(asked["unit"]).unlink()
        print(json.dumps(KILLED if killed else said), flush=True)


def _attempt(asked: dict[str, Any], answer: int) -> int:
    unit = pickle.loads(Path(asked["unit"]).read_bytes())  # noqa: S301 - written by the test itself
    if asked["dies_before"]:
        setattr(holes, asked["dies_before"], _die)
    if asked["dies_after"]:
        _die_after(asked["dies_after"])
    try:
        done = replay(unit, lambda _: None, ReplayTiming(transaction_timeout_ms=asked["timeout_ms"]))
        said = ",".join(log.outcome for log in done.logs)
    except LogkeepError as error:
        said = f"{type(error).__name__}: {error}"
    os.write(answer, said.encode())
    return 0


def _die(*_arguments: object) -> None:
    os.kill(os.getpid(), signal.SIGKILL)


def _die_after(requests: int) -> None:
    send, numbers = Connection.send_raw, itertools.count(1)

    def last_send(connection: Connection, api: str, version: int, parts: Sequence[Bytes]) -> None:
        send(connection, api, version, parts)
        if api == API and next(numbers) == requests:
            _die()

    Connection.send_raw = last_send  # type: ignore[assignment,method-assign]  # in the child alone


if __name__ == "__main__":
    _serve()
