"""`restore --continue` where nothing can be continued: neither program calls the old data a success."""

import json
from pathlib import Path

import pytest

from logkeep.zookeeper.restore.finish import RestoreEndState, continue_restore
from logkeep.zookeeper.restore.prepare import prepare
from logkeep.zookeeper.restore.run import carry_out
from logkeep.zookeeper.restore.target.directories import JOURNAL
from logkeep.zookeeper.restore.values import ServerTarget, ZooKeeperRestoreOptions
from tests.support.cli.bundle_documents import zkbackup
from tests.support.cli.processes import logkeep
from tests.support.zookeeper.handmade_server import files, made_backup, old_server
from tests.support.zookeeper.restored_servers import Stopped, stopping_when

NOBODY = "127.0.0.1:1"


@pytest.fixture
def server(tmp_path: Path) -> Path:
    """A restore died there while it wrote the new data beside the old."""
    directory = tmp_path / "zk"
    old_server(directory)
    view = made_backup()
    prepared = prepare(
        view, view.path(), ZooKeeperRestoreOptions(targets=(ServerTarget(data_dir=directory, log_dir=directory),))
    )
    with pytest.raises(Stopped):
        carry_out(prepared, replace=True, disk=stopping_when(lambda: any(directory.glob("version-2.new-*/snapshot.*"))))
    assert (directory / JOURNAL).exists()
    return directory


def test_the_outcome_is_neither_the_new_data_nor_a_rollback(server: Path) -> None:
    old = files(server / "version-2")
    ended = continue_restore(ServerTarget(data_dir=server))
    assert ended.outcome is RestoreEndState.NOTHING
    assert ended.next_steps == ("run the restore again: the data from before it is in place",)
    assert files(server / "version-2") == old
    assert not (server / JOURNAL).exists()


def test_zkbackup_says_that_nothing_was_restored(server: Path) -> None:
    file = server.parent / "zk.prom"
    flags = (f"--zk-data-dir={server}", f"--zk-host={NOBODY}", "--force", f"--metrics-file={file}")
    ended = zkbackup("restore", "--continue", *flags, home=server.parent)
    assert ended.returncode == 30, ended.stderr
    assert "❌ Restore" in ended.stdout
    assert "nothing was restored; run the restore again" in ended.stdout
    assert "zkbackup_restore_success 0.0" in file.read_text()


def test_a_rollback_of_it_is_what_was_wished(server: Path) -> None:
    flags = (f"--zk-data-dir={server}", f"--zk-host={NOBODY}", "--force")
    ended = zkbackup("restore", "--rollback", *flags, home=server.parent)
    assert (ended.returncode, "back in place" in ended.stdout) == (0, True), ended.stderr


@pytest.mark.parametrize("as_json", [False, True])
def test_logkeep_says_it_too(server: Path, as_json: bool) -> None:
    flags = (f"--data-dir={server}", f"--zk-host={NOBODY}", "--yes", *(["--json"] if as_json else []))
    ended = logkeep("zookeeper", "restore", "--continue", *flags, home=server.parent)
    assert ended.returncode == 30, ended.stderr
    if as_json:
        assert '"not-begun"' in json.dumps(json.loads(ended.stdout))
    else:
        assert "FAIL  restore" in ended.stdout
        assert "nothing was restored; run the restore again" in ended.stdout


@pytest.mark.parametrize("end", ["--rollback", "--continue"])
@pytest.mark.parametrize("flag", ["--dry-run", "--to-zxid=0x3", "--to-time=2026-11-16T02:00:00Z"])
def test_zkbackup_ends_nothing_when_it_is_told_what_it_would_pass_over(server: Path, end: str, flag: str) -> None:
    """Above all when it is asked to change nothing."""
    before = files(server)
    flags = (f"--zk-data-dir={server}", f"--zk-host={NOBODY}", "--force")
    ended = zkbackup("restore", end, flag, *flags, home=server.parent)
    assert ended.returncode == 40
    assert flag.partition("=")[0] in ended.stderr.partition("leave ")[2]
    assert files(server) == before
