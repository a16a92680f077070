"""Ctrl-C in a restore: the remedy is a command that there is, and that does what it says from where it was stopped."""

import shlex
from collections.abc import Callable
from pathlib import Path

import pytest

from logkeep.cli.frame.signals import SigtermReceived
from logkeep.cli.verbs.zookeeper.restore.resume_hints import ending_hints, rerun_hint, resume_hints
from logkeep.cli.verbs.zookeeper.restore.subtree_session import by_journal
from logkeep.errors import Interrupted, RestoreFailed, Terminated, UsageError
from logkeep.zookeeper.restore.disk import Disk
from logkeep.zookeeper.restore.finish import roll_back
from logkeep.zookeeper.restore.prepare import prepare
from logkeep.zookeeper.restore.run import carry_out
from logkeep.zookeeper.restore.target.directories import JOURNAL, MARKER
from logkeep.zookeeper.restore.values import ServerTarget, ZooKeeperRestoreOptions
from tests.support.cli.bundle_documents import zkbackup
from tests.support.zookeeper.handmade_server import files, made_backup, old_server

NAME = "20261116030000-1f2e3d4c"
COMMANDS = ("logkeep zookeeper restore --data-dir", "zkbackup restore --zk-data-dir")


@pytest.fixture
def server(tmp_path: Path) -> Path:
    old_server(tmp_path / "zk server")
    return tmp_path / "zk server"


def _stopped(server: Path, when: Callable[[], bool], command: str = COMMANDS[0]) -> Interrupted:
    view, target = made_backup(), ServerTarget(data_dir=server, log_dir=server)
    prepared = prepare(view, view.path(), ZooKeeperRestoreOptions(targets=(target,)))

    def pressed(_step: str) -> None:
        if when():
            raise KeyboardInterrupt

    def restore() -> None:
        with resume_hints(command, server, NAME):
            carry_out(prepared, replace=True, disk=Disk(pressed), name=NAME)
            raise KeyboardInterrupt  # behind its end

    with pytest.raises(Interrupted) as caught:
        restore()
    return caught.value


@pytest.mark.parametrize("command", COMMANDS)
def test_between_the_old_data_and_the_new(server: Path, command: str) -> None:
    error = _stopped(server, (server / "version-2" / MARKER).exists, command)
    verb, _, flag = command.rpartition(" ")
    for word in ("--continue", "--rollback"):
        assert f"`{verb} {word} {flag} {shlex.quote(str(server))}`" in error.remedy
    assert "--resume" not in error.remedy


def test_the_command_does_what_is_said(server: Path) -> None:
    error = _stopped(server, (server / "version-2" / MARKER).exists, COMMANDS[1])
    command = shlex.split(next(part for part in error.remedy.split("`") if "--continue" in part))[1:]
    ended = zkbackup(*command, "--force", "--zk-host=127.0.0.1:1", home=server.parent)
    assert (ended.returncode, "the restored data is in place" in ended.stdout) == (0, True), ended.stderr


def test_while_it_is_staged_nothing_is_to_be_continued(server: Path) -> None:
    before = files(server / "version-2")
    error = _stopped(server, lambda: any(server.glob("version-2.new-*/snapshot.*")))
    assert error.remedy == "the earlier data is in place: run it again"
    assert files(server / "version-2") == before
    assert "is in place; `logkeep zookeeper restore --rollback" in _stopped(server, lambda: False).remedy


def test_the_journal_of_an_earlier_restore_is_not_taken_for_this_one(server: Path) -> None:
    _stopped(server, lambda: False)
    with pytest.raises(Interrupted) as caught, resume_hints(COMMANDS[0], server, "20261116040000-00000000"):
        raise KeyboardInterrupt
    assert caught.value.remedy == "the earlier data is in place: run it again"


def test_before_anything_is_changed_and_behind_the_end() -> None:
    with pytest.raises(Terminated) as before, rerun_hint():
        raise SigtermReceived
    assert before.value.remedy == "nothing was changed: run it again"

    def ended() -> None:
        with rerun_hint() as begun:
            begun.yes = True
            raise KeyboardInterrupt

    with pytest.raises(Interrupted) as behind:
        ended()
    assert "receipts list" in behind.value.remedy


def test_a_subtree_goes_on_by_its_journal(tmp_path: Path) -> None:
    journal = tmp_path / "a journal"
    for there, told in ((False, "run it again"), (True, f"restore-subtree --resume '{journal}'`")):
        with pytest.raises(Interrupted) as caught, by_journal(journal):
            raise KeyboardInterrupt
        assert told in caught.value.remedy, there
        journal.touch()


def test_the_verb_itself_says_so(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Before it has looked at anything."""
    from logkeep.cli.zkbackup import restore as restore_command  # noqa: PLC0415 - what is stopped is its own

    old_server(tmp_path / "zk")

    def pressed(*_: object) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr(restore_command, "roll_back", pressed)
    flags = (f"--zk-data-dir={tmp_path / 'zk'}", "--force", "--zk-host=127.0.0.1:1")
    ended = zkbackup("restore", "--rollback", *flags, home=tmp_path)
    assert (ended.returncode, "run it again" in ended.stderr) == (130, True)


def test_a_disk_that_is_full_between_the_old_data_and_the_new(server: Path) -> None:
    view, target = made_backup(), ServerTarget(data_dir=server, log_dir=server)
    prepared = prepare(view, view.path(), ZooKeeperRestoreOptions(targets=(target,)))

    def full(_step: str) -> None:
        if (server / "version-2" / MARKER).exists():
            raise RestoreFailed("no space left on device", remedy="free space, then do something")

    with pytest.raises(RestoreFailed) as caught, resume_hints(COMMANDS[1], server, NAME):
        carry_out(prepared, replace=True, disk=Disk(full), name=NAME)
    remedy = caught.value.remedy
    assert remedy.startswith("free space; until then start no server: `zkbackup restore --continue --zk-data-dir ")
    assert "do something" not in remedy


@pytest.mark.parametrize("typed", ["zk server/version-2", "link", "zk server"])
@pytest.mark.parametrize("program", ["zkbackup", "logkeep"])
def test_ending_it_says_where_it_stands_however_the_directory_was_typed(
    server: Path, typed: str, program: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Stopped at each step of a rollback: never is the old data said to be in place before it is."""
    (server.parent / "link").symlink_to(server, target_is_directory=True)
    before = files(server / "version-2")
    view, target = made_backup(), ServerTarget(data_dir=server, log_dir=server)
    carry_out(prepare(view, view.path(), ZooKeeperRestoreOptions(targets=(target,))), replace=True, name=NAME)
    for step in range(1, 40):
        told = _rolled_back(server.parent / typed, step, COMMANDS[program == "zkbackup"])
        if told is None:
            break
        back = files(server / "version-2") == before
        assert back or "--continue" in told or "the restored data is in place" in told, (step, told)
        assert str(server) in told or back
    assert step > 5
    assert files(server / "version-2") == before


def _rolled_back(typed: Path, last: int, command: str) -> str | None:
    """What is said when Ctrl-C is pressed at that step; None when it ended before."""
    left = iter(range(last))

    def pressed(_step: str) -> None:
        if next(left, None) is None:
            raise KeyboardInterrupt

    target = ServerTarget(data_dir=typed, log_dir=None)
    try:
        with ending_hints(command, target):
            roll_back(target, disk=Disk(pressed))
    except Interrupted as stopped:
        return stopped.remedy
    except UsageError:  # the step before was behind its end
        return None
    return None


def test_the_end_of_a_rollback_names_no_command_that_would_undo_an_earlier_restore(server: Path) -> None:
    view, target = made_backup(), ServerTarget(data_dir=server, log_dir=server)
    for name in ("20261116010000-00000000", NAME):
        carry_out(prepare(view, view.path(), ZooKeeperRestoreOptions(targets=(target,))), replace=True, name=name)

    def pressed_at_the_end() -> None:
        with ending_hints(COMMANDS[1], target):
            roll_back(target)
            raise KeyboardInterrupt

    with pytest.raises(Interrupted) as caught:
        pressed_at_the_end()
    assert caught.value.remedy == "the earlier data is in place"


def test_a_journal_that_cannot_be_read_is_not_taken_for_none(server: Path) -> None:
    (server / JOURNAL).write_text("{")
    with pytest.raises(Interrupted) as caught, resume_hints(COMMANDS[0], server, NAME):
        raise KeyboardInterrupt
    assert caught.value.remedy.startswith("its progress is not known")
    assert "--continue" in caught.value.remedy
