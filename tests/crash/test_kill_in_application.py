"""The failure scenarios S1 to S8 on the log in files: a real process is killed at that moment, and started again."""

import os
import signal
import time
from collections.abc import Iterator
from contextlib import contextmanager
from multiprocessing import get_context
from pathlib import Path

import pytest

from logkeep.application.application_process import HOLD_AT, KILL_AT
from logkeep.application.control import SendRequest
from logkeep.application.control_client import ControlClient
from logkeep.application.program import execute
from logkeep.errors import ClusterError
from logkeep.repository.access import open_repository
from logkeep.repository.chain.commits import SourceRef
from logkeep.store.local.store import LocalStore
from tests.support.processes import PATIENCE_S, wait_for
from tests.support.running_application import ask, bank, copies, ended, new_repository

_CONTEXT = get_context("fork")
BEFORE_CREATED, COPY_BEGINS, COPYING, RECEIPT = (
    "before created",
    "copy: open the store",
    "log end",
    "copy: receipt stored",
)


def _program(data: Path, repository: Path, environ: dict[str, str]) -> None:
    os.environ.update(environ)
    os._exit(execute(bank(), ["run", "--data", str(data), "--repository", f"file://{repository}"]))


class _World:
    def __init__(self, directory: Path) -> None:
        self.data, self.repository = directory / "data", directory / "repository"
        new_repository(self.repository)
        self.port = ControlClient(self.data)

    @property
    def place(self) -> SourceRef:
        return open_repository(LocalStore(self.repository)).place("bank")

    @contextmanager
    def process(self, *, kill_at: str = "", hold_at: str = "") -> Iterator["_Process"]:
        environ = {KILL_AT: f"0/{kill_at}", HOLD_AT: f"0/{hold_at}"}
        child = _CONTEXT.Process(target=_program, args=(self.data, self.repository, environ))
        child.start()
        try:
            wait_for(self._answers, "the application")
            yield _Process(child)
        finally:
            child.kill()
            child.join()

    def _answers(self) -> bool:
        try:
            self.port.facts()
        except (ClusterError, OSError):
            return False
        return True

    def work(self, count: int) -> None:
        for number in range(count):
            sent = SendRequest("move", f"a{number}", {"amount": 1, "to": f"b{number}"}, f"r{time.monotonic_ns()}")
            self.port.send(sent)

    def begin(self, backup_id: int, on_failover: str = "fail", partitions: tuple[int, ...] = (1, 0)) -> None:
        create = ask(self.place, self.port, backup_id, on_failover=on_failover)  # type: ignore[arg-type] # one of two
        for partition in partitions:
            self.port.create(partition, create)
        self.create = create

    def created(self, backup_id: int) -> bool:
        return 0 in self.port.answers(backup_id)

    def forget_state(self) -> None:
        """The next leader replays its log from the beginning."""
        for path in self.data.glob("p*/state.sqlite*"):
            path.unlink()


class _Process:
    def __init__(self, child: "_CONTEXT.Process") -> None:  # type: ignore[name-defined] # a class of the context
        self._child = child

    def died(self) -> None:
        """Wait until it has killed itself."""
        self._child.join(PATIENCE_S)
        assert self._child.exitcode == -signal.SIGKILL

    def kill(self) -> None:
        self._child.kill()
        self._child.join()


@pytest.fixture
def world(tmp_path: Path) -> _World:
    return _World(tmp_path)


def _uncommitted(world: _World, **moment: str) -> None:
    """The leader dies before `created` is durable; the next one processes the create again."""
    with world.process(**moment) as process:
        world.work(6)
        world.begin(4, partitions=(0,))
        process.died()
    with world.process():
        for partition in (0, 1):
            world.port.create(partition, world.create)  # the coordinator repeats what was not answered
        assert ended(world.place, 4).state == "completed"
        world.work(3)


def test_s1_created_not_committed_and_nothing_copied(world: _World) -> None:
    _uncommitted(world, kill_at=BEFORE_CREATED, hold_at=COPY_BEGINS)
    assert [(copy.partition, copy.outcome) for copy in copies(world.place, 4) if copy.partition == 0] == [
        (0, "completed")
    ]


def test_s2_created_not_committed_while_copying(world: _World) -> None:
    _uncommitted(world, kill_at=COPYING, hold_at=BEFORE_CREATED)
    assert [copy.term for copy in copies(world.place, 4) if copy.partition == 0] == [2]


def test_s3_created_not_committed_and_the_copy_complete(world: _World) -> None:
    _uncommitted(world, kill_at=RECEIPT, hold_at=BEFORE_CREATED)
    first, second = (copy for copy in copies(world.place, 4) if copy.partition == 0)
    assert (first.term, second.term) == (1, 2)
    assert (first.position, first.cut_end, first.state_digest) == (second.position, second.cut_end, second.state_digest)


def _committed(world: _World, hold_at: str, *, replay: bool, on_failover: str = "fail") -> str:
    """The leader dies after `created`, with its copy not complete; how the backup ends."""
    with world.process(hold_at=hold_at) as process:
        world.work(6)
        world.begin(4, on_failover)
        wait_for(lambda: world.created(4), "the checkpoint")
        world.work(4)
        process.kill()
    if replay:
        world.forget_state()
    with world.process():
        settled = ended(world.place, 4)
        world.work(2)
        assert "the leader" in settled.reason or settled.state == "completed"
        return str(settled.state)


def test_s4_r52_created_committed_while_copying(world: _World) -> None:
    assert _committed(world, COPYING, replay=True) == "failed"
    assert [copy.outcome for copy in copies(world.place, 4) if copy.partition == 0] == ["failed"]


def test_s5_the_same_with_a_state_behind_the_checkpoint(world: _World) -> None:
    assert _committed(world, COPYING, replay=False) == "failed"


def test_s6_created_committed_and_nothing_copied(world: _World) -> None:
    assert _committed(world, COPY_BEGINS, replay=True) == "failed"


def test_s7_the_same_with_a_state_behind_the_checkpoint(world: _World) -> None:
    assert _committed(world, COPY_BEGINS, replay=False) == "failed"


def test_a_new_leader_retakes_the_copy_if_the_request_wants_it(world: _World) -> None:
    assert _committed(world, COPYING, replay=False, on_failover="retake") == "completed"
    (copy,) = (copy for copy in copies(world.place, 4) if copy.partition == 0)
    assert (copy.term, copy.outcome) == (2, "completed")
    with world.process():
        world.begin(5)
        assert ended(world.place, 5).state == "completed"
