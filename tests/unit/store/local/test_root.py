"""The directories of a local store: what `init` creates, and what it takes away again."""

import fcntl
import os
import threading
from pathlib import Path

import pytest

from logkeep.errors import StoreLocationMissing
from logkeep.store.access import provisional_place
from logkeep.store.local.root import PARTIAL, take_replace_lock
from logkeep.store.local.store import LocalStore


def _replaced(root: Path) -> None:
    store = LocalStore(root)
    store.put_new("a", b"x")
    store.replace("a", b"y", store.head("a").version)
    store.delete("a")
    assert (root / PARTIAL / "replace.lock").exists()


@pytest.mark.parametrize("depth", ("repo", "above/repo"))
def test_what_was_created_for_nothing_is_removed(tmp_path: Path, depth: str) -> None:
    with provisional_place(str(tmp_path / depth), create=True):
        _replaced(tmp_path / depth)
    assert list(tmp_path.iterdir()) == []


def test_what_was_there_before_stays(tmp_path: Path) -> None:
    (tmp_path / "mine").mkdir()
    with provisional_place(str(tmp_path / "mine"), create=True):
        _replaced(tmp_path / "mine")
    assert list((tmp_path / "mine").iterdir()) == []
    _replaced(tmp_path / "mine")
    with provisional_place(str(tmp_path / "mine"), create=True):
        _replaced(tmp_path / "mine")
    assert (tmp_path / "mine" / PARTIAL / "replace.lock").exists()


def test_a_success_and_an_object_stay(tmp_path: Path) -> None:
    with provisional_place(str(tmp_path / "done"), create=True) as undo:
        undo.pop_all()
    assert (tmp_path / "done").is_dir()
    with provisional_place(str(tmp_path / "other"), create=True):
        LocalStore(tmp_path / "other").put_new("of-another-run", b"")
    assert {path.name for path in (tmp_path / "other").iterdir()} == {"of-another-run"}


def test_a_lock_that_is_held_stays(tmp_path: Path) -> None:
    with provisional_place(str(tmp_path / "repo"), create=True):
        _replaced(tmp_path / "repo")
        partials = os.open(tmp_path / "repo" / PARTIAL, os.O_RDONLY)
        held = take_replace_lock(partials)
    assert os.fstat(held).st_nlink == 1
    os.close(held)
    os.close(partials)


def test_the_next_holder_does_not_hold_a_removed_file(tmp_path: Path) -> None:
    partials = os.open(tmp_path, os.O_RDONLY)
    first = take_replace_lock(partials)
    second: list[int] = []
    waiting = threading.Thread(target=lambda: second.append(take_replace_lock(partials)))
    waiting.start()
    while sum(_is_lock(link) for link in Path("/proc/self/fd").iterdir()) < 2:
        assert waiting.is_alive()
    (tmp_path / "replace.lock").unlink()
    os.close(first)
    waiting.join()
    assert os.fstat(second[0]).st_ino == (tmp_path / "replace.lock").stat().st_ino
    os.close(second[0])
    os.close(partials)


def _is_lock(link: Path) -> bool:
    try:
        return str(link.readlink()).endswith("/replace.lock")
    except FileNotFoundError:  # the descriptor of the listing itself
        return False


@pytest.mark.parametrize("below", ("file/repo", "file/above/repo"))
def test_a_file_in_the_way_is_a_wrong_place(tmp_path: Path, below: str) -> None:
    (tmp_path / "file").touch()
    with (
        pytest.raises(StoreLocationMissing, match="cannot be created"),
        provisional_place(str(tmp_path / below), create=True),
    ):
        pass


def test_nothing_is_synced_while_the_lock_of_replace_is_held(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A process that is stopped in the meantime, as by SIGSTOP, would stop every other one."""
    store, synced, real = LocalStore(tmp_path), list[int](), os.fsync
    store.create()
    store.put_new("a/document", b"1")

    def sync(descriptor: int) -> None:
        lock = os.open(tmp_path / PARTIAL / "replace.lock", os.O_RDWR | os.O_CREAT, 0o600)
        fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        os.close(lock)
        synced.append(descriptor)
        real(descriptor)

    monkeypatch.setattr(os, "fsync", sync)
    store.replace("a/document", b"2", store.head("a/document").version)
    assert len(synced) == 2, "the file, then its directory"
    assert store.get("a/document", 9) == b"2"
