"""An offline restore killed at every step on the file system: the old files or the new ones, whole; then run again."""

import os
import shutil
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from logkeep.directories.owner_process import OwnerProcess
from logkeep.kafka.offline_restore import staging
from tests.crash.points import DONE, KILLED, in_child
from tests.crash.seeds import seeded_part
from tests.crash.system_calls import SystemCalls
from tests.support.kafka.handmade_batches import dense
from tests.support.kafka.offline_restore import Backed, backed_up, made_target, offline, tree
from tests.support.kafka.slow_records import Slow, batch_of
from tests.support.owners import OWNER, as_user, give, open_home, untouched, victim

_CALLS = ("write", "writev", "fsync", "rename", "mkdir", "unlink", "rmdir", "ftruncate", "fchmod")
_NAMES = ("orders-0", "orders-1")
_SHARE = 8


class Prepared:
    """A backup, an empty target, and what a restore makes of it."""

    def __init__(self, home: Path, *, exchange: bool, owned: bool) -> None:
        self._home, self._exchange, self.owned = home, exchange, owned and os.geteuid() == 0
        open_one = batch_of(0, [Slow(0, value=b"a")], attributes=0x10, producer=7)
        logs = {"orders-0": [open_one], "orders-1": [dense(b, 5, producer=4).encode() for b in range(40, 60, 5)]}
        self.backed: Backed = backed_up(home, logs)
        self.old = made_target(home / "old", _NAMES)
        if self.owned:  # the repository too: that user runs the same command again
            give(home)
        assert self.run(self.copy("first"), 0) == DONE  # it makes directories of the repository that are there later
        done = self.copy("done")
        assert self.run(done, 0, told=home / "count") == DONE
        self.new, self.steps = tree(done), int((home / "count").read_text())

    def copy(self, name: str) -> Path:
        shutil.copytree(self.old, self._home / name)
        return give(self._home / name) if self.owned else self._home / name

    def run(
        self,
        root: Path,
        die_at: int,
        told: Path | None = None,
        *,
        instead: Callable[[], None] | None = None,
        by_owner: bool = False,
    ) -> str:
        def restore() -> None:
            steps = SystemCalls(_CALLS, die_at, told, instead)
            steps.watch()
            OwnerProcess._send = steps.watched(OwnerProcess._send)  # type: ignore[method-assign] # in a forked process
            swap: Callable[..., Any] = staging._exchanged if self._exchange else lambda *_: False
            staging._exchanged = steps.watched(swap)
            assert offline(self.backed.place, self.backed.backup, [root], segment_bytes=200).good
            steps.tell()

        return in_child(as_user(restore) if by_owner else restore)

    def check(self, die_at: int) -> None:
        root = self.copy(f"killed-{die_at}")
        assert self.run(root, die_at) == KILLED
        for name in _NAMES:
            self._whole(root, name)
        self._check_owner(root)
        assert self.run(root, 0, by_owner=self.owned and die_at % 2 == 0) == DONE
        assert tree(root) == self.new, f"killed at {die_at}"
        self._check_owner(root)
        shutil.rmtree(root)

    def _check_owner(self, root: Path) -> None:
        if self.owned:
            assert {path.stat().st_uid for path in (root, *root.rglob("*"))} == {OWNER}
            give(self._home / "repository")  # what root has stored there, the owner must be able to read

    def exchange(self, at: int, pattern: str) -> None:
        """A link to another directory in the place of one of these: nothing happens behind it."""
        root, prey = self.copy(f"exchanged-{at}"), victim(self._home / "prey")

        def links() -> None:
            for path in [path for path in self._home.glob(pattern.format(root.name)) if path.is_dir()]:
                path.rename(path.with_name(f"away-{path.name}"))
                path.symlink_to(prey)

        self.run(root, at, instead=links)
        assert untouched(prey), f"{pattern} at {at}"
        for path in [path for path in self._home.rglob("*") if path.is_symlink()]:
            path.unlink()
        for path in [path for path in self._home.rglob("away-*") if path.is_dir()]:
            here = path.with_name(path.name.removeprefix("away-"))
            if here.exists():
                shutil.rmtree(path)  # the restore has put another one there
            else:
                path.rename(here)
        assert self.run(root, 0) == DONE
        assert {path: data for path, data in tree(root).items() if "-delete/" not in path} == self.new
        shutil.rmtree(root)
        shutil.rmtree(prey)

    def _whole(self, root: Path, name: str) -> None:
        """A broker that is started now finds one or the other; where names cannot be exchanged, perhaps neither."""
        new = {path: data for path, data in self.new.items() if path.startswith(name)}
        found = {path: data for path, data in tree(root).items() if path.startswith(f"{name}/")}
        old = {path: data for path, data in tree(self.old).items() if path.startswith(name)}
        assert found in ([new, old] if self._exchange else [new, old, {}])


@pytest.fixture(scope="module", params=["exchanged", "moved", "owned"])
def prepared(request: pytest.FixtureRequest) -> Iterator[Prepared]:
    with open_home() as home:
        yield Prepared(home, exchange=request.param != "moved", owned=request.param == "owned")


_DIRECTORIES = ("{}", "{}/orders-0", "{}/*-delete")


def test_there_are_steps_to_die_at(prepared: Prepared) -> None:
    assert prepared.steps > 60
    assert not [path for path in prepared.new if "-delete/" in path]


def test_killed_and_run_again(prepared: Prepared) -> None:
    for point in seeded_part(
        "offline restore", list(range(1, prepared.steps + 1)), _SHARE * (6 if prepared.owned else 1)
    ):
        prepared.check(point)


@pytest.mark.parametrize("pattern", _DIRECTORIES)
def test_a_directory_is_exchanged_for_a_link(prepared: Prepared, pattern: str) -> None:
    for point in seeded_part(pattern, list(range(1, prepared.steps + 1)), prepared.steps):
        prepared.exchange(point, pattern)


@pytest.mark.soak
@pytest.mark.parametrize("pattern", _DIRECTORIES)
def test_a_directory_is_exchanged_for_a_link_at_every_step(prepared: Prepared, pattern: str) -> None:
    for point in range(1, prepared.steps + 1):
        prepared.exchange(point, pattern)
        print(f"{pattern}: {point} of {prepared.steps} steps, nothing happened behind the link")


@pytest.mark.soak
def test_killed_at_every_step(prepared: Prepared) -> None:
    for point in range(1, prepared.steps + 1):
        prepared.check(point)
