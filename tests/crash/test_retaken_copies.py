"""A new leader makes the copy that the last one did not complete, if the user wants that: S4 to S7 in files."""

import json
import os
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from logkeep.application.application_process import HOLD_AT
from logkeep.application.control import SendRequest
from logkeep.application.control_client import ControlClient
from logkeep.errors import ClusterError
from logkeep.repository.access import open_repository
from logkeep.store.local.store import LocalStore
from tests.support.cli.processes import ROOT, logkeep
from tests.support.processes import wait_for
from tests.support.running_application import ended, new_repository

_PROGRAM = "from tests.support.running_application import bank; bank().main()"
COPYING, BEFORE_COPYING = "0/log end", "0/copy: open the store"


class _Bank:
    def __init__(self, home: Path) -> None:
        self.home, self.data, self.repository = home, home / "data", home / "repository"
        new_repository(self.repository)
        self.port = ControlClient(self.data)

    @contextmanager
    def running(self, hold_at: str = "") -> Iterator[None]:
        """Killed at the end of the block."""
        where = ["run", "--data", str(self.data), "--repository", f"file://{self.repository}"]
        environ = {**os.environ, HOLD_AT: hold_at, "PYTHONPATH": str(ROOT)}
        with subprocess.Popen(
            [sys.executable, "-c", _PROGRAM, *where], env=environ, stdout=subprocess.DEVNULL
        ) as process:
            try:
                wait_for(self._answers, "the application")
                yield
            finally:
                process.kill()

    def _answers(self) -> bool:
        try:
            return bool(self.port.facts())
        except (ClusterError, OSError):
            return False

    def backup(self, number: int, *more: str) -> str:
        command = ("app", "backup", "bank", "--data", str(self.data), "--id", str(number), "--no-wait", *more)
        done = logkeep(*command, "--repo", str(self.repository), "--json", home=self.home)
        return str(json.loads(done.stdout)["state"])

    def after_a_kill(self, number: int, hold_at: str, *more: str, replay: bool) -> str:
        """How a backup ends whose leader was killed behind the commit of its checkpoint."""
        with self.running(hold_at):
            self.port.send(SendRequest("move", "a1", {"amount": 1, "to": "b1"}))
            assert self.backup(number, *more) == "ongoing"
        if replay:
            for path in self.data.glob("p*/state.sqlite*"):
                path.unlink()
        with self.running():
            return str(ended(open_repository(LocalStore(self.repository)).place("bank"), number).state)


@pytest.mark.parametrize("replay", [True, False], ids=["replayed", "with its state"])
@pytest.mark.parametrize("hold_at", [COPYING, BEFORE_COPYING], ids=["while copying", "before copying"])
def test_s4_s5_s6_s7_end_completed_if_the_user_wants_the_copy_retaken(
    tmp_path: Path, hold_at: str, replay: bool
) -> None:
    bank = _Bank(tmp_path)
    assert bank.after_a_kill(4, hold_at, "--on-failover", "retake", replay=replay) == "completed"
    where = ("--engine", "inline", "--repo", str(bank.repository))
    verified = logkeep("verify", "4", "--level", "cut", *where, home=tmp_path)
    assert verified.returncode == 0, verified.stdout


def test_a_retaken_copy_that_cannot_be_stored_ends_the_backup(tmp_path: Path) -> None:
    """Long before its deadline of ten minutes, with the reason."""
    bank = _Bank(tmp_path)
    objects = bank.repository / "sources" / "bank" / "topics" / "bank.log" / "h0" / "partition=0"
    objects.parent.mkdir(parents=True)
    objects.write_text("not a directory")
    assert bank.after_a_kill(4, BEFORE_COPYING, "--on-failover", "retake", replay=False) == "failed"


def test_a_backup_fails_after_a_failover_if_the_user_chose_nothing(tmp_path: Path) -> None:
    assert _Bank(tmp_path).after_a_kill(4, COPYING, replay=False) == "failed"
