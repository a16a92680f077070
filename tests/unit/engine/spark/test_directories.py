"""Signs by which workers recognise the driver's directories."""

import shutil
from pathlib import Path

import pytest

from logkeep.engine.spark.directories import DirectorySign, SharedDirectory, make_sign, refuse_unseen, remove_sign
from logkeep.errors import UsageError


def _seen(sign: DirectorySign) -> bool:
    refuse_unseen.cache_clear()
    try:
        refuse_unseen((sign,))
    except UsageError:
        return False
    return True


@pytest.mark.parametrize(
    ("written", "file"), ((False, ""), (True, ""), (False, "logkeep.json")), ids=("read", "written", "known file")
)
def test_a_directory_is_recognised_and_another_under_its_path_is_not(tmp_path: Path, written: bool, file: str) -> None:
    shared = tmp_path / "shared"
    shared.mkdir()
    (shared / "logkeep.json").write_text("one repository")
    sign = make_sign(SharedDirectory(shared, written, file))
    assert _seen(sign)
    shared.rename(tmp_path / "away")
    assert not _seen(sign), "it is gone"
    shared.mkdir()
    (shared / "logkeep.json").write_text("another repository")
    assert not _seen(sign)


def test_a_repository_on_another_mount_of_the_same_files_is_recognised(tmp_path: Path) -> None:
    shared = tmp_path / "shared"
    shared.mkdir()
    (shared / "logkeep.json").write_text("one repository")
    sign = make_sign(SharedDirectory(shared, file="logkeep.json"))
    shutil.copytree(shared, tmp_path / "mounted")
    shutil.rmtree(shared)
    (tmp_path / "mounted").rename(shared)
    assert _seen(sign), "inodes of network file systems may differ"


def test_a_repository_that_gets_a_feature_is_still_recognised(tmp_path: Path) -> None:
    (tmp_path / "logkeep.json").write_text('{"repository":"abc","required_features":[]}\n')
    sign = make_sign(SharedDirectory(tmp_path, file="logkeep.json"))
    (tmp_path / "logkeep.json").write_text('{"repository":"abc","required_features":["zstd-frames"]}\n')
    assert _seen(sign)
    (tmp_path / "logkeep.json").write_text('{"repository":"def","required_features":[]}\n')
    assert not _seen(sign)


def test_a_directory_whose_files_come_and_go_is_recognised(tmp_path: Path) -> None:
    for number in range(100):
        (tmp_path / f"log.{number}").touch()
    sign = make_sign(SharedDirectory(tmp_path))
    for number in (*range(40), 99):
        (tmp_path / f"log.{number}").unlink()
    assert _seen(sign)


def test_only_directories_that_are_written_get_a_file_and_it_is_removed(tmp_path: Path) -> None:
    assert not make_sign(SharedDirectory(tmp_path)).made
    assert list(tmp_path.iterdir()) == []
    sign = make_sign(SharedDirectory(tmp_path, written=True))
    assert [each.name for each in tmp_path.iterdir()] == [sign.marks[0][0]]
    remove_sign(sign)
    assert list(tmp_path.iterdir()) == []


def test_a_directory_that_the_driver_does_not_have_is_refused(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="cannot be read"):
        make_sign(SharedDirectory(tmp_path / "none"))
