"""Who can change a file besides root and this user: the rules as values, and real directories, links and owners."""

import grp
import os
import pwd
import stat
import subprocess
import sys
from pathlib import Path
from types import SimpleNamespace

import pytest

from logkeep.errors import ConfigError
from logkeep.file_owners import (
    OwnerFacts,
    _facts,
    facts_of,
    origin_of,
    private_directory,
    who_can_change,
    who_can_replace,
    who_can_write,
)
from tests.support.other_user import OTHER, give_to_other

ME, MINE, STRANGER, GROUP = 1000, 1000, 1001, 100


@pytest.mark.parametrize(
    ("facts", "reason"),
    (
        (OwnerFacts(ME, MINE, 0o644), ""),
        (OwnerFacts(0, 0, 0o644), ""),
        (OwnerFacts(ME, MINE, 0o664, private_group=True), ""),
        (OwnerFacts(STRANGER, MINE, 0o600), "it belongs to the user 1001"),
        (OwnerFacts(ME, GROUP, 0o664), "the group 100 can write to it (mode 0664)"),
        (OwnerFacts(ME, MINE, 0o646, private_group=True), "every user can write to it (mode 0646)"),
        (OwnerFacts(0, 0, stat.S_IFDIR | 0o1777), "every user can write to it (mode 1777)"),
    ),
)
def test_rules(facts: OwnerFacts, reason: str) -> None:
    assert who_can_change(facts, "it", ME) == reason


def test_a_sticky_directory_on_the_way_must_have_a_trusted_owner() -> None:
    assert who_can_change(OwnerFacts(0, 0, 0o1777), "it", ME, sticky_allowed=True) == ""
    assert who_can_change(OwnerFacts(STRANGER, 0, 0o1777), "it", ME, sticky_allowed=True) != ""
    assert who_can_change(OwnerFacts(0, 0, 0o777), "it", ME, sticky_allowed=True) != ""


def test_a_directory_to_share_may_have_any_owner() -> None:
    assert who_can_write(OwnerFacts(STRANGER, GROUP, 0o755), "it") == ""
    assert who_can_write(OwnerFacts(STRANGER, GROUP, 0o1777), "it") == ""
    assert who_can_write(OwnerFacts(STRANGER, GROUP, 0o775), "it") == "the group 100 can write to it (mode 0775)"


def test_a_group_that_is_not_known_is_not_private(tmp_path: Path) -> None:
    tmp_path.chmod(0o775)
    if os.geteuid() == 0:
        os.chown(tmp_path, 0, 54321)
        assert "54321" in who_can_replace(tmp_path)
        os.chown(tmp_path, 0, 0)
        assert "group 0" in who_can_replace(tmp_path)  # accounts of the system often share root's group
    descriptor = os.open(tmp_path, os.O_PATH)
    try:
        assert facts_of(descriptor).gid == tmp_path.stat().st_gid
    finally:
        os.close(descriptor)


def test_the_group_of_one_user_may_write(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Accounts as a system with a group for each user has them: files are 0664 there."""
    uid, gid = os.geteuid() or 4242, 4243
    members: list[str] = []
    monkeypatch.setattr(pwd, "getpwuid", lambda _uid: SimpleNamespace(pw_name="me", pw_gid=gid))
    monkeypatch.setattr(grp, "getgrgid", lambda _gid: SimpleNamespace(gr_name="me", gr_mem=members))
    (file := tmp_path / "file").touch()
    found = os.stat_result((0o100664, 1, 1, 1, uid, gid, 0, 0, 0, 0))
    assert who_can_change(_facts(found, str(file)), "it", uid) == ""
    members.append("another")
    assert who_can_change(_facts(found, str(file)), "it", uid) == f"the group {gid} can write to it (mode 0664)"
    members.clear()
    assert who_can_change(_facts(found, str(tmp_path / "gone")), "it", uid) != ""  # its access list is not known


def test_every_directory_and_link_on_the_way_counts(tmp_path: Path) -> None:
    (real := tmp_path / "a" / "real").mkdir(parents=True)
    (tmp_path / "b").mkdir()
    (tmp_path / "b" / "link").symlink_to("../a/real")
    (tmp_path / "absolute").symlink_to(real)
    for path in (real, tmp_path / "b" / "link", tmp_path / "absolute", tmp_path / "b" / ".." / "a" / "real"):
        assert who_can_replace(path) == ""
    (tmp_path / "b").chmod(0o777)
    assert who_can_replace(real) == ""
    assert who_can_replace(tmp_path / "b" / "link") == f"every user can write to {tmp_path}/b (mode 0777)"
    (tmp_path / "b").chmod(0o1777)
    assert who_can_replace(tmp_path / "b" / "link") == ""
    if os.geteuid() == 0:
        os.lchown(tmp_path / "b" / "link", OTHER, OTHER)
        assert "b/link belongs to the user 65534" in who_can_replace(tmp_path / "b" / "link")


def test_links_in_a_circle_end(tmp_path: Path) -> None:
    (tmp_path / "x").symlink_to("y")
    (tmp_path / "y").symlink_to("x")
    with pytest.raises(OSError, match="symbolic links"):
        who_can_replace(tmp_path / "x")


def test_the_verdict_is_about_the_file_that_was_read(tmp_path: Path) -> None:
    path = tmp_path / "file"
    path.write_text("old")
    with path.open() as file:
        assert origin_of(file.fileno(), path).changeable == ""
        path.unlink()
        path.write_text("new")
        assert "another file" in origin_of(file.fileno(), path).changeable
        path.unlink()
        assert "cannot be checked" in origin_of(file.fileno(), path).changeable


def test_a_pipe_that_the_shell_made_has_no_path(tmp_path: Path) -> None:
    reading, writing = os.pipe()
    try:
        assert origin_of(reading, Path(f"/dev/fd/{reading}")).changeable == ""
    finally:
        os.close(reading)
        os.close(writing)


def test_a_private_directory_is_made_private_and_may_be_readable(tmp_path: Path) -> None:
    before = os.umask(0)
    try:
        made = private_directory(tmp_path / "new" / "inner", remedy="x")
    finally:
        os.umask(before)
    assert [stat.S_IMODE(path.stat().st_mode) for path in (made, made.parent)] == [0o700, 0o700]
    made.chmod(0o755)
    assert private_directory(made, remedy="x") == made


@pytest.mark.parametrize("whose", ("", "inner", "inner/file"))
def test_a_directory_with_work_of_another_user_is_refused(tmp_path: Path, whose: str) -> None:
    cache = tmp_path / "cache"
    private_directory(cache / "inner", remedy="x")
    (cache / "inner" / "file").write_text("")
    give_to_other(cache / whose)
    with pytest.raises(ConfigError, match="others can change what it holds") as caught:
        private_directory(cache, remedy="remove it")
    assert caught.value.remedy == "remove it"


def test_a_directory_below_one_that_every_user_can_write_to_is_refused(tmp_path: Path) -> None:
    cache = private_directory(tmp_path / "open" / "cache", remedy="x")
    (tmp_path / "open").chmod(0o777)
    with pytest.raises(ConfigError, match=f"every user can write to {tmp_path}/open"):
        private_directory(cache, remedy="x")
    (tmp_path / "open").chmod(0o1777)
    private_directory(cache, remedy="x")
    (cache / "link").symlink_to("/etc")
    with pytest.raises(ConfigError, match="is a symbolic link"):
        private_directory(cache, remedy="x")


def test_modes_above_count_for_nothing_on_a_read_only_file_system(tmp_path: Path) -> None:
    """As in a volume with configuration, whose root has mode 0777."""
    (tmp_path / "volume").mkdir()
    (tmp_path / "volume").chmod(0o777)
    (tmp_path / "volume" / "file").touch(0o644)
    code = (
        "from logkeep.file_owners import who_can_replace; from pathlib import Path; import sys; "
        "print(who_can_replace(Path(sys.argv[1])))"
    )
    call = [sys.executable, "-c", code, str(tmp_path / "volume" / "file")]
    assert "every user" in subprocess.run(call, capture_output=True, text=True, check=True).stdout
    mount = 'mount --bind "$0" "$0" && mount -o remount,ro,bind "$0" && exec "$@"'
    inside = ["unshare", "-rm", "sh", "-ec", mount, str(tmp_path / "volume"), *call]
    assert subprocess.run(inside, capture_output=True, text=True, check=True).stdout.strip() == ""
