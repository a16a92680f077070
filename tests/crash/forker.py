"""A process that forks others, so that a test can end them after any store call, or start two at the same moment.

The test's own process may not fork once obstore runs threads in it. This one has a single thread and never opens a
store: a fork of it is safe, and cheap, because everything but obstore is imported already.

    with forker() as forks:
        forks.together([Job("tests.crash.victims:back_up", {...}), ...])   # all of them at one moment

A job's function takes its arguments and `start`; it gets ready, calls `start()`, which returns when all are ready, and
returns what JSON can say.
"""

import json
import os
import signal
import subprocess
import sys
import traceback
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import asdict, dataclass
from importlib import import_module
from pathlib import Path
from typing import IO, Any, NamedTuple

ROOT = Path(__file__).parents[2]
_PRELOADED = ("victims", "subtree_victim", "application_victim", "zeebe_victim")
_ARRIVED = b"."
_BROKEN = 3


@dataclass(frozen=True)
class Job:
    function: str
    """`module:function`."""
    arguments: dict[str, Any]


@dataclass(frozen=True)
class End:
    """How a job ended: killed, or with a result."""

    killed: bool
    result: Any = None


class Forker:
    """The door to the forking process."""

    def __init__(self, requests: IO[str], answers: IO[str]) -> None:
        self._requests, self._answers = requests, answers

    def together(self, jobs: list[Job]) -> list[End]:
        print(json.dumps([asdict(job) for job in jobs]), file=self._requests, flush=True)
        answer = self._answers.readline()
        assert answer, "the forking process is gone"
        return [End(**end) for end in json.loads(answer)]

    def run(self, function: str, **arguments: Any) -> End:
        return self.together([Job(function, arguments)])[0]


@contextmanager
def forker() -> Iterator[Forker]:
    """Start the forking process; it ends with the block, or with us."""
    paths = os.pathsep.join([str(ROOT / "src"), str(ROOT)])
    process = subprocess.Popen(
        [sys.executable, "-m", "tests.crash.forker"],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        env=os.environ | {"PYTHONPATH": paths},
        cwd=ROOT,
        text=True,
    )
    with process:
        assert process.stdin is not None
        assert process.stdout is not None
        try:
            yield Forker(process.stdin, process.stdout)
        finally:
            process.stdin.close()  # it ends when there is nothing more to do


class _Child(NamedTuple):
    pid: int
    answers: int


def _serve() -> None:
    for module in _PRELOADED:
        import_module(f"tests.crash.{module}")
    for line in sys.stdin:
        print(json.dumps([asdict(end) for end in _together(json.loads(line))]), flush=True)


def _together(jobs: list[dict[str, Any]]) -> list[End]:
    wait, go = os.pipe()
    children = [_forked(Job(**job), wait, go) for job in jobs]
    os.close(wait)
    for child in children:
        os.read(child.answers, 1)  # it is ready, or it has ended
    os.close(go)
    return [_ended(child) for child in children]


def _forked(job: Job, wait: int, go: int) -> _Child:
    answers, answer = os.pipe()
    pid = os.fork()
    if pid == 0:
        os.close(go)
        os.dup2(2, 1)
        os._exit(_run(job, wait, answer))
    os.close(answer)
    return _Child(pid, answers)


def _run(job: Job, wait: int, answer: int) -> int:
    def start() -> None:
        os.write(answer, _ARRIVED)
        os.read(wait, 1)  # nothing is ever written: this returns when the other end is closed

    try:
        module, _, name = job.function.partition(":")
        function: Callable[..., object] = getattr(import_module(module), name)
        os.write(answer, json.dumps(function(start=start, **job.arguments)).encode())
    except BaseException:  # noqa: BLE001 - a child must never return into the loop of its parent
        traceback.print_exc()
        return _BROKEN
    return 0


def _ended(child: _Child) -> End:
    with os.fdopen(child.answers, "rb") as answers:
        result = answers.read()
    code = os.waitstatus_to_exitcode(os.waitpid(child.pid, 0)[1])
    if code == -signal.SIGKILL:
        return End(killed=True)
    return End(killed=False, result=json.loads(result) if code == 0 else f"ended with {code}")


if __name__ == "__main__":
    _serve()
