"""What runs in forked processes: `logkeep zookeeper restore-subtree`, which dies at one of its steps.

Steps are, from the first line of its journal on: before, within and behind each write to the journal, behind each sync,
behind each request that went out on the wire, and behind each answer to a change.
"""

import os
import signal
from collections.abc import Callable
from pathlib import Path
from typing import Any

from kazoo.protocol.connection import ConnectionHandler

from logkeep.store.local.files import write_all
from logkeep.zookeeper.server.client import ZooKeeperSession
from logkeep.zookeeper.server.multi_requests import MultiRequest
from logkeep.zookeeper.subtree import journal
from tests.support.cli.in_process import Here


class Steps:
    """Counts, and ends the process at one of them; 0 never."""

    def __init__(self, die_at: int) -> None:
        self.count, self._die_at, self._began = 0, die_at, False

    def step(self) -> None:
        self.count += self._began
        if self.count == self._die_at and self._began:
            os.kill(os.getpid(), signal.SIGKILL)

    def watch(self) -> None:
        ask, write = ZooKeeperSession.ask, ConnectionHandler._write

        def asked(session: ZooKeeperSession, request: MultiRequest, subject: str) -> int:
            code = ask(session, request, subject)
            self.step()
            return code

        def sent(handler: Any, message: bytes, timeout: float) -> None:
            write(handler, message, timeout)
            self.step()

        watched = (
            (journal, "write_all", self._written),
            (journal, "os", _Watched(self)),
            (ZooKeeperSession, "ask", asked),
        )
        for place, name, instead in (*watched, (ConnectionHandler, "_write", sent)):
            setattr(place, name, instead)

    def _written(self, descriptor: int, data: bytes) -> None:
        self._began = True
        self.step()
        write_all(descriptor, data[: len(data) // 2])
        self.step()
        write_all(descriptor, data[len(data) // 2 :])
        self.step()


class _Watched:
    """The module `os`, as the journal sees it."""

    def __init__(self, steps: Steps) -> None:
        self._steps = steps

    def __getattr__(self, name: str) -> Any:
        return getattr(os, name)

    def fsync(self, descriptor: int) -> None:
        os.fsync(descriptor)
        self._steps.step()


def run_subtree(*, start: Callable[[], None], root: str, arguments: list[str], die_at: int) -> dict[str, int]:
    """How many steps it had, for one that was not to die, and how it ended."""
    steps = Steps(die_at)
    steps.watch()
    start()
    code = Here(Path(root)).run(*arguments).code
    return {"steps": steps.count, "code": code}
