"""Errors of zkbackup tell what to do with zkbackup."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from logkeep.cli.zkbackup.error_text import remedy
from logkeep.errors import Damaged, LogkeepError, UsageError
from tests.support.cli.bundle_documents import put, zkbackup


def _kinds(kind: type[LogkeepError] = LogkeepError) -> Iterator[type[LogkeepError]]:
    yield kind
    for below in kind.__subclasses__():
        yield from _kinds(below)


@pytest.mark.parametrize("kind", list(dict.fromkeys(_kinds())))
def test_no_error_sends_people_to_the_other_program(kind: type[LogkeepError]) -> None:
    said = remedy(kind("it happened"))
    assert said
    assert not any(word in said for word in ("`logkeep ", "--yes", "--resume", "--parallel", "--source"))


def test_what_an_error_says_itself_stays() -> None:
    assert remedy(UsageError("x", remedy="ask `logkeep zookeeper`")) == "ask `logkeep zookeeper`"
    assert remedy(Damaged("x")) == "`zkbackup verify` shows what is damaged; with --fix it repairs what can be repaired"


def test_on_the_terminal(tmp_path: Path) -> None:
    (tmp_path / "txnlogs").mkdir()
    done = zkbackup("verify", "--backup-dir", str(tmp_path), home=tmp_path)
    assert done.returncode == 10
    assert "`zkbackup backup`" in done.stderr
    assert "logkeep" not in done.stderr.replace(str(tmp_path), "")
    assert "see `zkbackup info --help`" in zkbackup("info", "a", "b", home=tmp_path).stderr


def test_info_of_a_damaged_backup_names_no_command_that_is_refused(tmp_path: Path) -> None:
    for status in ("valid", "partial", "damaged"):
        put(tmp_path, status, status=status)
        said = zkbackup("info", status, "--backup-base-dir", str(tmp_path), home=tmp_path).stdout
        assert ("zkbackup restore" in said) is (status != "damaged")
    assert "zkbackup verify --backup-dir" in said


def test_a_missing_base_directory_is_a_wrong_setting(tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    for words in (["list"], ["info", "nightly"], ["prune"]):
        for name, what in (("nowhere", "there is no such directory of backups"), ("file/below", "no backups: not a")):
            done = zkbackup(*words, "--backup-base-dir", str(tmp_path / name), home=tmp_path)
            assert (done.returncode, what in done.stderr, str(tmp_path / name) in done.stderr) == (40, True, True)
