"""The table of modes: every kind of file that both programs write is as private as documented, whatever the umask is.

Objects of a repository have explicit modes; other files get theirs from the umask that both programs set.
"""

import os
import stat
from collections.abc import Iterator
from contextlib import contextmanager
from fnmatch import fnmatch
from pathlib import Path

import pytest

from tests.support.cli.forker import run
from tests.support.cli.processes import REAL, TRIAL, clean_environment
from tests.support.zookeeper.handmade_directories import MadeServer

ZKBACKUP = (REAL[0], "-m", "logkeep.cli.zkbackup")
TABLE = (
    # pattern below the home, mode of files, mode of directories
    ("repo*", 0o600, 0o700),
    ("state*", 0o600, 0o700),
    ("new/version-2*", 0o640, 0o700),  # a server that held nothing: for its group, if that may enter the directory
    ("zk/data/version-2/*", 0o640, 0o750),  # as the replaced files
    ("*/logkeep-restore.json", 0o640, None),
    ("zk/data/version-2.before-*", None, None),  # moved, not written
    ("zk/data/version-2.receipt-*", 0o600, None),
    ("bundles*", 0o600, 0o700),
    ("logs*", 0o600, 0o700),
    ("cache*", 0o600, 0o700),
    ("run.log", 0o600, None),
    ("*.prom", 0o644, None),
    ("one.survey.json", 0o600, None),
    ("plan.json", 0o600, None),
)


@pytest.mark.parametrize("umask", (0o000, 0o022, 0o077))
def test_every_file_has_its_documented_mode(tmp_path: Path, umask: int) -> None:
    server = _server(tmp_path / "zk")
    (tmp_path / "new").mkdir(mode=0o700)
    (tmp_path / "secret").touch(mode=0o600)
    (tmp_path / "secret").write_text("x")
    before = {(path, path.stat().st_ino) for path in tmp_path.rglob("*")}
    with _umask(umask):
        _use_both_programs(tmp_path, server)
    now = {path: path.lstat().st_ino for path in tmp_path.rglob("*")}
    made = {path.relative_to(tmp_path): path for path, inode in now.items() if (path, inode) not in before}
    rows = {row: [name for name in made if fnmatch(str(name), row[0])] for row in TABLE}
    assert not [row for row, found in rows.items() if not found], "a kind of file was not written"
    for name, path in made.items():
        row = next((row for row, found in rows.items() if name in found), None)
        assert row is not None, f"{name} is not in the table"
        wanted = row[2] if path.is_dir() else row[1]
        if wanted is not None:
            assert oct(stat.S_IMODE(path.lstat().st_mode)) == oct(wanted), name


def _server(directory: Path) -> Path:
    """The directories of a stopped server, with modes that a restore must keep."""
    made = MadeServer(directory, zxid=8)
    made.snapshot(0)
    made.log(range(1, 9), creating=True)
    for file in made.snapshot_dir.iterdir():
        file.chmod(0o640)
    made.snapshot_dir.chmod(0o750)
    return made.snapshot_dir.parent


def _use_both_programs(home: Path, server: Path) -> None:
    def call(program: tuple[str, ...], *arguments: str, code: int = 0) -> None:
        environment = clean_environment(
            home, LOGKEEP_REPO=f"file://{home}/repo", LOGKEEP_CACHE_DIR=f"{home}/cache", ZKBACKUP_LOGGING_OUTPUT="file",
            ZKBACKUP_LOGGING_FILE=f"{home}/logs/zkbackup.log",
        )  # fmt: skip
        done = run([*program, *arguments], env=environment, cwd=home, timeout=120)
        assert done.returncode == code, f"{arguments} ended with {done.returncode}\n{done.stdout}\n{done.stderr}"

    target = ("--data-dir", str(server))
    call(REAL, "init")
    call(REAL, "zookeeper", "backup", *target, "--log-file", "run.log", "--metrics-file", "logkeep.prom", code=2)
    call(REAL, "zookeeper", "restore", "survey", *target, "--to", "one.survey.json")
    call(REAL, "zookeeper", "restore", "plan", "latest", "one.survey.json", "--min-epoch", "1", "--to", "plan.json")
    call(REAL, "zookeeper", "restore", "latest", "--data-dir", str(home / "new"), "--state-dir", "state", "--yes")
    call(TRIAL, "leak", "file", "secret", "crash", code=1)
    flags = ("--zk-host=127.0.0.1:1", f"--zk-data-dir={server}", "--metrics-file=zkbackup.prom")
    call(ZKBACKUP, "backup", *flags, "--output-dir=bundles", "--backup-id=one", code=2)
    call(ZKBACKUP, "verify", "--backup-dir=bundles/one")
    call(ZKBACKUP, "restore", "--backup-dir=bundles/one", *flags, "--force")


@contextmanager
def _umask(umask: int) -> Iterator[None]:
    before = os.umask(umask)
    try:
        yield
    finally:
        os.umask(before)
