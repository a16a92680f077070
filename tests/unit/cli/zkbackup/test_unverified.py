"""A backup whose verification never came to its end is neither good nor damaged until somebody looks."""

import errno
import json
import os
from pathlib import Path

import pytest

from logkeep.cli.zkbackup import bundles
from logkeep.cli.zkbackup.claims import Claims
from logkeep.zookeeper.model.condition import Condition
from tests.support.cli.bundle_documents import put, zkbackup
from tests.support.zookeeper.handmade_directories import MadeServer, bundled


@pytest.fixture
def base(tmp_path: Path) -> Path:
    """As a backup leaves it that was killed before its verification: complete, and without a verdict."""
    server = MadeServer(tmp_path / "server", zxid=8)
    server.snapshot(0)
    server.log(range(1, 9), creating=True)
    bundled(server, tmp_path / "backups", "fresh")
    return tmp_path / "backups"


def _told(base: Path, *arguments: str) -> str:
    return zkbackup(*arguments, f"--backup-base-dir={base}", home=base.parent).stdout


def test_list_and_info_say_so(base: Path) -> None:
    (one,) = json.loads(_told(base, "list", "--format=json"))["backups"]
    assert (one["status"], "never verified" in one["problem"]) == ("unverified", True)
    assert "⚠️ unverified" in _told(base, "list")
    said = json.loads(_told(base, "info", "fresh", "--format=json"))
    assert (said["status"], said["quality_score"], said["restore_command"]) == ("unverified", None, None)
    text = _told(base, "info", "fresh")
    assert "Status: ⚠️ unverified" in text
    assert "Quality score: not known" in text
    assert "cannot be restored" not in text
    assert f"zkbackup verify --backup-dir {base / 'fresh'}" in text


def test_a_verification_of_any_level_ends_it(base: Path) -> None:
    zkbackup("verify", f"--backup-dir={base / 'fresh'}", "--level=files", home=base.parent)
    (one,) = json.loads(_told(base, "list", "--format=json"))["backups"]
    assert (one["status"], one["problem"]) == ("valid", "")


def test_prune_takes_no_unverified_one_for_a_damaged_or_a_good_one(base: Path) -> None:
    for days in (20, 30):
        put(base, f"good-{days}", days=days)
    document = base / "good-30" / "metadata" / "backup_info.json"
    content = json.loads(document.read_text())
    del content["validation"]
    document.write_text(json.dumps(content))
    flags = ("--keep-count=1", "--keep-min-count=1", "--keep-days=1", "--delete-damaged", "--force")
    said = json.loads(_told(base, "prune", *flags, "--format=json"))
    assert (said["deleted"], said["skipped"], said["protected"]) == ([], ["good-30"], ["good-20"])
    assert "good-30 (skipped: unverified)" in _told(base, "prune", *flags)
    assert f"how good it is: zkbackup verify --backup-dir {base / 'good-30'}\n" in _told(base, "prune", *flags)


@pytest.mark.parametrize("error", [errno.EACCES, errno.EIO, errno.ESTALE])
def test_a_document_that_cannot_be_read_here_makes_no_damaged_backup(
    base: Path, error: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Whoever prunes with other rights, or while a disk does not answer, must not delete what may be whole."""

    def unreadable(_directory: Path) -> Claims:
        raise OSError(error, os.strerror(error))

    monkeypatch.setattr(bundles, "claims", unreadable)
    (one,) = bundles.list_bundles(base)
    assert (one.condition, os.strerror(error).lower() in one.problem) == (Condition.UNVERIFIED, True)


@pytest.mark.parametrize("error", [errno.ENOENT, errno.ENOTDIR, errno.EISDIR])
def test_one_that_is_not_there_does(base: Path, error: int, monkeypatch: pytest.MonkeyPatch) -> None:
    def gone(_directory: Path) -> Claims:
        raise OSError(error, os.strerror(error))

    monkeypatch.setattr(bundles, "claims", gone)
    assert bundles.list_bundles(base)[0].condition is Condition.DAMAGED
