"""The data directory of an application: its first start, and a log that is missing later."""

import os
import shutil
from pathlib import Path

import pytest

from logkeep.application.data_directory import DataDirectory, open_directory
from logkeep.checkpoint.durable_directory import make_durable_directory
from logkeep.checkpoint.snapshots import SnapshotStore
from logkeep.errors import Damaged, TargetUnsafe
from logkeep.model.time import utc_now


def _open(path: Path, application: str | None = None) -> DataDirectory:
    return open_directory(path, "shop", 2, utc_now(), application)


@pytest.mark.parametrize("missing", ["p1", "p1/log"])
def test_a_log_that_is_missing_is_never_replaced_by_an_empty_one(tmp_path: Path, missing: str) -> None:
    _open(tmp_path)
    shutil.rmtree(tmp_path / missing)
    with pytest.raises(Damaged, match="log of this partition is missing") as refused:
        _open(tmp_path)
    assert refused.value.subject == str(tmp_path / "p1/log")
    assert "restore the application from a backup" in (refused.value.remedy or "")
    assert not (tmp_path / missing).exists()


def test_a_log_on_kafka_needs_no_directory(tmp_path: Path) -> None:
    for _ in range(2):
        _open(tmp_path, "ab" * 16)
    assert sorted(one.name for one in tmp_path.iterdir()) == ["application.json"]


def test_a_first_start_that_was_killed_is_repeated(tmp_path: Path) -> None:
    _open(tmp_path)
    (tmp_path / "application.json").unlink()
    _open(tmp_path)
    (tmp_path / "p0/log/00000000000000000000.log").touch()
    (tmp_path / "application.json").unlink()
    with pytest.raises(TargetUnsafe, match="holds p0"):
        _open(tmp_path)


def test_every_new_directory_is_durable(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Each directory is synced after the last directory was made in it."""
    unsynced, mkdir, fsync = set[Path](), Path.mkdir, os.fsync

    def making(path: Path, *given: object, **named: object) -> None:
        mkdir(path, *given, **named)  # type: ignore[arg-type] # as they were given
        unsynced.add(path)

    def syncing(descriptor: int) -> None:
        fsync(descriptor)
        synced = Path(f"/proc/self/fd/{descriptor}").readlink()
        unsynced.difference_update({one for one in unsynced if one.parent == synced})

    monkeypatch.setattr(Path, "mkdir", making)
    monkeypatch.setattr(os, "fsync", syncing)
    data = tmp_path / "a/b"
    make_durable_directory(data)
    _open(data)
    SnapshotStore(data / "p0/snapshots")
    assert (data / "p1/log").is_dir()
    assert unsynced == set()
