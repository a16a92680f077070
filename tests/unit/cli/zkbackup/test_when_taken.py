"""What a backup found missing when it was taken is told by every later look at it, though all its files are whole."""

import json
from pathlib import Path
from typing import Any

import pytest

from logkeep.model.findings import Finding, Severity
from logkeep.zookeeper.taken import missing_when_taken
from tests.unit.cli.zkbackup.bundles import zkbackup
from tests.zookeeper.directories import MadeServer, bundled

LEVELS = ("files", "data", "replay")


def _server(root: Path, *, says: int | None, logs: bool = True) -> MadeServer:
    server = MadeServer(root / "server", zxid=says)
    server.snapshot(5, nodes=range(1, 6))
    if logs:
        server.log(range(6, 9), creating=True)
    return server


def _verified(bundle: Path, level: str) -> tuple[int, dict[str, Any]]:
    ended = zkbackup("verify", f"--backup-dir={bundle}", f"--level={level}", "--format=json", home=bundle.parent.parent)
    return ended.returncode, json.loads(ended.stdout)


def _listed(base: Path) -> str:
    told = zkbackup("list", f"--backup-base-dir={base}", "--format=json", home=base.parent)
    return str(json.loads(told.stdout)["backups"][0]["status"])


@pytest.mark.parametrize("level", LEVELS)
def test_the_last_transactions_of_the_server_in_no_log(tmp_path: Path, level: str) -> None:
    view, done = bundled(_server(tmp_path, says=9), tmp_path / "backups", "one")
    assert done.exit_code == 21
    code, said = _verified(view.path, level)
    assert (code, said["status"], said["quality_score"]) == (10, "partial", 70)
    assert "when it was taken: the server has processed 0x9" in str(said["findings"])
    assert _listed(tmp_path / "backups") == "partial"


@pytest.mark.parametrize("level", LEVELS)
def test_a_backup_without_the_logs_of_its_server_is_nothing_to_rely_on(tmp_path: Path, level: str) -> None:
    view, done = bundled(_server(tmp_path, says=9, logs=False), tmp_path / "backups", "one")
    assert done.exit_code == 21
    code, said = _verified(view.path, level)
    assert (code, said["status"], said["quality_score"], said["restorable"]) == (10, "damaged", 0, False)
    assert _listed(tmp_path / "backups") == "damaged"


def test_where_nobody_can_be_asked_it_is_said_that_there_is_no_log(tmp_path: Path) -> None:
    _, done = bundled(_server(tmp_path, says=None, logs=False), tmp_path / "backups", "one")
    told = {finding.code: finding for finding in done.findings}
    assert (done.exit_code, told.keys() >= {"no-log-seen", "server-unreachable"}) == (2, True)
    assert "--zk-log-dir" in told["no-log-seen"].remedy


@pytest.mark.parametrize(
    ("reads_logs", "repaired", "told"), [(False, False, 1), (True, False, 0), (False, True, 0), (True, True, 0)]
)
def test_a_hole_is_told_by_those_who_do_not_read_the_logs(reads_logs: bool, repaired: bool, told: int) -> None:
    hole = Finding(code="hole", severity=Severity.WARNING, where="member a", what="no log holds 0x9")
    assert len(list(missing_when_taken([hole], reads_logs=reads_logs, repaired=repaired))) == told
