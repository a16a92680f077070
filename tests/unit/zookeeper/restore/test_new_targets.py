"""Directories that hold nothing: what a restore must know and cannot see there, it takes from the backup, or asks."""

from dataclasses import replace
from pathlib import Path
from typing import Any

import msgspec
import pytest

from logkeep.errors import TargetUnsafe, UsageError
from logkeep.zookeeper.model.archived import Member
from logkeep.zookeeper.restore.prepare import prepare
from logkeep.zookeeper.restore.values import Form, ServerTarget, ZooKeeperRestoreOptions, ZooKeeperRestorePlan
from logkeep.zookeeper.timeline.plan import RestorePath, ToEnd, ToTime, ToZxid, plan
from logkeep.zookeeper.timeline.plan import Target as Moment
from logkeep.zookeeper.timeline.survey import LogTimes, survey
from tests.support.zookeeper.handmade_server import MadeView, create, made_backup, old_server

END_MS = 1_700_000_000_005
"""When the last transaction of the made backup was."""
_LONE = Member(name="one", role="standalone")
_TWO_DIRECTORIES = Member(name="one", role="standalone", data_dir="/zk/data", log_dir="/zk/logs")


def _of(*members: Member) -> MadeView:
    view = made_backup(epoch=2)
    view.members = members
    return view


def _planned(view: MadeView, *targets: ServerTarget, **wish: Any) -> ZooKeeperRestorePlan:
    return prepare(view, view.path(), ZooKeeperRestoreOptions(targets=targets, **wish)).planned


def _named(path: Path) -> ServerTarget:
    return ServerTarget(data_dir=path, log_dir=path)


def test_a_wiped_directory_whose_logs_may_lie_elsewhere(tmp_path: Path) -> None:
    planned = _planned(_of(_TWO_DIRECTORIES), ServerTarget(data_dir=tmp_path))
    (error,) = planned.obstacles
    assert isinstance(error, TargetUnsafe)
    assert "/zk/logs" in error.what
    assert "give dataDir twice" in error.remedy


def test_a_log_directory_that_is_named_or_seen(tmp_path: Path) -> None:
    assert _planned(_of(_TWO_DIRECTORIES), _named(tmp_path)).obstacles == ()
    together = msgspec.structs.replace(_TWO_DIRECTORIES, log_dir="/zk/data")
    assert _planned(_of(together), ServerTarget(data_dir=tmp_path)).obstacles == ()
    old_server(tmp_path / "with-logs")
    assert _planned(_of(_TWO_DIRECTORIES), ServerTarget(data_dir=tmp_path / "with-logs")).obstacles == ()


def test_that_no_log_directory_was_named_is_told(tmp_path: Path) -> None:
    told = "no log directory was named"
    assert any(told in each for each in _planned(_of(_LONE), ServerTarget(data_dir=tmp_path)).unchecked)
    assert not any(told in each for each in _planned(_of(_LONE), _named(tmp_path)).unchecked)


@pytest.mark.parametrize(
    "members",
    [
        [Member(name="one", role="leader")],
        [Member(name="one", role="observer")],
        [Member(name="one", voters=3)],
        [Member(name="one", current_epoch=4)],
        [Member(name="one"), Member(name="two")],
    ],
    ids=["leader", "observer", "voters", "epoch", "two"],
)
def test_a_member_of_an_ensemble_stays_one_in_a_new_directory(tmp_path: Path, members: list[Member]) -> None:
    planned = _planned(_of(*members), _named(tmp_path))
    assert planned.epoch is not None
    assert planned.named == planned.epoch << 32
    assert "only 1 of the ensemble's members" in planned.obstacles[0].what
    allowed = _planned(_of(*members), _named(tmp_path), min_epoch=8)
    assert (allowed.epoch, allowed.obstacles) == (9, ())


@pytest.mark.parametrize(
    "member", [_LONE, msgspec.structs.replace(_LONE, current_epoch=4), Member(name="one", voters=1)]
)
def test_a_server_that_stands_alone_does_not_become_a_member_by_its_number(tmp_path: Path, member: Member) -> None:
    (tmp_path / "myid").write_text("1\n")
    planned = _planned(_of(member), _named(tmp_path))
    assert (planned.epoch, planned.obstacles) == (None, ())


@pytest.mark.parametrize("old", [False, True])
def test_an_epoch_that_is_named_for_a_server_that_stands_alone_is_not_passed_over(tmp_path: Path, old: bool) -> None:
    if old:
        old_server(tmp_path)
    with pytest.raises(UsageError, match="seems to be standalone") as caught:
        _planned(_of(_LONE), _named(tmp_path), min_epoch=8)
    assert "--ensemble" in caught.value.remedy
    assert _planned(_of(_LONE), _named(tmp_path), min_epoch=8, ensemble=True).epoch == 9


def test_a_number_beside_nothing_when_nobody_knows_more(tmp_path: Path) -> None:
    for name in ("new", "numbered"):
        (tmp_path / name).mkdir()
    (tmp_path / "numbered" / "myid").write_text("1\n")
    old_server(tmp_path / "old")
    unknown = _of(Member(name="one"))
    assert _planned(unknown, _named(tmp_path / "new")).epoch is None
    assert _planned(unknown, _named(tmp_path / "old")).epoch is None
    assert _planned(unknown, _named(tmp_path / "numbered")).epoch == 3


def test_a_server_that_is_only_looked_at_stands_alone(tmp_path: Path) -> None:
    """As in a drill of a member's backup."""
    planned = _planned(_of(Member(name="one", role="leader")), _named(tmp_path), alone=True)
    assert (planned.epoch, planned.obstacles) == (None, ())


def test_later_zxids_of_the_backup_are_not_given_out_again(tmp_path: Path) -> None:
    """They were in use where the backup comes from, though the directory is new."""
    view = made_backup(more=[create(6, b"/late"), create(7, b"/later")])
    wish = ZooKeeperRestoreOptions(targets=(_named(tmp_path),))
    earlier, whole = (prepare(view, view.path(moment), wish).planned for moment in (ToZxid(6), ToEnd()))
    assert (earlier.zxid, earlier.named) == (6, 8)
    assert (whole.zxid, whole.named) == (7, 7)
    original = prepare(view, view.path(ToZxid(6)), replace(wish, form=Form.ORIGINAL)).planned
    assert (original.named, "zxids-reused" in [each.code for each in original.findings]) == (6, True)


@pytest.mark.parametrize("moment", [ToTime(END_MS + 60_000), ToTime(END_MS), ToTime(END_MS - 1), ToEnd()])
def test_a_time_behind_the_end_of_the_backup_is_told(tmp_path: Path, moment: Moment) -> None:
    view = made_backup()
    path = plan(survey(view), moment, LogTimes(view))
    assert isinstance(path, RestorePath)
    planned = prepare(view, path, ZooKeeperRestoreOptions(targets=(_named(tmp_path),))).planned
    told = [each.what for each in planned.findings if each.code == "time-behind-the-end"]
    assert len(told) == (moment == ToTime(END_MS + 60_000))
    assert all("0x5 (2023-11-14T22:13:20" in what and "22:14:20" in what for what in told)
