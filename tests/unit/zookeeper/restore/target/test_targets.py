"""Directories that a restore goes to, or does not: clear errors, and nothing lost."""

import os
import resource
import subprocess
import sys
from pathlib import Path

import msgspec
import pytest

from logkeep.errors import Damaged, Locked, LogkeepError, RestoreFailed, TargetUnsafe, UsageError
from logkeep.formats.zookeeper.names import log_name
from logkeep.zookeeper.restore.finish import RestoreEndState, continue_restore, roll_back
from logkeep.zookeeper.restore.next_steps import next_steps
from logkeep.zookeeper.restore.prepare import prepare
from logkeep.zookeeper.restore.run import carry_out
from logkeep.zookeeper.restore.target import checks as target_checks
from logkeep.zookeeper.restore.target.directories import JOURNAL, place_of
from logkeep.zookeeper.restore.target.locks import locked
from logkeep.zookeeper.restore.values import Form, RestoreReceipt, ServerTarget, Sessions, ZooKeeperRestoreOptions
from logkeep.zookeeper.server.four_letter import ServerState
from logkeep.zookeeper.timeline.plan import ToZxid
from tests.support.zookeeper.handmade_server import (
    MadeView,
    create,
    files,
    log_bytes,
    made_backup,
    old_server,
    snapshot_of,
    snapshot_without_acls,
    tree_after,
)
from tests.support.zookeeper.server_files import loaded


def _wish(*data_dirs: Path, **more: object) -> ZooKeeperRestoreOptions:
    targets = tuple(ServerTarget(data_dir=path, log_dir=path) for path in data_dirs)
    return ZooKeeperRestoreOptions(targets=targets, **more)  # type: ignore[arg-type] # each test names a field


def _restore(view: MadeView, wish: ZooKeeperRestoreOptions, *, replace: bool = True) -> RestoreReceipt:
    return carry_out(prepare(view, view.path(), wish), replace=replace)


def _refused(view: MadeView, wish: ZooKeeperRestoreOptions) -> LogkeepError:
    """The first thing that stands in the way; and that nothing was done."""
    before = [files(target.data_dir) for target in wish.targets]
    prepared = prepare(view, view.path(), wish)
    with pytest.raises(LogkeepError) as caught:
        carry_out(prepared, replace=True)
    assert [files(target.data_dir) for target in wish.targets] == before
    return caught.value


@pytest.fixture
def server(tmp_path: Path) -> Path:
    old_server(tmp_path / "zk")
    return tmp_path / "zk"


def test_a_new_server_gets_the_tree_under_its_own_zxid(tmp_path: Path) -> None:
    view = made_backup()
    receipt = _restore(view, _wish(tmp_path), replace=False)
    assert sorted(files(tmp_path)) == [JOURNAL, "version-2/snapshot.5"]
    assert (receipt.zxid, receipt.named_zxid, receipt.epoch) == (5, 5, None)
    tree, ending = loaded(tmp_path / "version-2" / "snapshot.5")
    assert {b"/a", b"/a/b", b"/c", b"/gone"} < tree.nodes.keys()
    assert (ending.checksums, ending.digest) == (1, None)
    assert tree.digest == receipt.digest


def test_a_server_that_is_known_to_have_digests_is_told_the_digest(tmp_path: Path) -> None:
    receipt = _restore(made_backup(), _wish(tmp_path, digests=True))
    _, ending = loaded(tmp_path / "version-2" / "snapshot.5")
    assert (ending.digest_zxid, ending.digest) == (5, receipt.digest)


def test_replaced_data_is_kept_and_its_zxids_are_not_used_again(server: Path) -> None:
    old = files(server / "version-2")
    receipt = _restore(made_backup(), _wish(server))
    assert (receipt.zxid, receipt.named_zxid) == (5, 41)
    assert sorted(files(server / "version-2")) == ["snapshot.29"]
    (kept,) = receipt.targets[0].kept
    assert files(Path(kept)) == old
    assert (server / "myid").read_text() == "1\n"


def test_a_restore_that_ended_can_be_undone_and_what_was_written_since_is_kept(server: Path) -> None:
    old = files(server / "version-2")
    receipt = _restore(made_backup(), _wish(server))
    (server / "version-2" / "log.2a").write_bytes(log_bytes([create(0x2A + n, b"/since%d" % n) for n in range(3)]))
    ended = roll_back(ServerTarget(data_dir=server))
    assert ended.outcome is RestoreEndState.OLD
    assert files(server / "version-2") == old
    assert [Path(path).name for path in ended.kept] == [f"version-2.new-{receipt.restore}"]
    assert b"/since2" in files(Path(ended.kept[0]))["log.2a"]
    assert not (server / JOURNAL).exists()
    (finding,) = ended.findings
    assert finding.code == "zxids-reused"
    assert "had reached 0x2c, and the old data ends with 0x28" in finding.what
    assert [word in "\n".join(ended.next_steps) for word in ("start", "--new-history")] == [True, True]


def test_a_rollback_of_what_no_server_ran_on_gives_no_zxid_again(server: Path) -> None:
    _restore(made_backup(), _wish(server))
    assert roll_back(ServerTarget(data_dir=server)).findings == ()


def test_a_rollback_of_logs_that_cannot_be_read_says_so_and_is_done(server: Path) -> None:
    old = files(server / "version-2")
    _restore(made_backup(), _wish(server))
    (server / "version-2" / "log.2a").mkdir()
    (finding,) = roll_back(ServerTarget(data_dir=server)).findings
    assert "cannot be read" in finding.what
    assert files(server / "version-2") == old


def test_two_restores_are_undone_one_after_the_other(server: Path) -> None:
    old = files(server / "version-2")
    _restore(made_backup(), _wish(server))
    between = files(server / "version-2")
    _restore(made_backup(epoch=7), _wish(server))
    roll_back(ServerTarget(data_dir=server))
    assert files(server / "version-2") == between
    roll_back(ServerTarget(data_dir=server))
    assert files(server / "version-2") == old
    with pytest.raises(UsageError, match="no restore"):
        roll_back(ServerTarget(data_dir=server))


def test_a_target_with_data_is_not_replaced_without_a_word(server: Path) -> None:
    before = files(server)
    with pytest.raises(TargetUnsafe, match="holds data") as caught:
        _restore(made_backup(), _wish(server), replace=False)
    assert caught.value.exit_code == 31
    assert files(server) == before


def test_version_2_may_be_named_itself(server: Path) -> None:
    assert place_of(ServerTarget(data_dir=server / "version-2")) == place_of(
        ServerTarget(data_dir=server, log_dir=None)
    )


def test_original_files_are_cut_behind_the_zxid(tmp_path: Path) -> None:
    view = made_backup(more=[create(6, b"/late"), create(7, b"/later")])
    path = view.path(ToZxid(6))
    carry_out(prepare(view, path, _wish(tmp_path, form=Form.ORIGINAL)))
    found = files(tmp_path / "version-2")
    assert found["snapshot.3"] == view.stored["snapshot.3"]
    whole = view.stored["log.4"]
    assert sorted(found) == ["log.4", "snapshot.3"]
    assert whole.startswith(found["log.4"])
    assert b"/late" in found["log.4"]
    assert b"/later" not in found["log.4"]


def test_original_files_of_a_server_that_began_with_nothing(tmp_path: Path) -> None:
    view = MadeView()
    view.add_log([create(1, b"/a"), create(2, b"/b")])
    _restore(view, _wish(tmp_path, form=Form.ORIGINAL))
    assert sorted(files(tmp_path / "version-2")) == ["log.1", "snapshot.0"]


def test_original_files_say_that_zxids_come_again(server: Path) -> None:
    view = made_backup()
    prepared = prepare(view, view.path(), _wish(server, form=Form.ORIGINAL))
    assert "zxids-reused" in [finding.code for finding in prepared.planned.findings]
    with pytest.raises(UsageError, match="keep their sessions"):
        prepare(view, view.path(), _wish(server, form=Form.ORIGINAL, sessions=Sessions.DROP))


@pytest.mark.parametrize(("form", "missing"), [(Form.ORIGINAL, True), (Form.ORIGINAL, False), (Form.EXACT, True)])
def test_original_files_that_a_server_may_refuse_to_load(tmp_path: Path, form: Form, missing: bool) -> None:
    """A fuzzy snapshot may name ACLs that only the log behind it tells: an exact one holds them."""
    bodies, view = [create(1, b"/a"), create(2, b"/b"), create(3, b"/c")], MadeView()
    tree = tree_after(bodies)
    content = snapshot_without_acls(bodies, b"/c") if missing else snapshot_of(tree)
    view.add_snapshot("snapshot.2", tree, content)
    view.snapshots[0] = msgspec.structs.replace(view.snapshots[0], zxid=2)
    view.add_log(bodies[2:])
    found = prepare(view, view.path(), _wish(tmp_path, form=form)).planned.findings
    told = [finding for finding in found if finding.code == "missing-acls"]
    assert bool(told) == (missing and form is Form.ORIGINAL)
    assert all(("ACLs of 1 node" in one.what, one.where) == (True, "snapshot.2") for one in told)


def test_separate_directories(tmp_path: Path) -> None:
    data, logs = tmp_path / "data", tmp_path / "logs"
    old_server(data, logs)
    before = files(tmp_path)
    view = made_backup()
    wish = ZooKeeperRestoreOptions(targets=(ServerTarget(data_dir=data, log_dir=logs),), form=Form.ORIGINAL)
    receipt = carry_out(prepare(view, view.path(), wish), replace=True)
    assert sorted(files(data / "version-2")) == ["snapshot.3"]
    assert sorted(files(logs / "version-2")) == ["log.4"]
    assert len(receipt.targets[0].kept) == 2
    roll_back(ServerTarget(data_dir=data, log_dir=logs))
    assert {n: d for n, d in files(tmp_path).items() if ".new-" not in n} == before


def test_directories_that_were_named_the_wrong_way_round(tmp_path: Path) -> None:
    data, logs = tmp_path / "data", tmp_path / "logs"
    old_server(data, logs)
    view = made_backup()
    with pytest.raises(TargetUnsafe, match="other files"):
        prepare(view, view.path(), ZooKeeperRestoreOptions(targets=(ServerTarget(data_dir=logs, log_dir=data),)))


def test_a_log_directory_that_nobody_named(tmp_path: Path) -> None:
    old_server(tmp_path / "data", tmp_path / "logs")
    wish = ZooKeeperRestoreOptions(targets=(ServerTarget(data_dir=tmp_path / "data"),))
    assert "another directory" in _refused(made_backup(), wish).what


def test_members_get_one_epoch_above_all_and_a_name_in_it(tmp_path: Path) -> None:
    for number, epoch in ((1, 3), (2, 5), (3, 4)):
        old_server(tmp_path / str(number), epoch=epoch, epochs=True)
    receipt = _restore(made_backup(epoch=2), _wish(*(tmp_path / n for n in "123")))
    assert (receipt.epoch, receipt.named_zxid) == (6, 6 << 32)
    for name in "123":
        found = files(tmp_path / name / "version-2")
        assert sorted(found) == ["acceptedEpoch", "currentEpoch", "snapshot.600000000"]
        assert found["acceptedEpoch"] == found["currentEpoch"] == b"6"
    assert len({target.files[0].sha256 for target in receipt.targets}) == 1
    roll_back(ServerTarget(data_dir=tmp_path / "3"))  # any member leads to the journal
    assert all("snapshot.600000000" not in files(tmp_path / name / "version-2") for name in "123")


def test_one_member_alone_is_told_that_there_are_others(tmp_path: Path) -> None:
    old_server(tmp_path, epoch=3, epochs=True)
    view = made_backup(epoch=2)
    planned = prepare(view, view.path(), _wish(tmp_path, min_epoch=8)).planned
    assert planned.epoch == 9
    assert "ensemble-member" in [finding.code for finding in planned.findings]


def test_one_member_alone_needs_to_know_of_the_others(tmp_path: Path) -> None:
    old_server(tmp_path, epoch=3, epochs=True)
    error = _refused(made_backup(epoch=2), _wish(tmp_path))
    assert "only 1 of the ensemble's members" in error.what
    assert "here it is 3" in error.remedy


def test_original_files_for_members_say_what_a_forgotten_one_does(tmp_path: Path) -> None:
    old_server(tmp_path, epoch=3, epochs=True)
    view = made_backup(epoch=2)
    for form in Form:
        planned = prepare(view, view.path(), _wish(tmp_path, min_epoch=8, form=form)).planned
        told = [finding.code for finding in planned.findings]
        assert ("forgotten-members" in told) is (form is Form.ORIGINAL)


def test_a_tree_that_the_digests_disprove(tmp_path: Path) -> None:
    """Refused; and restored only if somebody says so, with a receipt that says so too."""
    view = made_backup()
    view.snapshots[0] = msgspec.structs.replace(view.snapshots[0], digest_hex="1")
    with pytest.raises(RestoreFailed, match="differs from the tree that the server had"):
        prepare(view, view.path(), _wish(tmp_path))
    receipt = _restore(view, _wish(tmp_path, accept_mismatch="a bit flipped, told by the owner"))
    assert receipt.proof.startswith("disproven: the server's digest at 0x3")
    (told,) = [finding.what for finding in receipt.findings if finding.code == "digest-mismatch"]
    assert told.endswith("this was accepted: a bit flipped, told by the owner")


def test_the_next_steps_name_both_zxids(server: Path) -> None:
    receipt = _restore(made_backup(), _wish(server))
    told = "\n".join(next_steps(receipt))
    for each in ("0x5", "0x29", "--new-history", receipt.targets[0].kept[0]):
        assert each in told


def test_live_servers_raise_the_epoch_and_stop_the_restore(tmp_path: Path) -> None:
    old_server(tmp_path, epoch=3, epochs=True)
    view = made_backup(epoch=2)
    wish = ZooKeeperRestoreOptions(targets=(ServerTarget(data_dir=tmp_path, log_dir=tmp_path, host="zk:2181"),))
    prepared = prepare(view, view.path(), wish, ask=lambda _host: ServerState(0x900000003, "leader"))
    assert prepared.planned.epoch == 10
    with pytest.raises(TargetUnsafe, match="a server answers at zk:2181"):
        carry_out(prepared, replace=True)


def test_what_was_not_asked_is_told(server: Path) -> None:
    view = made_backup()
    planned = prepare(view, view.path(), _wish(server)).planned
    assert any("no host was named" in each for each in planned.unchecked)


def test_a_process_that_has_a_file_open_there(server: Path) -> None:
    program = "import sys; f = open(sys.argv[1]); print('open', flush=True); sys.stdin.read()"
    log = str(server / "version-2" / log_name(21))
    command = [sys.executable, "-c", program, log]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE) as process:
        assert process.stdin is not None
        assert process.stdout is not None
        process.stdout.readline()
        error = _refused(made_backup(), _wish(server))
        process.stdin.close()
    assert f"process {process.pid} has files open" in error.what
    assert error.exit_code == 31


def test_a_server_that_has_written_nothing_yet(server: Path, tmp_path: Path) -> None:
    (tmp_path / "zoo.cfg").write_text(f"# a server\ndataDir={server}\nclientPort=2181\n")
    program = "import sys; print('runs', flush=True); sys.stdin.read()"
    command = [sys.executable, "-c", program, "org.apache.zookeeper.server.quorum.QuorumPeerMain", "zoo.cfg"]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, cwd=tmp_path) as process:
        assert process.stdin is not None
        assert process.stdout is not None
        process.stdout.readline()
        error = _refused(made_backup(), _wish(server))
        process.stdin.close()
    assert "configured for these directories" in error.what


def test_files_that_change_while_it_is_prepared(server: Path) -> None:
    view = made_backup()
    prepared = prepare(view, view.path(), _wish(server))
    with (server / "version-2" / log_name(21)).open("ab") as log:
        log.write(b"more")
    before = files(server)
    with pytest.raises(TargetUnsafe, match="files changed"):
        carry_out(prepared, replace=True)
    assert files(server) == before


def test_another_restore_at_the_same_time(server: Path) -> None:
    view = made_backup()
    prepared = prepare(view, view.path(), _wish(server))
    with locked(prepared.places), pytest.raises(Locked):
        carry_out(prepared, replace=True)


@pytest.mark.parametrize("what", ["missing", "file", "dots", "home", "plain-version-2", "loop"])
def test_wrong_directories(tmp_path: Path, what: str) -> None:
    wrong = tmp_path / "wrong"
    if what == "file":
        wrong.write_text("")
    elif what == "dots":
        wrong.mkdir()
        wrong = wrong / ".." / "wrong"
    elif what == "home":
        (wrong / "Documents").mkdir(parents=True)
    elif what == "plain-version-2":
        wrong.mkdir()
        (wrong / "version-2").write_text("")
    elif what == "loop":
        wrong.symlink_to(wrong)
    view = made_backup()
    with pytest.raises((UsageError, TargetUnsafe)) as caught:
        prepare(view, view.path(), _wish(wrong))
    assert caught.value.subject
    assert caught.value.remedy


def test_the_same_directory_for_two_members(tmp_path: Path) -> None:
    view = made_backup()
    with pytest.raises(UsageError, match="same directory"):
        prepare(view, view.path(), _wish(tmp_path, tmp_path))


def test_version_2_that_is_a_mount_point(server: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    told = tmp_path / "mountinfo"
    told.write_text(f"36 35 98:0 /x {server / 'version-2'} rw - ext4 /dev/sda rw\n")
    monkeypatch.setattr(target_checks, "_MOUNTS", told)
    view = made_backup()
    with pytest.raises(TargetUnsafe, match="mount point") as caught:
        prepare(view, view.path(), _wish(server))
    assert f"mount the volume at {server}" in caught.value.remedy


def test_a_link_stays_a_link(server: Path, tmp_path: Path) -> None:
    elsewhere = tmp_path / "big"
    elsewhere.mkdir()
    (server / "version-2").rename(elsewhere / "real")
    (server / "version-2").symlink_to(elsewhere / "real")
    receipt = _restore(made_backup(), _wish(server))
    assert (server / "version-2").is_symlink()
    assert sorted(files(elsewhere / "real")) == ["snapshot.29"]
    assert Path(receipt.targets[0].kept[0]).parent == elsewhere


def test_permissions_are_never_wider(server: Path) -> None:
    live = server / "version-2"
    for path, mode in ((live, 0o777), *((file, 0o644) for file in live.iterdir())):
        path.chmod(mode)
    receipt = _restore(made_backup(), _wish(server))
    assert (live / "snapshot.29").stat().st_mode & 0o777 == 0o640
    assert Path(receipt.targets[0].kept[0]).stat().st_mode & 0o777 == 0o750
    for path in live.iterdir():
        path.chmod(0o600)
    _restore(made_backup(), _wish(server))
    assert {path.stat().st_mode & 0o777 for path in live.iterdir()} == {0o600}


def test_the_disk_is_full_while_it_is_staged(server: Path) -> None:
    """A limit on the size of files does what a full disk does: the write fails half-way."""
    view = made_backup(more=[create(6, b"/large", bytes(200_000))])
    prepared, before = prepare(view, view.path(), _wish(server)), files(server)
    soft, hard = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (100_000, hard))
    try:
        with pytest.raises(RestoreFailed, match="too large") as caught:
            carry_out(prepared, replace=True)
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, (soft, hard))
    assert caught.value.exit_code == 30
    assert "free space" in caught.value.remedy
    assert files(server) == before
    carry_out(prepared, replace=True)


def test_no_permission(tmp_path_factory: pytest.TempPathFactory) -> None:
    """As somebody whose directory it is not."""
    server = tmp_path_factory.mktemp("owned") / "zk"
    old_server(server)
    before, mode = files(server), 0o555
    if os.geteuid() == 0:
        os.seteuid(65534)
    else:
        server.chmod(mode)
    try:
        view = made_backup()
        with pytest.raises(LogkeepError) as caught:
            carry_out(prepare(view, view.path(), _wish(server)), replace=True)
    finally:
        if os.getuid() == 0:
            os.seteuid(0)
        server.chmod(0o755)
    assert isinstance(caught.value, TargetUnsafe)
    assert "root" in caught.value.remedy
    assert files(server) == before


def test_a_damaged_log_is_counted_rather_too_high(server: Path) -> None:
    log = server / "version-2" / log_name(21)
    whole = bytearray(log.read_bytes())
    whole[40] ^= 1
    log.write_bytes(whole)
    view = made_backup()
    planned = prepare(view, view.path(), _wish(server)).planned
    assert planned.named > 41
    assert "replaced-damaged" in [finding.code for finding in planned.findings]


def test_stray_files_are_told_and_go_with_the_old_data(server: Path) -> None:
    (server / "version-2" / "log.15.bak").write_bytes(log_bytes([create(0x15, b"/x")]))
    view = made_backup()
    prepared = prepare(view, view.path(), _wish(server))
    assert any("log.15.bak" in finding.what for finding in prepared.planned.findings)
    receipt = carry_out(prepared, replace=True)
    assert "log.15.bak" in files(Path(receipt.targets[0].kept[0]))


def test_a_journal_that_is_none(server: Path) -> None:
    (server / JOURNAL).write_text("{")
    with pytest.raises(Damaged, match="not the journal"):
        continue_restore(ServerTarget(data_dir=server))


def test_a_journal_of_other_directories(server: Path, tmp_path: Path) -> None:
    _restore(made_backup(), _wish(server))
    old_server(tmp_path / "other")
    (tmp_path / "other" / JOURNAL).write_bytes((server / JOURNAL).read_bytes())
    with pytest.raises(TargetUnsafe, match="other directories"):
        roll_back(ServerTarget(data_dir=tmp_path / "other"))


def test_only_what_is_kept_is_said_to_be_kept(tmp_path: Path) -> None:
    """A log directory that held nothing leaves nothing behind, and nobody is sent to look for it."""
    old_server(tmp_path / "data", tmp_path / "logs")
    for log in (tmp_path / "logs" / "version-2").iterdir():
        log.unlink()
    view, target = made_backup(), ServerTarget(data_dir=tmp_path / "data", log_dir=tmp_path / "logs")
    receipt = carry_out(prepare(view, view.path(), ZooKeeperRestoreOptions(targets=(target,))), replace=True)
    (kept,) = receipt.targets[0].kept
    assert kept.startswith(str(tmp_path / "data" / "version-2.before-"))
    assert Path(kept).is_dir()
