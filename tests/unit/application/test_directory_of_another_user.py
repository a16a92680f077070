"""A restore of an application into a directory of another user: what that user has planted there takes no effect."""

from pathlib import Path

import pytest

from logkeep.application.data_directory import require_own_directory
from logkeep.application.directory_restore import check_directory, restore_directory, target_of
from logkeep.checkpoint.archive.take import TakeOptions, take
from logkeep.checkpoint.restore.plan import ApplicationRestorePlan
from logkeep.checkpoint.restore.run import prepare
from logkeep.engine.inline import InlineEngine
from logkeep.errors import OtherOwner
from logkeep.model.ids import BackupId
from logkeep.repository.chain.commits import read_chain
from tests.crash.points import DONE, in_child
from tests.support.owners import OWNER, as_user, give, needs_two_users, open_home, untouched, victim
from tests.support.scripted_application import ScriptedApplication, World

pytestmark = needs_two_users


@pytest.fixture
def world() -> World:
    return World()


def _plan(world: World) -> ApplicationRestorePlan:
    app = ScriptedApplication(world, 1)
    world.drain(take(world.place, app, TakeOptions(BackupId(7)), world.clock, world.tokens))
    return prepare(world.place, read_chain(world.place), 7)


def _restore(world: World, plan: ApplicationRestorePlan, directory: Path) -> None:
    restore_directory(
        world.place, plan, directory, 0, world.clock, world.tokens, lambda _: InlineEngine(), lambda _: False
    )


def _plant(directory: Path, prey: Path) -> Path:
    """A swap that seems interrupted: its next step moves everything here into a directory of root."""
    (directory / "restore").mkdir(parents=True)
    (directory / "restore/ready").write_text("x")
    (directory / "restore/application.json").write_text("{}")
    (directory / "zz.sh").write_text("run by root")
    (directory / "before-x").symlink_to(prey)
    return give(directory)


def test_nothing_is_moved_through_a_link_of_the_owner(world: World) -> None:
    plan = _plan(world)
    with open_home() as home:
        prey, data = victim(home / "prey"), _plant(home / "data", home / "prey")
        before = sorted(data.rglob("*"))
        with pytest.raises(OtherOwner, match="belongs to user nobody") as refused:
            _restore(world, plan, data)
        assert f"sudo -u '#{OWNER}'" in refused.value.remedy
        assert untouched(prey)
        assert sorted(data.rglob("*")) == before


def test_it_is_refused_before_a_question_is_asked(world: World) -> None:
    plan = _plan(world)
    with open_home() as home:
        data = give(_made(home / "data"))
        with pytest.raises(OtherOwner):
            check_directory(data, target_of(data), plan, replace=True)


@pytest.mark.parametrize("name", ["data", "data/below", "above/data"])
def test_other_users_must_not_decide_where_a_restore_of_root_works(world: World, name: str) -> None:
    """Every user can write to the directory, to the one in which it is made, or to the one above it."""
    with open_home() as home:
        _made(home / name.split("/", maxsplit=1)[0]).chmod(0o777)
        if name.startswith("above"):
            _made(home / name)
        with pytest.raises(OtherOwner, match="every user can write"):
            _restore(world, _plan(world), home / name)
        assert not list(home.rglob("application.json"))
        assert (home / name).exists() != (name == "data/below")


def test_the_owner_and_a_new_directory_among_temporary_files_are_accepted(world: World) -> None:
    plan = _plan(world)
    with open_home() as home:
        _made(home / "shared").chmod(0o1777)
        _restore(world, plan, home / "shared/data")
        assert (home / "shared/data/application.json").exists()
        data = give(_made(home / "theirs"))
        assert in_child(as_user(lambda: require_own_directory(data))) == DONE


def _made(path: Path) -> Path:
    path.mkdir(mode=0o755)
    return path
