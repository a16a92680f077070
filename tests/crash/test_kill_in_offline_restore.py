"""An offline restore killed at every step on the file system: the old files or the new ones, whole; then run again."""

import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from logkeep.kafka.offline_restore import staging
from tests.crash.points import DONE, KILLED, in_child
from tests.crash.seeds import seeded_part
from tests.crash.system_calls import SystemCalls
from tests.support.kafka.handmade_batches import dense
from tests.support.kafka.offline_restore import Backed, backed_up, made_target, offline, tree
from tests.support.kafka.slow_records import Slow, batch_of

_CALLS = ("write", "writev", "fsync", "rename", "mkdir", "unlink", "rmdir", "ftruncate", "chmod")
_NAMES = ("orders-0", "orders-1")
_SHARE = 8


class Prepared:
    """A backup, an empty target, and what a restore makes of it."""

    def __init__(self, home: Path, *, exchange: bool) -> None:
        self._home, self._exchange = home, exchange
        open_one = batch_of(0, [Slow(0, value=b"a")], attributes=0x10, producer=7)
        logs = {"orders-0": [open_one], "orders-1": [dense(b, 5, producer=4).encode() for b in range(40, 60, 5)]}
        self.backed: Backed = backed_up(home, logs)
        self.old = made_target(home / "old", _NAMES)
        assert self.run(self.copy("first"), 0) == DONE  # it makes directories of the repository that are there later
        done = self.copy("done")
        assert self.run(done, 0, told=home / "count") == DONE
        self.new, self.steps = tree(done), int((home / "count").read_text())

    def copy(self, name: str) -> Path:
        shutil.copytree(self.old, self._home / name)
        return self._home / name

    def run(self, root: Path, die_at: int, told: Path | None = None) -> str:
        def restore() -> None:
            steps = SystemCalls(_CALLS, die_at, told)
            steps.watch()
            swap: Callable[..., Any] = staging._exchanged if self._exchange else lambda *_: False
            staging._exchanged = steps.watched(swap)
            assert offline(self.backed.place, self.backed.backup, [root], segment_bytes=200).good
            steps.tell()

        return in_child(restore)

    def check(self, die_at: int) -> None:
        root = self.copy(f"killed-{die_at}")
        assert self.run(root, die_at) == KILLED
        for name in _NAMES:
            self._whole(root, name)
        assert self.run(root, 0) == DONE
        assert tree(root) == self.new, f"killed at {die_at}"
        shutil.rmtree(root)

    def _whole(self, root: Path, name: str) -> None:
        """A broker that is started now finds one or the other; where names cannot be exchanged, perhaps neither."""
        new = {path: data for path, data in self.new.items() if path.startswith(name)}
        found = {path: data for path, data in tree(root).items() if path.startswith(f"{name}/")}
        old = {path: data for path, data in tree(self.old).items() if path.startswith(name)}
        assert found in ([new, old] if self._exchange else [new, old, {}])


@pytest.fixture(scope="module", params=[True, False], ids=["exchanged", "moved"])
def prepared(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Prepared:
    return Prepared(tmp_path_factory.mktemp("offline"), exchange=request.param)


def test_there_are_steps_to_die_at(prepared: Prepared) -> None:
    assert prepared.steps > 60
    assert not [path for path in prepared.new if "-delete/" in path]


def test_killed_and_run_again(prepared: Prepared) -> None:
    for point in seeded_part("offline restore", list(range(1, prepared.steps + 1)), _SHARE):
        prepared.check(point)


@pytest.mark.soak
def test_killed_at_every_step(prepared: Prepared) -> None:
    for point in range(1, prepared.steps + 1):
        prepared.check(point)
