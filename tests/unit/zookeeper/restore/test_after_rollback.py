"""Restored, run, rolled back, restored again: numbers that were given out meanwhile are not given out once more."""

from pathlib import Path

import pytest

from logkeep.directories.folder import open_folder
from logkeep.formats.zookeeper.names import log_name
from logkeep.zookeeper.restore.ensemble.survey import survey_of
from logkeep.zookeeper.restore.finish import roll_back
from logkeep.zookeeper.restore.prepare import prepare
from logkeep.zookeeper.restore.run import carry_out
from logkeep.zookeeper.restore.target.directories import set_apart
from logkeep.zookeeper.restore.values import ServerTarget, ZooKeeperRestoreOptions, ZooKeeperRestorePlan
from tests.support.zookeeper.handmade_server import create, log_bytes, made_backup, old_server


def _restored(target: ServerTarget, *, ensemble: bool) -> ZooKeeperRestorePlan:
    view = made_backup()
    prepared = prepare(
        view, view.path(), ZooKeeperRestoreOptions(targets=(target,), ensemble=ensemble, min_epoch=int(ensemble))
    )
    carry_out(prepared, replace=True)
    return prepared.planned


def _planned(target: ServerTarget, *, ensemble: bool) -> ZooKeeperRestorePlan:
    view = made_backup()
    return prepare(
        view, view.path(), ZooKeeperRestoreOptions(targets=(target,), ensemble=ensemble, min_epoch=int(ensemble))
    ).planned


def _ran_until(directory: Path, first: int, last: int) -> None:
    """As if servers had gone on from what was restored."""
    bodies = [create(zxid, b"/after%d" % (zxid & 0xFFFF)) for zxid in range(first, last + 1)]
    (directory / log_name(first)).write_bytes(log_bytes(bodies))


def test_a_lone_server_counts_on(tmp_path: Path) -> None:
    old_server(tmp_path)
    target = ServerTarget(data_dir=tmp_path, log_dir=tmp_path)
    first = _restored(target, ensemble=False)
    _ran_until(tmp_path / "version-2", first.named + 1, first.named + 60)
    assert [finding.code for finding in roll_back(target).findings] == ["zxids-reused"]
    assert _planned(target, ensemble=False).named > first.named + 60


@pytest.mark.parametrize("apart", [False, True])
def test_a_member_gets_an_epoch_above_those_that_were_used(tmp_path: Path, apart: bool) -> None:
    data, logs = tmp_path / "data", tmp_path / ("logs" if apart else "data")
    old_server(data, logs, epoch=1, epochs=True)
    target = ServerTarget(data_dir=data, log_dir=logs)
    first = _restored(target, ensemble=True)
    assert first.epoch == 2
    _ran_until(logs / "version-2", (3 << 32) + 1, (3 << 32) + 60)
    for name in ("currentEpoch", "acceptedEpoch"):
        (data / "version-2" / name).write_text("3")
    roll_back(target)
    assert _planned(target, ensemble=True).epoch == 4
    survey = survey_of(target, "zk1")
    assert (survey.highest_zxid, max(survey.epochs)) == ((3 << 32) + 60, 3)


def test_an_epoch_that_was_accepted_and_never_used_counts(tmp_path: Path) -> None:
    old_server(tmp_path, epoch=1, epochs=True)
    target = ServerTarget(data_dir=tmp_path, log_dir=tmp_path)
    _restored(target, ensemble=True)
    (tmp_path / "version-2" / "acceptedEpoch").write_text("7")
    (finding,) = roll_back(target).findings
    assert (finding.code, "epoch 1 is back, the restored member had 7" in finding.what) == ("epoch-lowered", True)
    assert _planned(target, ensemble=True).epoch == 8


def test_what_lies_beside_does_not_make_an_empty_server_a_full_one(tmp_path: Path) -> None:
    (tmp_path / "version-2.before-x").mkdir()
    _ran_until(tmp_path / "version-2.before-x", 50, 60)
    (planned,) = _planned(ServerTarget(data_dir=tmp_path, log_dir=tmp_path), ensemble=False).held
    assert planned.empty
    assert planned.beside_zxid == 60


def test_each_directory_beside_counts_for_itself(tmp_path: Path) -> None:
    """The log with the highest name need not be the one with the highest zxid, where two servers wrote them."""
    for name, first, last in (("before-a", 1, 100), ("new-b", 40, 45)):
        (tmp_path / f"version-2.{name}").mkdir()
        _ran_until(tmp_path / f"version-2.{name}", first, last)
    (held,) = _planned(ServerTarget(data_dir=tmp_path, log_dir=tmp_path), ensemble=False).held
    assert held.beside_zxid == 100


def _set_apart(data_dir: Path) -> Path:
    """What `_move` leaves of servers that tried to start while a restore was interrupted."""
    beside = data_dir / "version-2.strange-20261116030000-1f2e3d4c"
    beside.mkdir()
    return beside


def test_files_that_were_set_apart_count_too(tmp_path: Path) -> None:
    old_server(tmp_path, epoch=1, epochs=True)
    beside, target = _set_apart(tmp_path), ServerTarget(data_dir=tmp_path, log_dir=tmp_path)
    _ran_until(beside, (5 << 32) + 1, (5 << 32) + 9)
    (beside / log_name((5 << 32) + 1)).rename(beside / f"0.{log_name((5 << 32) + 1)}")
    planned = _planned(target, ensemble=True)
    assert (planned.held[0].beside_zxid, planned.epoch) == ((5 << 32) + 9, 6)
    (beside / "1.currentEpoch").write_text("6")
    (beside / "12.acceptedEpoch").write_text("8")
    assert _planned(target, ensemble=True).epoch == 9
    assert max(survey_of(target, "zk1").epochs) == 8


def test_what_a_lone_server_wrote_that_was_set_apart_is_not_given_out_again(tmp_path: Path) -> None:
    old_server(tmp_path)
    _ran_until(_set_apart(tmp_path), 90, 99)
    (beside,) = tmp_path.glob("version-2.strange-*")
    (beside / log_name(90)).rename(beside / f"3.{log_name(90)}")
    assert _planned(ServerTarget(data_dir=tmp_path, log_dir=tmp_path), ensemble=False).named == 100


def test_nothing_that_was_set_apart_is_written_over(tmp_path: Path) -> None:
    for name in ("0.log.1", "2.currentEpoch", "3.currentEpoch"):
        (tmp_path / name).write_text("")
    (tmp_path / "0.log.1").unlink()
    assert set_apart(open_folder(tmp_path), "currentEpoch") == "4.currentEpoch"
    assert set_apart(open_folder(tmp_path), "log.1") == "2.log.1"
