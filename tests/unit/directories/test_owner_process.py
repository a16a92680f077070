"""The process that works as the owner of a directory: what it may do and knows, when it ends, what it can answer."""

import errno
import os
import resource
import socket
import struct
import subprocess
import sys
from pathlib import Path

import pytest

from logkeep.directories import owner_process
from logkeep.directories.folder import open_folder
from logkeep.directories.owner_process import OwnerIdentity, OwnerProcess, identity_of
from logkeep.errors import OtherOwner
from tests.support.owners import OTHER, OWNER, give, needs_two_users, untouched, victim


@pytest.fixture
def child() -> OwnerProcess:
    return OwnerProcess(OwnerIdentity(OWNER, OWNER, (OWNER, OTHER)))


def _status(pid: int) -> dict[str, list[str]]:
    lines = Path(f"/proc/{pid}/status").read_text().splitlines()
    return {name: rest.split() for name, _, rest in (line.partition(":") for line in lines)}


@needs_two_users
def test_it_has_the_rights_of_the_owner_and_no_way_back(child: OwnerProcess) -> None:
    found = _status(child.pid)
    assert (found["Uid"], found["Gid"]) == ([str(OWNER)] * 4, [str(OWNER)] * 4)
    assert sorted(found["Groups"]) == sorted([str(OWNER), str(OTHER)])
    assert {int(found[name][0], 16) for name in ("CapPrm", "CapEff", "CapAmb")} == {0}
    assert found["NoNewPrivs"] == ["1"]
    limits = Path(f"/proc/{child.pid}/limits").read_text()
    assert next(line for line in limits.splitlines() if "core file" in line).split()[4:6] == ["0", "0"]


@needs_two_users
def test_it_inherits_neither_files_nor_variables(child: OwnerProcess, tmp_path: Path) -> None:
    """A repository, a store or a secret that root has open or in memory is not there."""
    with (tmp_path / "secret").open("w") as secret:
        os.set_inheritable(secret.fileno(), True)
        os.environ["LOGKEEP_TEST_SECRET"] = "canary"
        try:
            second = OwnerProcess(OwnerIdentity(OWNER, OWNER, ()))
        finally:
            del os.environ["LOGKEEP_TEST_SECRET"]
        for each in (child, second):
            links = [str(path.readlink()) for path in Path(f"/proc/{each.pid}/fd").iterdir()]
            assert sorted(link.partition(":")[0] for link in links) == ["/dev/null"] * 3 + ["/memfd", "socket"]
            assert Path(f"/proc/{each.pid}/environ").read_bytes().strip(b"\0") == b""


@needs_two_users
def test_it_ends_with_the_process_that_started_it() -> None:
    """Also with one that is killed."""
    program = (
        "from logkeep.directories.owner_process import OwnerProcess, OwnerIdentity as I\n"
        f"import os; print(OwnerProcess(I({OWNER}, {OWNER}, ())).pid, flush=True); os.kill(os.getpid(), 9)"
    )
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=False)
    assert done.returncode == -9, done.stderr
    while Path(f"/proc/{int(done.stdout)}").exists() and _status(int(done.stdout))["State"][0] != "Z":
        os.sched_yield()


@needs_two_users
def test_a_file_that_was_opened_is_not_open_in_the_child(child: OwnerProcess, tmp_path: Path) -> None:
    """Otherwise the search for running servers takes the child for one that uses the directory."""
    home = _made(tmp_path / "home")
    (home / "log.1").touch()
    handle = child.adopt(os.open(give(home), os.O_RDONLY))
    for _ in range(300):
        os.close(child.open_file(handle, "log.1").descriptor)
        assert not [path for path in Path(f"/proc/{child.pid}/fd").iterdir() if path.resolve() == home / "log.1"]


@needs_two_users
def test_it_cannot_do_what_its_owner_may_not(tmp_path: Path) -> None:
    prey, home = victim(tmp_path / "victim"), give(_made(tmp_path / "home"))
    (home / "link").symlink_to(prey / "secret")
    folder = open_folder(home)
    for name in ("link", "../victim", "..", "."):
        with pytest.raises((OSError, OtherOwner)):
            folder.open_file(name)
    with pytest.raises(OSError, match="Invalid argument"):
        folder.worker.remove(folder.handle, "../victim/secret")
    with pytest.raises(PermissionError):
        folder.set_owner(0, 0, 0o777)
    assert untouched(prey)


@needs_two_users
def test_large_files_arrive_whole_and_names_may_hold_any_bytes(tmp_path: Path) -> None:
    folder, data = open_folder(give(_made(tmp_path / "home"))), os.urandom(3_000_001)
    for name, direct in (("plain", False), ("dir\udcff ect\n", True)):
        file = folder.create(name, direct=direct)
        for at in range(0, len(data), 1_300_000):
            file.write(data[at : at + 1_300_000])
        file.set_owner(OWNER, OWNER, 0o640)
        file.finish()
        file.close()
        with folder.opened(name) as found:
            assert os.pread(found, len(data) + 1, 0) == data
    assert folder.names() == sorted(["plain", "dir\udcff ect\n"])


@needs_two_users
def test_an_error_of_a_write_is_raised_by_a_later_call(tmp_path: Path) -> None:
    """A limit on the size of files does what a full disk does."""
    soft, hard = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (9 << 20, hard))
    try:
        child = OwnerProcess(OwnerIdentity(OWNER, OWNER, ()))
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, (soft, hard))
    folder = open_folder(give(_made(tmp_path / "home")))
    at = child.adopt(folder.descriptor)
    file = child.create(at, "large")
    child.write(file, bytes(12 << 20))
    with pytest.raises(OSError, match="too large"):
        child.finish(file)
    child.sync(at)  # it goes on


def test_groups_are_those_of_a_login() -> None:
    uid = os.getuid()
    assert identity_of(uid, 5).gid == os.getgid()
    assert identity_of(4_000_000_000, 5) == OwnerIdentity(4_000_000_000, 5, ())
    assert identity_of(4_000_000_000, 0).gid != 0


_HOSTILE = {
    "short": b"\0\0\0",
    "nothing": b"",
    "negative": struct.pack(">iI", -1, 0),
    "unknown-errno": struct.pack(">iI", 2**31 - 1, 2**32 - 1),
}


@pytest.mark.parametrize("answer", list(_HOSTILE))
@pytest.mark.parametrize("descriptors", [0, 1, 3])
def test_a_hostile_answer_is_an_error_and_leaves_nothing_open(
    monkeypatch: pytest.MonkeyPatch, answer: str, descriptors: int
) -> None:
    ours, theirs = socket.socketpair()
    theirs.sendall(struct.pack(">iI", 0, 0))
    ended = subprocess.Popen(["true"])
    monkeypatch.setattr(owner_process, "_started", lambda _identity, _memory: (ours, ended))
    process = OwnerProcess(OwnerIdentity(OWNER, OWNER, ()))
    before = {path.name for path in Path("/proc/self/fd").iterdir()}
    if _HOSTILE[answer] and descriptors:
        socket.send_fds(theirs, [_HOSTILE[answer]], [theirs.fileno()] * descriptors)
    else:
        theirs.sendall(_HOSTILE[answer])
    theirs.shutdown(socket.SHUT_WR)
    with pytest.raises(OSError) as caught:  # noqa: PT011 - any of them
        process.open_directory(3, "name")
    assert isinstance(caught.value.errno, int)
    assert {path.name for path in Path("/proc/self/fd").iterdir()} <= before
    theirs.close()


def test_a_success_without_a_descriptor_is_an_error(monkeypatch: pytest.MonkeyPatch) -> None:
    ours, theirs = socket.socketpair()
    theirs.sendall(struct.pack(">iI", 0, 0) * 2)
    monkeypatch.setattr(owner_process, "_started", lambda _identity, _memory: (ours, subprocess.Popen(["true"])))
    with pytest.raises(OSError, match="sent no descriptor") as caught:
        OwnerProcess(OwnerIdentity(OWNER, OWNER, ())).open_file(3, "name")
    assert caught.value.errno == errno.EPROTO
    theirs.close()


def _made(path: Path) -> Path:
    path.mkdir()
    return path
