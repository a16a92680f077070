"""A restore that was interrupted and continued leaves the same receipt as one that was not."""

import json
from collections.abc import Callable
from functools import partial
from pathlib import Path

import pytest

from logkeep.cli.zkbackup import restore
from logkeep.cli.zkbackup.receipts import receipt_path, unfinished_path, write_ahead
from logkeep.directories.folder import open_folder
from logkeep.errors import RestoreFailed
from logkeep.zookeeper.restore.disk import Disk
from logkeep.zookeeper.restore.prepare import PreparedRestore, prepare
from logkeep.zookeeper.restore.run import carry_out
from logkeep.zookeeper.restore.target.directories import MARKER
from logkeep.zookeeper.restore.values import ServerTarget, ZooKeeperRestoreOptions
from tests.support.cli.bundle_documents import zkbackup
from tests.support.zookeeper.handmade_directories import MadeServer, bundled
from tests.support.zookeeper.handmade_server import files, made_backup, old_server
from tests.support.zookeeper.restored_servers import Stopped, stopping_when

NOBODY = "127.0.0.1:1"


@pytest.fixture
def server(tmp_path: Path) -> Path:
    old_server(tmp_path / "zk")
    return tmp_path / "zk"


def _prepared(server: Path) -> PreparedRestore:
    view = made_backup()
    return prepare(view, view.path(), ZooKeeperRestoreOptions(targets=(ServerTarget(data_dir=server, log_dir=server),)))


def _interrupted(server: Path, disk: Disk) -> None:
    """As `zkbackup restore` does it, until it is killed."""
    with pytest.raises(Stopped):
        carry_out(_prepared(server), replace=True, disk=disk, staged=partial(write_ahead, open_folder(server)))


def _ended(server: Path, flag: str) -> dict[str, object]:
    flags = (f"--zk-data-dir={server}", f"--zk-host={NOBODY}", "--force", "--format=json")
    called = zkbackup("restore", flag, *flags, home=server.parent)
    document: dict[str, object] = json.loads(called.stdout)
    return document


def _receipts(server: Path) -> list[str]:
    return sorted(path.name for path in server.glob("version-2.receipt-*"))


def test_a_continued_restore_has_its_receipt(server: Path) -> None:
    _interrupted(server, stopping_when((server / "version-2" / MARKER).exists))
    ended = _ended(server, "--continue")
    path = receipt_path(str(server), str(ended["restore"]))
    assert (ended["outcome"], ended["receipt"], _receipts(server)) == ("new", str(path), [path.name])
    receipt = json.loads(path.read_text())
    assert (receipt["restore"], receipt["zxid"], receipt["targets"][0]["files"][0]["name"]) == (
        ended["restore"], 5, "snapshot.29",
    )  # fmt: skip
    assert path.stat().st_mode & 0o777 == 0o600
    again = _ended(server, "--continue")
    assert (again["receipt"], _receipts(server)) == (str(path), [path.name])


def test_it_is_named_to_people(server: Path) -> None:
    _interrupted(server, stopping_when((server / "version-2" / MARKER).exists))
    flags = (f"--zk-data-dir={server}", f"--zk-host={NOBODY}", "--force")
    told = zkbackup("restore", "--continue", *flags, home=server.parent).stdout
    assert f"Receipt: {server / _receipts(server)[0]}" in told


@pytest.mark.parametrize("flag", ["--rollback", "--continue"])
def test_what_was_not_restored_has_none(server: Path, flag: str) -> None:
    """A rollback; and a continue of a restore that had died before its swap began."""
    marked = (server / "version-2" / MARKER).exists
    _interrupted(server, stopping_when(marked if flag == "--rollback" else _written_ahead(server)))
    assert len(_receipts(server)) == 1
    ended = _ended(server, flag)
    assert (ended["outcome"], ended["receipt"]) == ("old" if flag == "--rollback" else "nothing", None)
    assert _receipts(server) == []


def _written_ahead(server: Path) -> Callable[[], bool]:
    return lambda: bool(_receipts(server))


def test_a_restore_that_another_program_began_has_none_and_that_is_said(server: Path) -> None:
    with pytest.raises(Stopped):
        carry_out(_prepared(server), replace=True, disk=stopping_when((server / "version-2" / MARKER).exists))
    flags = (f"--zk-data-dir={server}", f"--zk-host={NOBODY}", "--force")
    called = zkbackup("restore", "--continue", *flags, home=server.parent)
    assert (called.returncode, "there is no receipt" in called.stderr) == (0, True)


def test_a_receipt_that_cannot_be_written_ends_the_restore_before_it_moves_anything(server: Path) -> None:
    prepared, before = _prepared(server), files(server)
    name = "20261116030000-1f2e3d4c"
    unfinished_path(str(server), name).mkdir()
    with pytest.raises(RestoreFailed, match="the receipt cannot be written"):
        carry_out(prepared, replace=True, name=name, staged=partial(write_ahead, open_folder(server)))
    assert files(server) == before


def test_the_command_itself_when_somebody_presses_ctrl_c(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """From the backup to the receipt: stopped between the old data and the new, and continued as it says."""
    made = MadeServer(tmp_path / "server")
    made.snapshot(0)
    made.log(range(1, 51), creating=True)
    bundled(made, tmp_path / "backups")
    server = made.root / "data"

    def pressed(_step: str) -> None:
        if (server / "version-2" / MARKER).exists():
            raise KeyboardInterrupt

    monkeypatch.setattr(restore, "carry_out", partial(carry_out, disk=Disk(pressed)))
    places = (f"--zk-data-dir={server}", f"--zk-log-dir={server}", f"--zk-host={NOBODY}")
    flags = (*places, "--force", "--quiet")
    wish = (f"--backup-dir={tmp_path / 'backups' / 'one'}", "--format=json")
    stopped = zkbackup("restore", *wish, *flags, home=tmp_path)
    error = json.loads(stopped.stderr.splitlines()[-1])
    assert (stopped.returncode, "zkbackup restore --continue --zk-data-dir" in error["remedy"]) == (130, True)
    monkeypatch.undo()
    ended = _ended(server, "--continue")
    assert (ended["outcome"], json.loads(Path(str(ended["receipt"])).read_text())["zxid"]) == ("new", 50)
    second = zkbackup("restore", *wish, *flags, home=tmp_path)
    assert second.returncode == 0, second.stderr
    again = json.loads(second.stdout)
    assert Path(again["receipt"]) == receipt_path(str(server), again["restore"])
    assert len(_receipts(server)) == 2
    assert not list(server.glob("*.unfinished"))
