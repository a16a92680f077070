"""One run at a time has a subtree's journal: an undo needs every line of it."""

import errno
import fcntl
import os
from pathlib import Path
from typing import cast

import msgspec
import pytest

from logkeep.errors import Locked, RestoreFailed, TargetUnsafe, UsageError
from logkeep.zookeeper.restore.target.directories import ServerDirectories
from logkeep.zookeeper.restore.target.locks import locked
from logkeep.zookeeper.server.client import ZooKeeperSession
from logkeep.zookeeper.subtree.journal import BatchBegan, BatchDone, Heading, new_journal, read_journal, reopen_journal
from logkeep.zookeeper.subtree.run import begin, resume, undo

HEADING = Heading(hosts="h:1", top="/t", what="backup 1")
NOBODY = cast("ZooKeeperSession", None)
"""A second run is refused before it asks a server anything."""


class Killed(BaseException):
    """As if the process had died."""


def _dies(step: str) -> None:
    raise Killed(step)


def test_a_second_run_is_refused_and_writes_nothing(tmp_path: Path) -> None:
    path = tmp_path / "journal"
    first = new_journal(path, HEADING, ())
    before = path.read_bytes()
    for _ in range(2):
        with pytest.raises(Locked, match="another run is using this journal") as refused:
            resume(NOBODY, path)
        assert (refused.value.exit_code, refused.value.subject) == (50, str(path))
        with pytest.raises(Locked):
            undo(NOBODY, path, tmp_path / "undo", 0xFFFFF)
        assert path.read_bytes() == before
        first.close()
        first, _ = reopen_journal(path)
    first.close()
    assert not (tmp_path / "undo").exists()


def test_what_the_first_run_has_begun_to_write_is_not_cut(tmp_path: Path) -> None:
    path = tmp_path / "journal"
    first = new_journal(path, HEADING, ())
    with path.open("ab") as half:
        half.write(b'{"type":"beg')
    with pytest.raises(Locked):
        reopen_journal(path)
    assert path.read_bytes().endswith(b'{"type":"beg')
    first.close()


def test_lines_are_appended_whoever_else_wrote(tmp_path: Path) -> None:
    path = tmp_path / "journal"
    journal = new_journal(path, HEADING, ())
    with path.open("ab") as other:
        other.write(b'{"type":"began","batch":0}\n')
    journal.note(BatchDone(0))
    journal.close()
    assert path.read_bytes().endswith(b'{"type":"began","batch":0}\n{"type":"done","batch":0}\n')
    again, _ = reopen_journal(path)
    with path.open("ab") as other:
        other.write(b'{"type":"began","batch":1}\n')
    again.note(BatchDone(1), BatchBegan(2))
    again.close()
    assert read_journal(path).done == 2


def test_a_run_that_ends_early_holds_it_no_longer(tmp_path: Path) -> None:
    path = tmp_path / "journal"
    with pytest.raises(Killed):
        begin(NOBODY, path, HEADING, (), _dies)
    with pytest.raises(Killed):
        resume(NOBODY, path, _dies)
    reopen_journal(path)[0].close()


def test_a_journal_that_is_not_there_is_said_to_be_unreadable(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="cannot be read"):
        reopen_journal(tmp_path / "none")


def test_who_resumes_an_undo_keeps_everybody_from_what_it_takes_back(tmp_path: Path) -> None:
    first, back = tmp_path / "journal", tmp_path / "undo"
    new_journal(first, HEADING, ()).close()
    new_journal(back, msgspec.structs.replace(HEADING, undoes=str(first)), ()).close()
    other, _ = reopen_journal(first)
    with pytest.raises(Locked, match="another run is using this journal") as refused:
        resume(NOBODY, back)
    assert refused.value.subject == str(first)
    other.close()

    def taken(_step: str) -> None:
        with pytest.raises(Locked):
            reopen_journal(first)
        raise Killed

    with pytest.raises(Killed):
        resume(NOBODY, back, taken)
    for path in (first, back):
        reopen_journal(path)[0].close()
    first.unlink()
    with pytest.raises(Killed):
        resume(NOBODY, back, _dies)


@pytest.mark.parametrize("code", [errno.ENOLCK, errno.EOPNOTSUPP])
def test_a_file_system_without_locks_is_told_and_nothing_stays_behind(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, code: int
) -> None:
    path = tmp_path / "journal"
    new_journal(path, HEADING, ()).close()
    before = path.read_bytes()

    def refuses(_descriptor: int, _how: int) -> None:
        raise OSError(code, os.strerror(code))

    monkeypatch.setattr(fcntl, "flock", refuses)
    for attempt in (lambda: new_journal(tmp_path / "new", HEADING, ()), lambda: reopen_journal(path)):
        with pytest.raises(RestoreFailed, match="has no locks") as caught:
            attempt()
        assert "local file system" in caught.value.remedy
    assert [each.name for each in tmp_path.iterdir()] == ["journal"]
    assert path.read_bytes() == before
    with (
        pytest.raises(TargetUnsafe, match="has no locks") as refused,
        locked([ServerDirectories(tmp_path, tmp_path)]),
    ):
        pass
    assert "local file system" in refused.value.remedy
