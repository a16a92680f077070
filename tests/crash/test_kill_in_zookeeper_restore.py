"""A restore of ZooKeeper killed after every step on the file system: the old data, the new, or nothing that starts.

Then it is continued, and rolled back; and these are killed at every step too. The rule by which a state is judged here
is held against real servers in tests/integration/zookeeper/test_restore_states.py.

In the scene `owned` the directories belong to another user: root restores, and root or that user ends it. Every
directory is exchanged for a link after every step, too: no file of another directory is touched.
"""

import os
import shutil
import signal
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path

import pytest

from logkeep.zookeeper.restore.disk import Disk
from logkeep.zookeeper.restore.finish import continue_restore, roll_back
from logkeep.zookeeper.restore.prepare import prepare
from logkeep.zookeeper.restore.run import carry_out
from logkeep.zookeeper.restore.target.directories import JOURNAL, MARKER, marker_text
from logkeep.zookeeper.restore.values import Form, ServerTarget, ZooKeeperRestoreOptions
from tests.crash.points import DONE, KILLED, in_child
from tests.crash.seeds import seeded_part
from tests.support.owners import OWNER, as_user, give, open_home, untouched, victim
from tests.support.zookeeper.handmade_server import files, made_backup, old_server

Files = dict[str, bytes]
_SOME, _FEW = 6, 2
"""Steps that are chosen anew for each run, of every scene; `make soak` takes all."""


class Dying:
    """Ends the process after so many steps; 0 never."""

    def __init__(self, die_after: int) -> None:
        self.steps, self._die_after = 0, die_after

    def __call__(self, _step: str) -> None:
        self.steps += 1
        if self.steps == self._die_after:
            os.kill(os.getpid(), signal.SIGKILL)


class Scene:
    """The directories of some members, and what a restore makes of them."""

    def __init__(
        self, home: Path, *, members: int, separate: bool, fresh: bool, form: Form, owned: bool = False
    ) -> None:
        self.home, self._members, self._separate, self._form = home, members, separate, form
        self._fresh, self.owned = fresh, owned and os.geteuid() == 0
        self._make(home / "old")
        self.old = self.data(home / "old")
        done = self.copy("done")
        self.steps = self._counted(lambda disk: self.restore(done, disk))
        self.new = self.data(done)
        again = self.copy_of(done, "again")
        self.back_steps = self._counted(lambda disk: self.back(again, disk))
        assert self.new != self.old

    def _make(self, root: Path) -> None:
        for number in range(self._members):
            member = root / str(number)
            member.mkdir(parents=True)
            (member / "logs").mkdir()
            if not self._fresh:
                old_server(member / "data", self._logs(root, number), epoch=3, epochs=self._members > 1)
            else:
                (member / "data").mkdir()
        self._given(root)

    def _given(self, root: Path) -> None:
        if self.owned:
            give(root)

    def _logs(self, root: Path, number: int) -> Path:
        return root / str(number) / ("logs" if self._separate else "data")

    def targets(self, root: Path) -> tuple[ServerTarget, ...]:
        return tuple(
            ServerTarget(data_dir=root / str(n) / "data", log_dir=self._logs(root, n)) for n in range(self._members)
        )

    def copy(self, name: str) -> Path:
        return self.copy_of(self.home / "old", name)

    def copy_of(self, root: Path, name: str) -> Path:
        """With the paths in the journal put right."""
        target = self.home / name
        shutil.copytree(root, target)
        for journal in target.rglob(f"*{JOURNAL}*"):
            journal.write_text(journal.read_text().replace(f"{root}/", f"{target}/"))
        self._given(target)
        return target

    def restore(self, root: Path, disk: Disk) -> None:
        view = made_backup(epoch=2)
        prepared = prepare(view, view.path(), ZooKeeperRestoreOptions(targets=self.targets(root), form=self._form))
        carry_out(prepared, replace=True, token=lambda: "0" * 16, disk=disk)

    def forward(self, root: Path, disk: Disk) -> None:
        continue_restore(self.targets(root)[-1], disk=disk)

    def back(self, root: Path, disk: Disk) -> None:
        roll_back(self.targets(root)[-1], disk=disk)

    def data(self, root: Path) -> list[Files]:
        """What each server would find."""
        return [self._of_member(root, number) for number in range(self._members)]

    def _of_member(self, root: Path, number: int) -> Files:
        data, logs = root / str(number) / "data" / "version-2", self._logs(root, number) / "version-2"
        return {f"data/{name}": content for name, content in files(data).items()} | (
            {f"logs/{name}": content for name, content in files(logs).items()} if self._separate else {}
        )

    def check(self, root: Path) -> None:
        """No server starts on a mixture, and no two servers on different sides."""
        sides = set()
        for number, found in enumerate(self.data(root)):
            marker = f"{'logs' if self._separate else 'data'}/{MARKER}"
            content = found.pop(marker, None)
            if content is not None and content.endswith(b"rolling it back.\n"):
                continue
            assert content is None or len(content) == 0, "half a marker"
            assert found in (self.old[number], self.new[number]), f"member {number} starts on {sorted(found)}"
            sides.add(found == self.new[number])
        assert len(sides) < 2 or self.old == self.new

    def killed(self, root: Path, action: Callable[[Path, Disk], None], die_after: int) -> str:
        return in_child(lambda: action(root, Disk(Dying(die_after))))

    def ends(self, root: Path, *, new: bool, by_owner: bool = False) -> None:
        """Continue or roll back; afterwards nothing is left between."""
        journal = Path(root / "0" / "data" / JOURNAL)
        if journal.exists():
            end = partial(self.forward if new else self.back, root, Disk())
            assert in_child(as_user(end) if by_owner else end) == DONE
        if self.owned:
            assert {path.stat().st_uid for path in root.rglob("*")} == {OWNER}
        found = self.data(root)
        assert found == self.old if not new else found in (self.old, self.new)
        for path in root.rglob("version-2*"):
            assert path.name == "version-2" or any(path.iterdir()), f"{path} is left empty"

    def _counted(self, action: Callable[[Disk], None]) -> int:
        dying = Dying(0)
        action(Disk(dying))
        return dying.steps


_SCENES = {
    "one": {"members": 1, "separate": False, "fresh": False, "form": Form.EXACT},
    "one-new": {"members": 1, "separate": True, "fresh": True, "form": Form.EXACT},
    "separate": {"members": 1, "separate": True, "fresh": False, "form": Form.ORIGINAL},
    "ensemble": {"members": 3, "separate": True, "fresh": False, "form": Form.EXACT},
    "owned": {"members": 1, "separate": True, "fresh": False, "form": Form.EXACT, "owned": True},
}


@pytest.fixture(scope="module", params=list(_SCENES))
def scene(request: pytest.FixtureRequest) -> Iterator[Scene]:
    with open_home() as home:
        yield Scene(home, **_SCENES[request.param])  # type: ignore[arg-type] # of one table


@pytest.fixture(scope="module")
def owned_scene() -> Iterator[Scene]:
    with open_home() as home:
        yield Scene(home, **_SCENES["owned"])  # type: ignore[arg-type] # of one table


def _part(what: str, last: int, count: int) -> list[int]:
    return seeded_part(what, list(range(1, last + 1)), -(-last // count))


def _ended_from(scene: Scene, points: list[int]) -> None:
    """Before the first file is moved a continue brings the old data back; from then on the new."""
    outcomes = []
    for point in points:
        root = scene.copy(f"killed-{point}")
        assert scene.killed(root, scene.restore, point) == KILLED
        scene.check(root)
        other = scene.copy_of(root, f"other-{point}")
        scene.ends(root, new=True, by_owner=scene.owned and point % 2 == 0)
        scene.ends(other, new=False, by_owner=scene.owned and point % 2 == 1)
        outcomes.append(scene.data(root) == scene.new)
        shutil.rmtree(root)
        shutil.rmtree(other)
    assert outcomes == sorted(outcomes), "once it can be continued it always can"
    assert outcomes[-1]


def _rolled_back_from(scene: Scene, points: list[int]) -> None:
    for point in points:
        root = scene.copy_of(scene.home / "done", f"back-{point}")
        assert scene.killed(root, scene.back, point) == KILLED
        scene.check(root)
        other = scene.copy_of(root, f"back-other-{point}")
        scene.ends(root, new=True, by_owner=scene.owned and point % 2 == 0)
        scene.ends(other, new=False, by_owner=scene.owned and point % 2 == 1)
        shutil.rmtree(root)
        shutil.rmtree(other)


def test_killed(scene: Scene) -> None:
    points = _part("killed", scene.steps - 1, _FEW if scene.owned else _SOME)
    _ended_from(scene, [*points, scene.steps])


@pytest.mark.soak
def test_killed_after_every_step(scene: Scene) -> None:
    _ended_from(scene, list(range(1, scene.steps + 1)))


def test_killed_while_it_is_rolled_back(scene: Scene) -> None:
    _rolled_back_from(scene, _part("rolled back", scene.back_steps, _FEW if scene.owned else _SOME))


@pytest.mark.soak
def test_killed_after_every_step_while_it_is_rolled_back(scene: Scene) -> None:
    _rolled_back_from(scene, list(range(1, scene.back_steps + 1)))


@pytest.mark.soak
@pytest.mark.parametrize("by_owner", [False, True], ids=["root", "owner"])
def test_killed_after_every_step_and_ended_by(owned_scene: Scene, by_owner: bool) -> None:
    """Every point, both ends, by both users."""
    scene = owned_scene
    for action, steps, begin in ((scene.restore, scene.steps, "old"), (scene.back, scene.back_steps, "done")):
        for point in range(1, steps + 1):
            for new in (True, False):
                root = scene.copy_of(scene.home / begin, f"by-{point}-{new}")
                assert scene.killed(root, action, point) == KILLED
                scene.ends(root, new=new, by_owner=by_owner and scene.owned)
                shutil.rmtree(root)


class Exchanging:
    """After one step, puts a link to a directory of the operator's in the place of every directory of one kind."""

    def __init__(self, root: Path, kind: str, at: int, prey: Path) -> None:
        self.steps, self._root, self._kind, self._at, self._prey = 0, root, kind, at, prey

    def __call__(self, _step: str) -> None:
        self.steps += 1
        if self.steps == self._at:
            for path in [path for path in self._root.rglob(self._kind) if path.is_dir() and not path.is_symlink()]:
                path.rename(path.with_name(f"away-{path.name}"))
                path.symlink_to(self._prey)

    @staticmethod
    def undo(root: Path) -> None:
        for path in list(root.rglob("away-*")):
            here = path.with_name(path.name.removeprefix("away-"))
            if here.is_symlink():
                here.unlink()
            elif here.is_dir():
                shutil.rmtree(here)  # a new one that took the place
            path.rename(here)


_KINDS = ("version-2", "version-2.new-*", "version-2.before-*", "data", "logs")


def _exchanged(scene: Scene, kind: str, points: dict[str, list[int]]) -> None:
    """Nothing is written, moved or deleted behind the link; without it, the restore can be ended."""
    for begin, chosen in points.items():
        action = scene.restore if begin == "old" else scene.back
        for point in chosen:
            root, prey = scene.copy_of(scene.home / begin, f"exchanged-{point}"), victim(scene.home / "prey")
            in_child(partial(action, root, Disk(Exchanging(root, kind, point, prey))))
            assert untouched(prey), f"{kind} at {point} of {begin}"
            Exchanging.undo(root)
            scene.ends(root, new=False, by_owner=scene.owned and point % 2 == 0)
            shutil.rmtree(root)
            shutil.rmtree(prey)


@pytest.mark.parametrize("kind", _KINDS)
def test_a_directory_is_exchanged_for_a_link(owned_scene: Scene, kind: str) -> None:
    restore = _part(f"{kind} exchanged", owned_scene.steps, 1)
    back = _part(f"{kind} exchanged back", owned_scene.back_steps, 1)
    _exchanged(owned_scene, kind, {"old": restore, "done": back})


@pytest.mark.soak
@pytest.mark.parametrize("kind", _KINDS)
def test_a_directory_is_exchanged_for_a_link_after_every_step(scene: Scene, kind: str) -> None:
    steps = {"old": list(range(1, scene.steps + 1)), "done": list(range(1, scene.back_steps + 1))}
    _exchanged(scene, kind, steps)


def test_killed_and_run_again(scene: Scene) -> None:
    """While it is staged, a second run cleans up after the first one."""
    root = scene.copy("staging")
    assert scene.killed(root, scene.restore, 8) == KILLED
    scene.restore(root, Disk())
    assert scene.data(root) == scene.new
    assert not list(root.rglob("version-2.new-*"))
    shutil.rmtree(root)


def _twice(scene: Scene, point: int, second: int, *, forward: bool) -> bool:
    """Killed, and the continue or rollback killed as well; whether there was something to kill."""
    root = scene.copy(f"twice-{point}")
    try:
        assert scene.killed(root, scene.restore, point) == KILLED
        if not (root / "0" / "data" / JOURNAL).exists():
            return False
        if scene.killed(root, scene.forward if forward else scene.back, second) != KILLED:
            return False
        scene.check(root)
        scene.ends(root, new=not forward)
        return True
    finally:
        shutil.rmtree(root)


@pytest.mark.parametrize("forward", [True, False], ids=["continue", "rollback"])
def test_killed_twice(scene: Scene, forward: bool) -> None:
    """Continued, killed, rolled back; and the other way round."""
    for point in _part("killed twice", scene.steps, 1 if scene.owned else _FEW):
        for second in (2, 9, 23):
            if not _twice(scene, point, second, forward=forward):
                break


@pytest.mark.soak
@pytest.mark.parametrize("forward", [True, False], ids=["continue", "rollback"])
def test_killed_twice_at_many_steps(scene: Scene, forward: bool) -> None:
    for point in range(1, scene.steps + 1, 3):
        for second in (1, 4, 9, 16, 25, 36, 49, 64, 81):
            if not _twice(scene, point, second, forward=forward):
                break


def test_the_marker_says_what_to_do() -> None:
    text = marker_text("1", "/data").decode()
    assert "continuing" in text
    assert "rolling it back" in text
    assert not text.startswith("ZKLG")
