"""Root restores into directories of another user: whatever that user prepares there, root works with his rights."""

import json
import os
import stat
from collections.abc import Callable
from pathlib import Path

import msgspec
import pytest

from logkeep.errors import LogkeepError, OtherOwner, TargetUnsafe
from logkeep.zookeeper.restore.disk import Disk
from logkeep.zookeeper.restore.finish import continue_restore, roll_back
from logkeep.zookeeper.restore.prepare import prepare
from logkeep.zookeeper.restore.run import carry_out
from logkeep.zookeeper.restore.target.directories import JOURNAL
from logkeep.zookeeper.restore.target.journal import Phase, RestoreJournal, encoded
from logkeep.zookeeper.restore.values import RestoreReceipt, ServerTarget, ZooKeeperRestoreOptions
from tests.support.cli.bundle_documents import zkbackup
from tests.support.owners import (
    OTHER,
    OWNER,
    become,
    give,
    needs_two_users,
    open_home,
    untouched,
    victim,
    without_setuid,
)
from tests.support.zookeeper.handmade_directories import MadeServer, bundled
from tests.support.zookeeper.handmade_server import files, made_backup, old_server

pytestmark = needs_two_users
_ID = "20261117000000-deadbeef"


@pytest.fixture
def server(tmp_path: Path) -> Path:
    old_server(tmp_path / "zk")
    return give(tmp_path / "zk")


def _restore(data: Path, logs: Path | None = None, **how: object) -> RestoreReceipt:
    view, target = made_backup(), ServerTarget(data_dir=data, log_dir=logs or data)
    prepared = prepare(view, view.path(), ZooKeeperRestoreOptions(targets=(target,)))
    return carry_out(prepared, replace=True, **how)  # type: ignore[arg-type] # each test names an argument


def _plant(server: Path, phase: str, *, was_done: bool = False, **more: object) -> None:
    place = {"data_dir": str(server), "log_dir": str(server), "made": [], "fingerprint": "x", **more}
    content = {"type": "restore-journal-1", "restore": _ID, "phase": phase, "places": [place], "was_done": was_done}
    (server / JOURNAL).write_text(json.dumps(content))


def _called(server: Path, *flags: str) -> tuple[int, str]:
    """`zkbackup restore`, as root."""
    made = MadeServer(server.parent / "server")
    made.snapshot(0)
    made.log(range(1, 11), creating=True)
    bundled(made, server.parent / "backups")
    backup = () if flags else (f"--backup-dir={server.parent / 'backups' / 'one'}",)
    places = (f"--zk-data-dir={server}", f"--zk-log-dir={server}", "--zk-host=127.0.0.1:1", "--force")
    done = zkbackup("restore", *backup, *places, *flags, home=server.parent)
    return done.returncode, done.stderr


def test_a_link_in_the_place_of_staged_files_is_not_emptied(server: Path, tmp_path: Path) -> None:
    prey = victim(tmp_path / "victim")
    (server / f"version-2.new-{_ID}").symlink_to(prey)
    _plant(server, "staging")
    before = files(server)
    code, told = _called(give(server))
    assert untouched(prey)
    assert (code, "it is a link" in told) == (52, True)
    assert files(server) == before


def test_a_planted_journal_brings_no_file_into_a_directory_of_root(server: Path, tmp_path: Path) -> None:
    prey = victim(tmp_path / "profile.d")
    (server / "version-2" / "zz.sh").write_text("id")
    (server / f"version-2.before-{_ID}").mkdir()
    (server / f"version-2.before-{_ID}" / "snapshot.1").write_text("")
    (server / f"version-2.new-{_ID}").symlink_to(prey)
    _plant(server, "new", was_done=True)
    code, _ = _called(give(server), "--rollback")
    assert untouched(prey)
    assert code == 52


def test_version_2_that_links_to_a_directory_of_root(server: Path, tmp_path: Path) -> None:
    prey = victim(tmp_path / "victim")
    (server / "version-2").rename(tmp_path / "away")
    (server / "version-2").symlink_to(prey)
    (server / "myid").unlink()  # so that nothing else is a reason to refuse
    code, told = _called(give(server))
    assert untouched(prey), told
    assert (code, "which does not belong to user nobody" in told) == (52, True), told
    assert not list(tmp_path.glob("victim.*"))


def test_a_directory_that_is_exchanged_for_a_link_is_not_given_away(server: Path, tmp_path: Path) -> None:
    prey = victim(tmp_path / "victim")

    def exchanged(step: str) -> None:
        if step == "mkdir":
            (made,) = server.glob("version-2.new-*")
            made.rmdir()
            made.symlink_to(prey)

    with pytest.raises(LogkeepError):
        _restore(server, disk=Disk(exchanged))
    assert untouched(prey)


def test_a_path_that_another_user_can_redirect(tmp_path: Path) -> None:
    """The owner of the directory above makes the dataDir a link, to a directory of root or of a third user."""
    home = tmp_path / "home"
    home.mkdir()
    for uid in (0, OTHER):
        prey = tmp_path / f"of-{uid}"
        old_server(prey)
        give(prey, uid)
        before = files(prey)
        (home / f"zk{uid}").symlink_to(prey)
        give(home)
        with pytest.raises(OtherOwner, match="can make this path lead elsewhere") as caught:
            _restore(home / f"zk{uid}")
        assert (caught.value.exit_code, files(prey)) == (52, before)


def test_a_directory_that_all_can_write_is_no_safe_way(server: Path, tmp_path: Path) -> None:
    (tmp_path / "open").mkdir()
    (tmp_path / "open").chmod(0o777)
    server.rename(tmp_path / "open" / "zk")
    with pytest.raises(OtherOwner, match="a group or every user can make this path"):
        _restore(tmp_path / "open" / "zk")
    (tmp_path / "open").chmod(0o1777)
    _restore(tmp_path / "open" / "zk")


@pytest.mark.parametrize("mode", [0o775, 0o777, 0o1777])
@pytest.mark.parametrize("owner", [0, OWNER])
def test_a_link_of_another_user_in_a_directory_that_others_can_write(tmp_path: Path, mode: int, owner: int) -> None:
    """A member of the directory's group, or any user, has made `version-2` a link."""
    data, prey = tmp_path / "zk", victim(tmp_path / "victim")
    data.mkdir()
    data.chmod(mode)
    os.chown(data, owner, OTHER)
    os.chown(prey, owner, owner)
    (data / "version-2").symlink_to(prey)
    os.chown(data / "version-2", OTHER, OTHER, follow_symlinks=False)
    with pytest.raises(OtherOwner, match="a link that user id") as caught:
        _restore(data)
    assert caught.value.exit_code == 52
    assert [each.name for each in prey.iterdir()] == ["secret"]


def test_a_group_that_can_write_a_directory_above_can_redirect_the_path(server: Path, tmp_path: Path) -> None:
    (tmp_path / "shared").mkdir()
    (tmp_path / "shared").chmod(0o775)
    os.chown(tmp_path / "shared", 0, OTHER)
    server.rename(tmp_path / "shared" / "zk")
    with pytest.raises(OtherOwner, match="a group or every user can make this path"):
        _restore(tmp_path / "shared" / "zk")


def test_a_server_user_restores_below_a_directory_of_root() -> None:
    """dataDir is root's and its group may write; `version-2` and the restoring process are the server's user."""
    with open_home() as home:
        old_server(home / "zk")
        give(home / "zk")
        os.chown(home / "zk", 0, OWNER)
        (home / "zk").chmod(0o2775)
        status = _in_child(lambda: _restored_and_rolled_back(home / "zk"))
    assert status == 0


def _restored_and_rolled_back(data: Path) -> None:
    become()
    _restore(data)
    roll_back(ServerTarget(data_dir=data, log_dir=data))


def _in_child(action: Callable[[], None]) -> int:
    pid = os.fork()
    if pid == 0:
        code = 1
        try:
            action()
            code = 0
        finally:
            os._exit(code)
    return os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1])


@pytest.mark.parametrize("what", ["journal", "before", "strange", "marker"])
def test_nothing_beside_it_may_be_a_link(server: Path, tmp_path: Path, what: str) -> None:
    (tmp_path / "journal").write_bytes(b"{}")
    names = {
        "journal": server / JOURNAL,
        "before": server / f"version-2.before-{_ID}",
        "strange": server / f"version-2.strange-{_ID}",
        "marker": server / "version-2" / "log.7fffffffffffffff",
    }
    names[what].symlink_to(tmp_path / "journal")
    give(server)
    with pytest.raises(OtherOwner, match="it is a link") as caught:
        _restore(server)
    assert caught.value.subject == str(names[what])


@pytest.mark.parametrize("where", ["version-2/snapshot.14", "version-2/other", "version-2"])
def test_what_another_user_owns_is_not_moved(server: Path, where: str) -> None:
    (server / where).touch()
    os.chown(server / where, OTHER, OTHER)
    before = files(server)
    with pytest.raises(OtherOwner, match=f"it belongs to user id {OTHER}") as caught:
        _restore(server)
    assert (caught.value.subject, str(OWNER) in caught.value.remedy) == (str(server / where), True)
    assert files(server) == before


def test_a_user_id_that_cannot_be_taken(server: Path) -> None:
    """Root of a container without CAP_SETUID: refused, and never done as root."""
    before, pid = files(server), os.fork()
    if pid == 0:
        code = 1
        try:
            without_setuid()
            _restore(server)
        except OtherOwner as error:
            code = 0 if "cannot become that user" in error.what and "sudo -u" in error.remedy else 2
        finally:
            os._exit(code)
    assert os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]) == 0
    assert files(server) == before


def test_owner_and_mode_are_those_of_the_server(server: Path) -> None:
    for path in (server / "version-2").iterdir():
        path.chmod(0o600)
    receipt = _restore(server)
    made = [server / JOURNAL, *(server / "version-2").iterdir(), *map(Path, receipt.targets[0].kept)]
    assert {(path.stat().st_uid, path.stat().st_gid) for path in made} == {(OWNER, OWNER)}
    assert {stat.S_IMODE(path.stat().st_mode) for path in (server / "version-2").iterdir()} == {0o600}
    assert (server / "version-2" / "snapshot.29").exists()


def test_a_group_that_the_owner_may_not_use_gets_no_rights(server: Path) -> None:
    for path in (server, server / "version-2"):
        os.chown(path, OWNER, 12345)
    _restore(server)
    (snapshot,) = (server / "version-2").iterdir()
    assert (snapshot.stat().st_uid, stat.S_IMODE(snapshot.stat().st_mode) & 0o070) == (OWNER, 0)


def test_the_directory_of_root_that_holds_the_one_of_a_server(tmp_path: Path) -> None:
    """dataDir belongs to root, version-2 to the server: each is changed with the rights of its owner."""
    old_server(tmp_path / "zk")
    give(tmp_path / "zk" / "version-2")
    old = files(tmp_path / "zk" / "version-2")
    _restore(tmp_path / "zk")
    assert (tmp_path / "zk" / JOURNAL).stat().st_uid == 0
    assert {path.stat().st_uid for path in (tmp_path / "zk").glob("version-2*")} == {OWNER}
    roll_back(ServerTarget(data_dir=tmp_path / "zk"))
    assert files(tmp_path / "zk" / "version-2") == old


def test_two_owners(server: Path, tmp_path: Path) -> None:
    """The log directory belongs to a third user: one child for each, and a pointer by which he agreed."""
    data, logs = tmp_path / "data", tmp_path / "logs"
    old_server(data, logs)
    give(data)
    give(logs, OTHER)
    old = files(data / "version-2"), files(logs / "version-2")
    receipt = _restore(data, logs)
    assert {path.stat().st_uid for path in data.rglob("*")} == {OWNER}
    assert {path.stat().st_uid for path in logs.rglob("*")} == {OTHER}
    assert len(receipt.targets[0].kept) == 2
    (logs / JOURNAL).rename(logs / "away")
    with pytest.raises(TargetUnsafe, match="has no pointer to that journal"):
        roll_back(ServerTarget(data_dir=data, log_dir=logs))
    (logs / "away").rename(logs / JOURNAL)
    roll_back(ServerTarget(data_dir=data, log_dir=logs))
    assert (files(data / "version-2"), files(logs / "version-2")) == old
    assert not (logs / JOURNAL).exists()


@pytest.mark.parametrize("phase", ["staging", "old", "new", "done"])
def test_a_journal_of_one_user_does_not_count_for_another(server: Path, tmp_path: Path, phase: str) -> None:
    prey = tmp_path / "prey"
    old_server(prey)
    (prey / f"version-2.new-{_ID}").mkdir()
    (prey / f"version-2.new-{_ID}" / "snapshot.1").write_text("")
    give(prey, OTHER)
    before = files(prey)
    _plant(server, phase, log_dir=str(prey))
    give(server)
    for end in (continue_restore, roll_back):
        with pytest.raises(TargetUnsafe, match="no pointer"):
            end(ServerTarget(data_dir=server))
    assert files(prey) == before


def test_a_journal_of_another_user_in_a_directory_of_root(tmp_path: Path) -> None:
    old_server(tmp_path / "zk")
    _plant(tmp_path / "zk", "staging")
    os.chown(tmp_path / "zk" / JOURNAL, OWNER, OWNER)
    before = files(tmp_path / "zk")
    for attempt in (lambda: _restore(tmp_path / "zk"), lambda: roll_back(ServerTarget(data_dir=tmp_path / "zk"))):
        with pytest.raises(OtherOwner, match="user nobody made this journal"):
            attempt()
    assert files(tmp_path / "zk") == before


@pytest.mark.parametrize("listed", [True, False], ids=["listed", "earlier-release"])
def test_only_staged_files_are_discarded(server: Path, listed: bool) -> None:
    """By the journal's list; a journal of an earlier release has none: then by the names that a restore makes."""
    staged = server / f"version-2.new-{_ID}"
    staged.mkdir()
    for name in ("snapshot.29", "currentEpoch", "notes.txt", "log.2a"):
        (staged / name).write_text("1")
    made = [str(staged / name) for name in ("snapshot.29", "currentEpoch")] if listed else []
    _plant(server, "staging", made=made, empty=[])
    give(server)
    roll_back(ServerTarget(data_dir=server))
    assert sorted(files(staged)) == (["log.2a", "notes.txt"] if listed else ["notes.txt"])
    assert not (server / JOURNAL).exists()


def test_the_journal_lists_what_is_staged_and_earlier_releases_can_read_it(server: Path) -> None:
    seen = list[RestoreJournal]()

    def journal(step: str) -> None:
        if step == "create" and (server / JOURNAL).exists():
            seen.append(msgspec.json.decode((server / JOURNAL).read_bytes(), type=RestoreJournal))

    receipt = _restore(server, disk=Disk(journal))
    (place,) = seen[0].places
    assert seen[0].phase is Phase.STAGING
    assert place.made == (str(server / f"version-2.new-{receipt.restore}" / "snapshot.29"),)
    assert set(json.loads(encoded(seen[0]))["places"][0]) == {"data_dir", "log_dir", "made", "fingerprint", "empty"}


def test_rights_of_a_group_that_its_owner_is_not_in_are_reported(server: Path) -> None:
    """They are left out: the owner's own group must not get them."""
    version_2 = server / "version-2"
    os.chown(version_2, OWNER, OTHER)
    version_2.chmod(0o750)
    done = _restore(server)
    found = [finding for finding in done.findings if finding.code == "group-rights-dropped"]
    assert [(finding.where, finding.what.partition(":")[0]) for finding in found] == [
        (str(version_2), f"the owner of the directory is not in group {OTHER}")
    ]
    assert {stat.S_IMODE(path.stat().st_mode) & 0o070 for path in version_2.iterdir()} == {0}
    os.chown(version_2, OWNER, OWNER)
    assert not [finding for finding in _restore(server).findings if finding.code == "group-rights-dropped"]
