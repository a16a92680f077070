"""Scratch repositories: private, checked for space, removed at the end and after a kill."""

import fcntl
import os
import signal
import stat
from pathlib import Path

import pytest

from logkeep.errors import StoreFull, UsageError
from logkeep.kafka.importing.scratch import remove_abandoned, scratch_repository
from logkeep.model.time import random_token, utc_now
from tests.crash.points import KILLED, in_child


def folders(parent: Path) -> list[Path]:
    return sorted(p for p in parent.iterdir() if p.is_dir())


def test_it_is_private_and_removed_at_the_end(tmp_path: Path) -> None:
    with scratch_repository(tmp_path / "new", 5, utc_now(), random_token) as repository:
        (folder,) = folders(tmp_path / "new")
        assert stat.S_IMODE(folder.stat().st_mode) == 0o700
        assert repository.sources() == []
        assert remove_abandoned(tmp_path / "new") == 0
    assert folders(tmp_path / "new") == []


def test_the_next_run_removes_what_a_killed_one_left(tmp_path: Path) -> None:
    def start_and_die() -> None:
        with scratch_repository(tmp_path, 5, utc_now(), random_token):
            os.kill(os.getpid(), signal.SIGKILL)

    assert in_child(start_and_die) == KILLED
    assert len(folders(tmp_path)) == 1
    with scratch_repository(tmp_path, 5, utc_now(), random_token):
        assert len(folders(tmp_path)) == 1
    assert folders(tmp_path) == []


def test_other_directories_and_links_are_left_alone(tmp_path: Path) -> None:
    (tmp_path / "other").mkdir()
    (tmp_path / "kept").mkdir()
    (tmp_path / "logkeep-scratch-link").symlink_to(tmp_path / "kept")
    with scratch_repository(tmp_path, 5, utc_now(), random_token):
        pass
    assert {p.name for p in folders(tmp_path)} == {"other", "kept", "logkeep-scratch-link"}


def test_a_directory_in_use_is_kept(tmp_path: Path) -> None:
    folder = tmp_path / "logkeep-scratch-1"
    folder.mkdir()
    with (folder / "lock").open("w") as held:
        fcntl.flock(held, fcntl.LOCK_EX)
        assert remove_abandoned(tmp_path) == 0
    assert remove_abandoned(tmp_path) == 1


def test_too_little_space_is_refused_before_anything_is_written(tmp_path: Path) -> None:
    with pytest.raises(StoreFull, match="may need"), scratch_repository(tmp_path, 1 << 60, utc_now(), random_token):
        pass
    assert folders(tmp_path) == []


def test_a_file_in_its_place_is_refused(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    with pytest.raises(UsageError), scratch_repository(tmp_path / "file", 1, utc_now(), random_token):
        pass
