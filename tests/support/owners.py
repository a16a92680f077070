"""Directories of another user, and processes that run as that user. Only root can have both."""

import ctypes
import importlib
import os
import stat
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from tempfile import TemporaryDirectory

import pytest

OWNER, OTHER = 65534, 65533
"""The user `nobody`, and one without an account."""

_LATE = ("_strptime", "grp")
"""What the product loads when it needs it: the other user may not be able to read Python's own directory."""
_PR_CAPBSET_DROP, _CAP_SETUID = 24, 7

needs_two_users = pytest.mark.skipif(os.geteuid() != 0, reason="only root can give a directory to a second user")


def give(path: Path, uid: int = OWNER) -> Path:
    """A directory with everything below it."""
    for each in (path, *path.rglob("*")):
        os.chown(each, uid, uid, follow_symlinks=False)
    return path


@contextmanager
def open_home() -> Iterator[Path]:
    """A directory that other users can reach. Pytest's own is for its user alone, and every session closes it again."""
    with TemporaryDirectory(prefix="logkeep-owned-") as name:
        Path(name).chmod(0o711)
        yield Path(name)


def become(uid: int = OWNER) -> None:
    """For good: in a process that ends with the test."""
    for module in _LATE:
        importlib.import_module(module)
    os.setgroups([])
    os.setresgid(uid, uid, uid)
    os.setresuid(uid, uid, uid)


def as_user(action: Callable[[], None], uid: int = OWNER) -> Callable[[], None]:
    def run() -> None:
        become(uid)
        action()

    return run


def without_setuid() -> None:
    """Root of a container that may not take other ids. For good: in a process that ends with the test."""
    assert ctypes.CDLL(None).prctl(_PR_CAPBSET_DROP, _CAP_SETUID, 0, 0, 0) == 0


def victim(path: Path) -> Path:
    """A directory of root that no one else may enter."""
    path.mkdir(mode=0o700)
    (path / "secret").write_text("of root")
    return path


def untouched(path: Path) -> bool:
    """Whether a victim is as it was made."""
    files = {each.name: each.read_bytes() for each in path.iterdir()}
    owners = {each.stat().st_uid for each in (path, *path.iterdir())}
    return (files, owners, stat.S_IMODE(path.stat().st_mode)) == ({"secret": b"of root"}, {os.geteuid()}, 0o700)
