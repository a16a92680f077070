"""Room for what is restored: each file system is asked for what goes there, and for nothing else."""

from collections.abc import Callable
from pathlib import Path

import pytest

from logkeep.directories.folder import Folder
from logkeep.errors import TargetUnsafe
from logkeep.zookeeper.restore import prepare as preparing
from logkeep.zookeeper.restore.prepare import prepare
from logkeep.zookeeper.restore.target.directories import ServerDirectories
from logkeep.zookeeper.restore.target.disk_space import FileSystem, Sizes, check_free_space
from logkeep.zookeeper.restore.values import Form, ServerTarget, ZooKeeperRestoreOptions
from tests.support.zookeeper.handmade_server import made_backup


@pytest.fixture
def apart(tmp_path: Path) -> ServerDirectories:
    return _server(tmp_path, "data/zk", "logs/zk")


@pytest.fixture
def together(tmp_path: Path) -> ServerDirectories:
    return _server(tmp_path, "data/zk", "data/zk")


def _server(home: Path, data: str, logs: str) -> ServerDirectories:
    for name in (data, logs):
        (home / name).mkdir(parents=True, exist_ok=True)
    return ServerDirectories(home / data, home / logs)


def _disks(**free: int) -> Callable[[Folder], FileSystem]:
    """One for each directory that the servers' directories are in."""
    return lambda folder: FileSystem(hash(folder.path.parent.name), free[folder.path.parent.name])


def test_logs_count_where_they_go(apart: ServerDirectories) -> None:
    check_free_space([apart], Sizes(100, 900), _disks(data=100, logs=900))
    with pytest.raises(TargetUnsafe, match="900 bytes are to be written, and 899 are free") as caught:
        check_free_space([apart], Sizes(100, 900), _disks(data=5000, logs=899))
    assert caught.value.subject == str(apart.log_dir)
    with pytest.raises(TargetUnsafe, match="100 bytes are to be written, and 99 are free") as caught:
        check_free_space([apart], Sizes(100, 900), _disks(data=99, logs=5000))
    assert caught.value.subject == str(apart.data_dir)


def test_what_goes_to_one_file_system_counts_together(together: ServerDirectories, tmp_path: Path) -> None:
    check_free_space([together], Sizes(100, 900), _disks(data=1000))
    with pytest.raises(TargetUnsafe, match="1000 bytes"):
        check_free_space([together], Sizes(100, 900), _disks(data=999))
    second = _server(tmp_path, "data/zk2", "data/zk2")
    with pytest.raises(TargetUnsafe, match="2000 bytes"):
        check_free_space([together, second], Sizes(100, 900), _disks(data=1999))


def test_behind_a_link_its_file_system_is_asked(tmp_path: Path) -> None:
    (tmp_path / "large" / "version-2").mkdir(parents=True)
    (tmp_path / "zk").mkdir()
    (tmp_path / "zk" / "version-2").symlink_to(tmp_path / "large" / "version-2")
    asked = list[Path]()

    def look(folder: Folder) -> FileSystem:
        asked.append(folder.path)
        return FileSystem(1, 1000)

    check_free_space([ServerDirectories(tmp_path / "zk", tmp_path / "zk")], Sizes(1), look)
    assert set(asked) == {tmp_path / "large"}


@pytest.mark.parametrize("form", list(Form))
def test_a_plan_asks_for_logs_only_where_it_writes_them(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, form: Form
) -> None:
    asked = list[Sizes]()
    monkeypatch.setattr(preparing, "check_free_space", lambda _places, sizes: asked.append(sizes))
    for name in ("data", "logs"):
        (tmp_path / name).mkdir()
    view = made_backup()
    wish = ZooKeeperRestoreOptions(
        targets=(ServerTarget(data_dir=tmp_path / "data", log_dir=tmp_path / "logs"),), form=form
    )
    planned = prepare(view, view.path(), wish).planned
    (sizes,) = asked
    assert (sum(sizes), sizes.logs > 0) == (planned.size_bytes, form is Form.ORIGINAL)
