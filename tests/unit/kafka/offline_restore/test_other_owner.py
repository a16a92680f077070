"""Root restores segment files into the directories of a broker that another user runs: with his rights only."""

import os
from pathlib import Path
from typing import Any

import pytest

from logkeep.engine.threads import ThreadedEngine
from logkeep.errors import LogkeepError, OtherOwner
from logkeep.kafka.offline_restore import staging
from logkeep.kafka.offline_restore.run import restore_offline
from logkeep.kafka.offline_restore.staging import staged_name
from logkeep.model.time import random_token, utc_now
from tests.crash.points import DONE, in_child
from tests.support.kafka.handmade_batches import dense
from tests.support.kafka.offline_restore import Backed, backed_up, made_target, offline, tree, wished
from tests.support.owners import OTHER, OWNER, give, needs_two_users, untouched, victim, without_setuid

pytestmark = needs_two_users
_NAMES = ("orders-0", "orders-1")


@pytest.fixture(scope="module")
def backed(tmp_path_factory: pytest.TempPathFactory) -> Backed:
    logs = {name: [dense(base, 5).encode() for base in range(0, 20, 5)] for name in _NAMES}
    return backed_up(tmp_path_factory.mktemp("backed"), logs)


@pytest.fixture
def root(tmp_path: Path) -> Path:
    return give(made_target(tmp_path / "data", _NAMES))


def test_every_file_belongs_to_the_broker(backed: Backed, root: Path) -> None:
    engine = ThreadedEngine(2)
    report = restore_offline(wished(backed.backup, [root]), backed.place, engine, utc_now, random_token)
    assert report.good
    assert {path.stat().st_uid for path in (root, *root.rglob("*"))} == {OWNER}
    assert offline(backed.place, backed.backup, [root]).logs[0].again


def test_a_directory_that_is_exchanged_for_a_link_is_neither_filled_nor_given_away(
    backed: Backed, root: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    prey, real = victim(tmp_path / "victim"), staging.put_file

    def exchanged(staged: Any, *more: Any, **named: Any) -> None:
        path = Path(getattr(staged, "path", staged))
        path.rename(root / "away")
        path.symlink_to(prey)
        real(staged, *more, **named)

    monkeypatch.setattr(staging, "put_file", exchanged)
    with pytest.raises(LogkeepError):
        offline(backed.place, backed.backup, [root])
    assert untouched(prey)


@pytest.mark.parametrize("where", ["lock", "partition", "segment", "staged"])
def test_a_link_in_the_way(backed: Backed, root: Path, tmp_path: Path, where: str) -> None:
    prey = victim(tmp_path / "victim")
    path = {
        "lock": root / ".lock",
        "partition": root / "orders-1",
        "segment": root / "orders-1" / f"{0:020d}.log",
        "staged": root / staged_name("orders", 1, "0" * 16),
    }[where]
    if path.exists():
        path.rename(tmp_path / "away")
    path.symlink_to(tmp_path / "away" if where in ("lock", "partition", "segment") else prey)
    give(root)
    before = tree(root)
    with pytest.raises(OtherOwner, match="it is a link"):
        offline(backed.place, backed.backup, [root])
    assert (tree(root), untouched(prey)) == (before, True)


@pytest.mark.parametrize("name", ["orders-1", f"orders-1/{0:020d}.index", ".lock"])
def test_a_file_of_another_user(backed: Backed, root: Path, name: str) -> None:
    os.chown(root / name, OTHER, OTHER)
    before = tree(root)
    with pytest.raises(OtherOwner, match=f"it belongs to user id {OTHER}") as caught:
        offline(backed.place, backed.backup, [root])
    assert (caught.value.exit_code, tree(root)) == (52, before)


def test_a_path_that_another_user_can_redirect(backed: Backed, tmp_path: Path) -> None:
    """The owner of the directory above makes the broker's directory a link to one of a third user."""
    prey = give(made_target(tmp_path / "prey", _NAMES), OTHER)
    (home := tmp_path / "home").mkdir()
    (home / "data").symlink_to(prey)
    give(home)
    before = tree(prey)
    with pytest.raises(OtherOwner, match="can make this path lead elsewhere") as caught:
        offline(backed.place, backed.backup, [home / "data"])
    assert (caught.value.exit_code, tree(prey)) == (52, before)


def test_a_user_id_that_cannot_be_taken(backed: Backed, root: Path) -> None:
    """Root of a container without CAP_SETUID: refused before the first change, and never done as root."""
    before = tree(root)

    def restored() -> None:
        without_setuid()
        with pytest.raises(OtherOwner, match="cannot become that user") as caught:
            offline(backed.place, backed.backup, [root])
        assert (caught.value.exit_code, "sudo -u" in caught.value.remedy) == (52, True)

    assert in_child(restored) == DONE
    assert tree(root) == before


def test_only_files_of_a_broker_or_a_restore_are_discarded(backed: Backed, root: Path) -> None:
    left = root / staged_name("orders", 0, "0" * 16)
    left.mkdir()
    for name in (f"{0:020d}.log", "partition.metadata", "notes.txt"):
        (left / name).write_text("")
    give(root)
    assert offline(backed.place, backed.backup, [root]).good
    assert [path.name for path in left.iterdir()] == ["notes.txt"]
