"""A partition's new directory: created beside the old one, then exchanged with it in one step.

A broker refuses to start when its log directory holds an unknown name. The new directory therefore has the name of a
partition that is being deleted (`<topic>-<p>.<32 hex>-delete`); the first half of the digits marks it as ours. Until
the exchange the old directory is unchanged, and a broker that starts deletes the unfinished new one. The new directory
is synced and proven before the exchange. Afterwards the old one has the staged name, and is removed.

Where the file system cannot exchange two names, the old directory is renamed first. A crash between the two renames
leaves the partition without a directory; `recover_directory` restores one of the two.
"""

import ctypes
import errno
import os
import shutil
import stat
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from logkeep.errors import RestoreFailed, StoreError
from logkeep.kafka.offline_restore.ownership_note import METADATA, NOTE
from logkeep.store.local_files import sync_path, write_all

_OURS, _GOING = b"logkeep:".hex(), "-delete"
_TOKEN = 16
"""Hex digits that differ from one attempt to the next."""
_LONGEST_NAME = 255
_EXCHANGE, _AT_FDCWD = 2, -100
_CANNOT_EXCHANGE = {errno.EINVAL, errno.ENOSYS, errno.ENOTSUP, errno.EXDEV}


def staged_name(topic: str, partition: int, token: str) -> str:
    """`token` is 16 hex digits."""
    suffix = f"-{partition}.{_OURS}{token}{_GOING}"
    return topic[: _LONGEST_NAME - len(suffix)] + suffix


def leftovers(root: Path, topic: str, partition: int) -> list[Path]:
    """Staged directories that other attempts left for this partition."""
    before, after = staged_name(topic, partition, "0" * _TOKEN)[: -_TOKEN - len(_GOING)], _GOING
    known = len(before) + _TOKEN + len(after)
    return sorted(
        p for p in root.iterdir() if p.name.startswith(before) and p.name.endswith(after) and len(p.name) == known
    )


@contextmanager
def failing_at(path: Path) -> Iterator[None]:
    """Turn errors of the operating system and of the store into RestoreFailed."""
    try:
        yield
    except OSError as error:
        raise _failed(path, (error.strerror or "the operating system refused").lower()) from error
    except StoreError as error:
        raise _failed(path, error.what) from error


def _failed(path: Path, what: str) -> RestoreFailed:
    remedy = "fix it (space, rights: run as the broker's user), then run the same command again: what is done stays"
    return RestoreFailed(what, subject=str(path), remedy=remedy)


def make(directory: Path, staged: Path) -> None:
    """Create the staged directory with the topic id, the owner and the rights of the old one."""
    with failing_at(staged):
        staged.mkdir(mode=0o700)
        put(staged, METADATA, (directory / METADATA).read_bytes(), like=directory / METADATA)
        copy_owner(staged, directory)


def put(staged: Path, name: str, data: bytes, like: Path) -> None:
    """Write a small file and sync it."""
    with failing_at(staged / name):
        file = os.open(staged / name, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW, 0o600)
        try:
            write_all(file, data)
            os.fsync(file)
        finally:
            os.close(file)
        copy_owner(staged / name, like)


def copy_owner(path: Path, like: Path) -> None:
    """Give a path the owner and rights of the broker's file `like`."""
    known = like.stat()
    if (os.geteuid(), os.getegid()) != (known.st_uid, known.st_gid):
        os.chown(path, known.st_uid, known.st_gid)
    path.chmod(stat.S_IMODE(known.st_mode))


def put_in_place(staged: Path, directory: Path) -> None:
    """Give the new directory the name of the old one, durably. The old one gets a staged name."""
    with failing_at(directory):
        sync_path(staged)
        if not _exchanged(staged, directory):
            _rename_both(staged, directory)
        sync_path(directory.parent)


def _exchanged(staged: Path, directory: Path) -> bool:
    rename = getattr(ctypes.CDLL(None, use_errno=True), "renameat2", None)
    if rename is None:
        return False
    if rename(_AT_FDCWD, os.fsencode(staged), _AT_FDCWD, os.fsencode(directory), _EXCHANGE) == 0:
        return True
    if (code := ctypes.get_errno()) in _CANNOT_EXCHANGE:
        return False
    raise OSError(code, os.strerror(code))


def _rename_both(staged: Path, directory: Path) -> None:
    """Two renames, for a file system that cannot exchange names."""
    before, token = staged.name[: -_TOKEN - len(_GOING)], staged.name[-_TOKEN - len(_GOING) : -len(_GOING)]
    old = staged.with_name(f"{before}{int(token, 16) ^ 1:016x}{_GOING}")
    directory.rename(old)
    sync_path(directory.parent)
    staged.rename(directory)


def recover_directory(root: Path, topic: str, partition: int) -> None:
    """After a crash between the two renames: use a finished directory if there is one, else the old one."""
    directory = root / f"{topic}-{partition}"
    found = leftovers(root, topic, partition)
    # The longest names are truncated, and do not show the partition.
    candidates = [p for p in found if (p / METADATA).is_file() and len(p.name) < _LONGEST_NAME]
    if candidates and not directory.exists():
        with failing_at(directory):
            max(candidates, key=lambda p: (p / NOTE).is_file()).rename(directory)
            sync_path(root)


def discard(root: Path, topic: str, partition: int) -> None:
    """Remove staged directories, unless the partition has no other directory."""
    if not (root / f"{topic}-{partition}").is_dir():
        return
    for path in leftovers(root, topic, partition):
        with failing_at(path):
            shutil.rmtree(path, ignore_errors=False)
