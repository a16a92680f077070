"""A rollback puts back what was there before, or says that it is gone: it never leaves an empty server."""

import shutil
from pathlib import Path

import msgspec
import pytest

from logkeep.errors import TargetUnsafe
from logkeep.zookeeper.restore.finish import roll_back
from logkeep.zookeeper.restore.prepare import prepare
from logkeep.zookeeper.restore.run import carry_out
from logkeep.zookeeper.restore.target.directories import JOURNAL
from logkeep.zookeeper.restore.values import ServerTarget, ZooKeeperRestoreOptions
from tests.support.zookeeper.handmade_server import files, made_backup, old_server


def _restored(data: Path, logs: Path) -> ServerTarget:
    view, target = made_backup(), ServerTarget(data_dir=data, log_dir=logs)
    carry_out(prepare(view, view.path(), ZooKeeperRestoreOptions(targets=(target,))), replace=True)
    return target


def _as_before(data: Path) -> None:
    """A journal as it was written before it told which directories were empty."""
    journal = msgspec.json.decode((data / JOURNAL).read_bytes())
    for place in journal["places"]:
        del place["empty"]
    (data / JOURNAL).write_bytes(msgspec.json.encode(journal))


def _refused(home: Path, target: ServerTarget) -> TargetUnsafe:
    before = files(home)
    with pytest.raises(TargetUnsafe, match="the old data is missing") as caught:
        roll_back(target)
    assert files(home) == before
    return caught.value


@pytest.mark.parametrize("older", [False, True], ids=["journal", "older journal"])
@pytest.mark.parametrize("emptied", [False, True], ids=["removed", "emptied"])
def test_old_data_that_somebody_removed(tmp_path: Path, older: bool, emptied: bool) -> None:
    old_server(tmp_path)
    target = _restored(tmp_path, tmp_path)
    if older:
        _as_before(tmp_path)
    (kept,) = tmp_path.glob("version-2.before-*")
    shutil.rmtree(kept)
    if emptied:
        kept.mkdir()
    error = _refused(tmp_path, target)
    assert (error.subject, error.exit_code) == (str(kept), 31)
    assert sorted(files(tmp_path / "version-2")) == ["snapshot.29"]


def test_old_data_that_was_moved_and_is_back(tmp_path: Path) -> None:
    old_server(tmp_path / "zk")
    old = files(tmp_path / "zk" / "version-2")
    target = _restored(tmp_path / "zk", tmp_path / "zk")
    (kept,) = (tmp_path / "zk").glob("version-2.before-*")
    kept.rename(tmp_path / "elsewhere")
    _refused(tmp_path, target)
    (tmp_path / "elsewhere").rename(kept)
    roll_back(target)
    assert files(tmp_path / "zk" / "version-2") == old


def test_old_logs_that_somebody_removed(tmp_path: Path) -> None:
    """Of two directories: the journal knows that each of them held something."""
    data, logs = tmp_path / "data", tmp_path / "logs"
    old_server(data, logs)
    target = _restored(data, logs)
    (kept,) = logs.glob("version-2.before-*")
    shutil.rmtree(kept)
    assert _refused(tmp_path, target).subject == str(kept)


@pytest.mark.parametrize("older", [False, True], ids=["journal", "older journal"])
@pytest.mark.parametrize("there", ["nothing", "empty", "empty logs"])
def test_where_there_was_nothing_there_is_nothing_to_miss(tmp_path: Path, older: bool, there: str) -> None:
    data, logs = tmp_path / "data", tmp_path / "logs"
    if there == "empty logs":
        old_server(data, logs)
        for log in (logs / "version-2").iterdir():
            log.unlink()
    for path in (data, logs):
        (path if there == "nothing" else path / "version-2").mkdir(parents=True, exist_ok=True)
    old = files(data)
    target = _restored(data, logs)
    if older:
        _as_before(data)
    roll_back(target)
    assert {name: content for name, content in files(data).items() if ".new-" not in name} == old
    assert files(logs) == {}
    assert (logs / "version-2").exists() is (there != "nothing")
