"""The file of measured speeds: kept from run to run, and never a reason to fail."""

import stat
from pathlib import Path

import msgspec
import pytest

from logkeep.engine.inline import InlineEngine
from logkeep.engine.speeds import EngineSpeeds
from logkeep.engine.speeds_file import SpeedsFile, this_machine
from logkeep.model.work import Progress
from tests.support.other_user import give_to_other


class Counted(msgspec.Struct, frozen=True):
    number: int


def _file(cache: Path) -> Path:
    return cache / "speeds" / "speeds.json"


def test_what_an_engine_measured_is_read_by_the_next_command(tmp_path: Path) -> None:
    def task(unit: int, progress: Progress) -> Counted:
        progress(1 << 30)
        return Counted(unit)

    book = SpeedsFile(tmp_path / "cache", "s3")
    InlineEngine(speeds=book).map(task, [1, 2], Counted, label="copy", weight=lambda _: 1 << 30)
    assert not _file(tmp_path / "cache").exists(), "written at the end of the command"
    book.save()
    again = SpeedsFile(tmp_path / "cache", "s3")
    assert again.speeds == book.speeds
    assert again.speeds.inline_rate(again.kind("copy")) > 1 << 30
    assert list(again.speeds.inline) == ["s3 copy"]
    assert stat.S_IMODE(_file(tmp_path / "cache").stat().st_mode) == 0o600
    assert stat.S_IMODE(_file(tmp_path / "cache").parent.stat().st_mode) == 0o700
    assert [each.name for each in _file(tmp_path / "cache").parent.iterdir()] == ["speeds.json"]


def test_a_command_that_measured_nothing_writes_nothing(tmp_path: Path) -> None:
    SpeedsFile(tmp_path / "cache").save()
    assert not (tmp_path / "cache").exists()


@pytest.mark.parametrize(
    "content",
    (b"", b"{", b"[]", b'{"machine": 7}', b'{"start_s": "soon"}', b'{"unknown": 1}', b"\xff" * 100, b"[" * 300_000),
)
def test_a_damaged_file_is_not_used(tmp_path: Path, content: bytes) -> None:
    _file(tmp_path).parent.mkdir()
    _file(tmp_path).write_bytes(content)
    assert SpeedsFile(tmp_path).speeds == EngineSpeeds(this_machine())


def test_senseless_values_are_bounded(tmp_path: Path) -> None:
    _file(tmp_path).parent.mkdir()
    wrong = EngineSpeeds(this_machine(), -5.0, 1e300, {"k": 0.0}, {"k": -1.0})
    _file(tmp_path).write_bytes(msgspec.json.encode(wrong))
    assert SpeedsFile(tmp_path).speeds == EngineSpeeds(this_machine(), 0.1, 600.0, {"k": 1e4}, {"k": 1e4})


def test_speeds_of_another_machine_are_not_used(tmp_path: Path) -> None:
    _file(tmp_path).parent.mkdir()
    _file(tmp_path).write_bytes(msgspec.json.encode(EngineSpeeds("another", 99.0)))
    assert SpeedsFile(tmp_path).speeds == EngineSpeeds(this_machine())


def test_a_directory_that_others_can_change_is_neither_read_nor_written(tmp_path: Path) -> None:
    _file(tmp_path).parent.mkdir()
    _file(tmp_path).write_bytes(msgspec.json.encode(EngineSpeeds(this_machine(), 99.0)))
    give_to_other(_file(tmp_path))
    book = SpeedsFile(tmp_path)
    assert book.speeds == EngineSpeeds(this_machine())
    book.ran_inline("copy", 1 << 30, 1.0)
    book.save()
    assert b"copy" not in _file(tmp_path).read_bytes()


def test_a_cache_that_cannot_be_made_is_no_error(tmp_path: Path) -> None:
    (tmp_path / "cache").write_text("a file")
    book = SpeedsFile(tmp_path / "cache")
    book.ran_inline("copy", 1 << 30, 1.0)
    book.save()
