"""A partition's new directory: created beside the old one, then exchanged with it in one step.

A broker refuses to start when its log directory holds an unknown name. The new directory therefore has the name of a
partition that is being deleted (`<topic>-<p>.<32 hex>-delete`); the first half of the digits marks it as ours. Until
the exchange the old directory is unchanged, and a broker that starts deletes the unfinished new one. The new directory
is synced and proven before the exchange. Afterwards the old one has the staged name, and is removed.

Where the file system cannot exchange two names, the old directory is renamed first. A crash between the two renames
leaves the partition without a directory; `recover_directory` restores one of the two.
"""

import errno
import os
import re
import stat
from collections.abc import Collection, Iterator
from contextlib import contextmanager
from pathlib import Path

from logkeep.directories.folder import Folder
from logkeep.errors import RestoreFailed, StoreError
from logkeep.kafka.offline_restore.log_folders import read_small
from logkeep.kafka.offline_restore.ownership_note import METADATA, NOTE

_OURS, _GOING = b"logkeep:".hex(), "-delete"
_TOKEN = 16
"""Hex digits that differ from one attempt to the next."""
_LONGEST_NAME = 255
_BROKER_FILE = re.compile(r"[0-9]{20}\.(log|index|timeindex|txnindex|snapshot)|leader-epoch-checkpoint")
_CANNOT_EXCHANGE = {errno.EINVAL, errno.ENOSYS, errno.ENOTSUP, errno.EXDEV}


def staged_name(topic: str, partition: int, token: str) -> str:
    """`token` is 16 hex digits."""
    suffix = f"-{partition}.{_OURS}{token}{_GOING}"
    return topic[: _LONGEST_NAME - len(suffix)] + suffix


def leftovers(root: Folder, topic: str, partition: int) -> list[str]:
    """Names of staged directories that other attempts left for this partition."""
    before, after = staged_name(topic, partition, "0" * _TOKEN)[: -_TOKEN - len(_GOING)], _GOING
    known = len(before) + _TOKEN + len(after)
    with failing_at(root.path):
        names = root.names()
    return [n for n in names if n.startswith(before) and n.endswith(after) and len(n) == known]


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


def make_staged(root: Folder, directory: Folder, name: str) -> Folder:
    """Create the staged directory with the topic id, the owner and the rights of the old one."""
    with failing_at(root.path / name):
        root.make_folder(name)
        known = os.fstat(directory.descriptor)
        _existing(root, name).set_owner(known.st_uid, known.st_gid, stat.S_IMODE(known.st_mode))
        staged = _existing(root, name)  # opened again, because its owner may have changed: that user works in it
        put_file(staged, METADATA, read_small(directory, METADATA), like=metadata_status(directory))
    return staged


def metadata_status(directory: Folder) -> os.stat_result:
    """The status of the broker's `partition.metadata`, whose owner and mode new files get. Raises RestoreFailed."""
    found = directory.find(METADATA)
    if found is None:
        raise _failed(directory.path / METADATA, "no such file")
    return found


def put_file(staged: Folder, name: str, data: bytes, like: os.stat_result) -> None:
    """Write a small file and sync it."""
    with failing_at(staged.path / name):
        file = staged.create(name)
        try:
            file.write(data)
            file.set_owner(like.st_uid, like.st_gid, stat.S_IMODE(like.st_mode))
            file.finish()
        finally:
            file.close()


def put_in_place(root: Folder, staged: Folder, directory: Folder) -> None:
    """Give the new directory the name of the old one, durably. The old one gets a staged name."""
    with failing_at(directory.path):
        staged.sync()
        if not _exchanged(root, staged.path.name, directory.path.name):
            _rename_both(root, staged.path.name, directory.path.name)
        root.sync()


def _exchanged(root: Folder, name: str, other: str) -> bool:
    try:
        root.exchange(name, other)
    except OSError as error:
        if error.errno in _CANNOT_EXCHANGE:
            return False
        raise
    return True


def _rename_both(root: Folder, staged: str, directory: str) -> None:
    """Two renames, for a file system that cannot exchange names."""
    before, token = staged[: -_TOKEN - len(_GOING)], staged[-_TOKEN - len(_GOING) : -len(_GOING)]
    root.rename(directory, root, f"{before}{int(token, 16) ^ 1:016x}{_GOING}")
    root.sync()
    root.rename(staged, root, directory)


def recover_directory(root: Folder, topic: str, partition: int) -> None:
    """After a crash between the two renames: use a finished directory if there is one, else the old one."""
    name = f"{topic}-{partition}"
    if root.find(name) is not None:
        return
    # The longest names are truncated, and do not show the partition.
    found = [each for each in leftovers(root, topic, partition) if len(each) < _LONGEST_NAME]
    with failing_at(root.path / name):
        folders = {each: _existing(root, each) for each in found}
        candidates = [each for each in found if folders[each].find(METADATA) is not None]
        if candidates:
            root.rename(max(candidates, key=lambda each: folders[each].find(NOTE) is not None), root, name)
            root.sync()


def discard(root: Folder, topic: str, partition: int, recorded: Collection[str]) -> None:
    """Remove staged directories, unless the partition has no other directory.

    Only files that a broker or a restore makes are removed, and those that the plan recorded. With anything else in it
    the directory stays: a broker deletes it when it starts.
    """
    current = root.find(f"{topic}-{partition}")
    if current is None or not stat.S_ISDIR(current.st_mode):
        return
    for name in leftovers(root, topic, partition):
        with failing_at(root.path / name):
            folder = _existing(root, name)
            for each in folder.names():
                if each in (METADATA, NOTE) or each in recorded or _BROKER_FILE.fullmatch(each):
                    folder.remove(each)
            _remove_if_empty(root, name)


def _remove_if_empty(root: Folder, name: str) -> None:
    try:
        root.remove_folder(name)
    except OSError as error:
        if error.errno not in (errno.ENOTEMPTY, errno.EEXIST):
            raise


def _existing(root: Folder, name: str) -> Folder:
    found = root.folder(name)
    if found is None:
        raise FileNotFoundError(errno.ENOENT, os.strerror(errno.ENOENT), str(root.path / name))
    return found
