"""Directories that are gone, or may not be looked at, when a restore is ended: that is told, and nothing is moved."""

import os
import shutil
from pathlib import Path

import pytest

from logkeep.errors import TargetUnsafe
from logkeep.zookeeper.restore.finish import continue_restore, roll_back
from logkeep.zookeeper.restore.prepare import prepare
from logkeep.zookeeper.restore.run import carry_out
from logkeep.zookeeper.restore.target.directories import ServerDirectories
from logkeep.zookeeper.restore.target.running_server import find_running_servers
from logkeep.zookeeper.restore.values import ServerTarget, ZooKeeperRestoreOptions
from tests.support.zookeeper.handmade_server import files, made_backup, old_server


def test_a_member_whose_file_system_is_not_mounted(tmp_path: Path) -> None:
    targets = tuple(ServerTarget(data_dir=tmp_path / name, log_dir=tmp_path / name) for name in "12")
    for target in targets:
        old_server(target.data_dir, epoch=3, epochs=True)
    view = made_backup(epoch=2)
    carry_out(prepare(view, view.path(), ZooKeeperRestoreOptions(targets=targets)), replace=True)
    shutil.rmtree(tmp_path / "2")
    before = files(tmp_path)
    for end in (continue_restore, roll_back):
        with pytest.raises(TargetUnsafe, match="is missing") as caught:
            end(targets[0])
        assert (caught.value.subject, "mounted" in caught.value.remedy) == (str(tmp_path / "2"), True)
    assert files(tmp_path) == before


def test_files_that_may_not_be_seen(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    old_server(tmp_path)
    place = ServerDirectories(tmp_path, tmp_path)
    hidden, real = place.data.folder, os.listdir

    def listdir(where: int) -> list[str]:
        if hidden is not None and where == hidden.descriptor:
            raise PermissionError(13, "Permission denied")
        return real(where)

    monkeypatch.setattr(os, "listdir", listdir)
    with pytest.raises(TargetUnsafe, match="permission denied") as caught:
        find_running_servers([place])
    assert caught.value.subject == str(tmp_path / "version-2")


def test_a_file_that_goes_away_while_it_is_looked_for(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    old_server(tmp_path)
    real = os.listdir
    monkeypatch.setattr(os, "listdir", lambda where: [*real(where), "gone"])
    assert find_running_servers([ServerDirectories(tmp_path, tmp_path)]).running == ()
