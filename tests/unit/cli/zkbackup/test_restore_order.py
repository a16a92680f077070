"""What can be known without reading the backup is known before it is read: a large one takes hours."""

from pathlib import Path

import pytest

from logkeep.errors import TargetUnsafe, UsageError
from logkeep.zookeeper.restore.prepare import check_targets
from logkeep.zookeeper.restore.values import ServerTarget, ZooKeeperRestoreOptions
from logkeep.zookeeper.server.four_letter import ServerState
from tests.support.cli.bundle_documents import zkbackup
from tests.support.zookeeper.handmade_directories import MadeServer, bundled


@pytest.fixture
def bundle(tmp_path: Path) -> Path:
    """Damaged in every file: whoever reads it says so, with 10 or 30."""
    server = MadeServer(tmp_path / "server", zxid=8)
    server.snapshot(0)
    server.log(range(1, 9), creating=True)
    view, _ = bundled(server, tmp_path / "backups", "one")
    for path in (view.path / "snapshots" / "snapshot.0", view.path / "txnlogs" / "log.1"):
        path.chmod(0o600)
        path.write_bytes(bytes(path.stat().st_size))
    return view.path


def _restored(bundle: Path, *flags: str) -> int:
    return zkbackup("restore", f"--backup-dir={bundle}", "--zk-host=127.0.0.1:1", *flags, home=bundle.parent).returncode


def test_what_is_missing_from_the_call_or_on_the_disk(bundle: Path, tmp_path: Path) -> None:
    assert _restored(bundle, "--force") == 40, "no --zk-data-dir"
    assert _restored(bundle, "--force", f"--zk-data-dir={tmp_path / 'nowhere'}") in {31, 40}
    (tmp_path / "target").mkdir()
    assert _restored(bundle, f"--zk-data-dir={tmp_path / 'target'}") == 3, "nobody can be asked"
    assert _restored(bundle, "--force", f"--zk-data-dir={tmp_path / 'target'}") in {10, 30}, "then it is read"


def test_a_server_that_answers(tmp_path: Path) -> None:
    wish = ZooKeeperRestoreOptions(targets=(ServerTarget(data_dir=tmp_path, log_dir=tmp_path, host="made:2181"),))
    with pytest.raises(TargetUnsafe, match="a server answers at made:2181"):
        check_targets(wish, ask=lambda _: ServerState(8, "standalone", "3.9.5"))
    check_targets(wish, ask=lambda _: None)
    with pytest.raises(UsageError):
        check_targets(ZooKeeperRestoreOptions(targets=()))


def test_a_file_system_that_is_mounted_read_only_is_called_that(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    class ReadOnly:
        f_flag = 1

    monkeypatch.setattr("os.fstatvfs", lambda _: ReadOnly)
    wish = ZooKeeperRestoreOptions(targets=(ServerTarget(data_dir=tmp_path, log_dir=tmp_path),))
    with pytest.raises(TargetUnsafe, match="read-only") as caught:
        check_targets(wish, ask=lambda _: None)
    assert "mount" in caught.value.remedy
