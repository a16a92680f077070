"""The command in processes of their own, which kill themselves after a store call or a request that a test names.

A program that has everything imported and compiled forks one child for each call: a child is there in milliseconds.
"""

import json
import os
import signal
import subprocess
import sys
import threading
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import asdict, dataclass, field
from importlib import import_module
from pathlib import Path
from typing import IO, Any, Literal, NamedTuple

from logkeep.cli import wiring
from logkeep.formats.warm import warm
from logkeep.kafka.client.connection import Connection
from logkeep.store import access
from logkeep.store.base import Store
from tests.support.faults.plan import Fault, Plan
from tests.support.faults.store import FaultyStore
from tests.support.kafka.command_in_process import Commands

ROOT = Path(__file__).parents[4]
_ARRIVED = b"."
_PRELOADED = ("logkeep.cli.verbs.kafka.restore", "logkeep.repository.backups.content", "logkeep.engine.inline")
"""What the command imports when it needs it."""


@dataclass(frozen=True)
class Point:
    """Where a process kills itself: after the n-th call whose name holds this text. 0 is never."""

    kind: Literal["store", "request"]
    n: int
    text: str = ""
    """Part of an object's name (of calls that write), or the name of a request; empty for all calls."""


NEVER = Point("store", 0)


@dataclass(frozen=True)
class Ended:
    """How a call ended: killed, or with a code and what it said."""

    killed: bool
    code: int = -1
    out: str = ""
    err: str = ""
    store_calls: int = 0
    requests: int = 0


class Drivers:
    """The door to the forking program."""

    def __init__(self, requests: IO[str], answers: IO[str]) -> None:
        self._requests, self._answers = requests, answers

    def run(self, commands: Commands, *arguments: str, point: Point = NEVER) -> Ended:
        return self.together(commands, [arguments], point)[0]

    def together(self, commands: Commands, calls: Sequence[Sequence[str]], point: Point = NEVER) -> list[Ended]:
        """Several calls that begin at the same moment."""
        where = {"repo": commands.repo, "home": str(commands.home), "environ": dict(commands.environ)}
        asked = {**where, "calls": [list(call) for call in calls], "point": asdict(point)}
        print(json.dumps(asked), file=self._requests, flush=True)
        answer = self._answers.readline()
        assert answer, "the forking program is gone"
        return [Ended(**each) for each in json.loads(answer)]


@contextmanager
def drivers() -> Iterator[Drivers]:
    """Start the forking program; it ends with the block, or with us."""
    process = subprocess.Popen(
        [sys.executable, "-m", "tests.integration.kafka.restore.drivers"],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        env=os.environ | {"PYTHONPATH": os.pathsep.join([str(ROOT / "src"), str(ROOT)])},
        cwd=ROOT,
        text=True,
    )
    with process:
        assert process.stdin is not None
        assert process.stdout is not None
        try:
            yield Drivers(process.stdin, process.stdout)
        finally:
            process.stdin.close()


class _Child(NamedTuple):
    pid: int
    answers: int


def _serve() -> None:
    for module in _PRELOADED:
        import_module(module)
    warm()
    for line in sys.stdin:
        asked = json.loads(line)
        wait, go = os.pipe()
        children = [_forked(asked, call, wait, go) for call in asked["calls"]]
        os.close(wait)
        for child in children:
            os.read(child.answers, 1)
        os.close(go)
        print(json.dumps([_ended(child) for child in children]), flush=True)


def _forked(asked: dict[str, Any], call: list[str], wait: int, go: int) -> _Child:
    answers, answer = os.pipe()
    pid = os.fork()
    if pid == 0:
        os.close(go)
        os.close(answers)
        os.dup2(2, 1)
        os.write(answer, _ARRIVED)
        os.read(wait, 1)  # nothing is ever written: this returns when the other end is closed
        os.write(answer, json.dumps(_called(asked, call)).encode())
        os._exit(0)
    os.close(answer)
    return _Child(pid, answers)


def _ended(child: _Child) -> dict[str, Any]:
    with os.fdopen(child.answers, "rb") as answers:
        said = answers.read()
    code = os.waitstatus_to_exitcode(os.waitpid(child.pid, 0)[1])
    found: dict[str, Any] = {"killed": True} if code == -signal.SIGKILL else json.loads(said)
    return found


def _called(asked: dict[str, Any], call: list[str]) -> dict[str, Any]:
    point, stores = Point(**asked["point"]), list[FaultyStore]()
    requests = _Requests(point if point.kind == "request" else NEVER)
    requests.watch()
    _watch_stores(_KillAfterNamed(point if point.kind == "store" else NEVER), stores)
    os.environ.update(asked["environ"])
    said = Commands(asked["repo"], Path(asked["home"]), asked["environ"]).say(*call)
    return {
        "killed": False,
        "code": said.code,
        "out": said.out,
        "err": said.err,
        "store_calls": sum(len(each.calls) for each in stores),
        "requests": requests.count,
    }


class _Requests:
    """Counts what is sent to brokers, and dies when a request has left."""

    def __init__(self, point: Point) -> None:
        self.count, self._matching, self._point = 0, 0, point
        self._lock = threading.Lock()

    def watch(self) -> None:
        send, send_raw = Connection.send, Connection.send_raw

        def watched(connection: Connection, api: str, *more: Any, **named: Any) -> None:
            send(connection, api, *more, **named)
            self._sent(api)

        def watched_raw(connection: Connection, api: str, *more: Any) -> None:
            send_raw(connection, api, *more)
            self._sent(api)

        Connection.send, Connection.send_raw = watched, watched_raw  # type: ignore[method-assign,assignment]  # our own

    def _sent(self, api: str) -> None:
        with self._lock:  # a driver asks from several threads, and none may step over the point
            self.count += 1
            self._matching += self._point.text in {"", api}
            if self._matching == self._point.n > 0:
                os.kill(os.getpid(), signal.SIGKILL)


@dataclass
class _KillAfterNamed:
    """A plan for a store: dies after the n-th call, or after the n-th object with such a name."""

    point: Point
    matching: int = 0
    lock: threading.Lock = field(default_factory=threading.Lock)

    def __call__(self, _number: int, operation: str, name: str) -> Fault | None:
        writes = operation == "put_new" and self.point.text in name
        with self.lock:  # logs are read by several threads
            self.matching += writes or not self.point.text
            return Fault(kill=True) if self.matching == self.point.n > 0 else None


def _watch_stores(plan: Plan, opened: list[FaultyStore]) -> None:
    usual = access.open_store

    def open_store(url: str) -> Store:
        opened.append(FaultyStore(usual(url), plan))
        return opened[-1]

    vars(wiring)["open_store"] = open_store


if __name__ == "__main__":
    _serve()
