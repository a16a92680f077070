"""Topics that are written anew: beside the old ones, in `.logkeep/rewrite`, and exchanged with them at the end.

Directories only. What a killed run left there is removed by the next one: it is not complete, or it was replaced.
"""

import ctypes
import errno
import os
import shutil
from pathlib import Path

from logkeep.errors import UsageError
from logkeep.kafka.datasets.target import DatasetTarget
from logkeep.kafka.record.dataset_version import FOLDER
from logkeep.store.directory import opened_below, opened_root, os_errors_about
from logkeep.store.local import LocalStore

_REWRITE = "rewrite"
_REPLACED = ".replaced"
_EXCHANGE = 2


def rewrite_target(target: DatasetTarget) -> DatasetTarget:
    """An empty place beside the dataset. Raises UsageError for a bucket."""
    if target.directory is None:
        raise UsageError(
            "topics cannot be exchanged in a bucket", subject=target.url, remedy="export the topic to another prefix"
        )
    remove_rewritten(target)
    root = target.directory / FOLDER / _REWRITE
    with opened_root(target.directory) as top, opened_below(top, [FOLDER, _REWRITE], create=True):
        return DatasetTarget(LocalStore(root), root)


def remove_rewritten(target: DatasetTarget) -> None:
    """Remove what an earlier run left."""
    if target.directory is None:
        return
    with os_errors_about(f"{FOLDER}/{_REWRITE}"), opened_root(target.directory) as top:
        try:
            shutil.rmtree(f"{FOLDER}/{_REWRITE}", dir_fd=top)
        except FileNotFoundError:
            return


def exchange(target: DatasetTarget, rewritten: DatasetTarget, prefix: str) -> None:
    """Put the new directory in the place of the old one, in one step. `prefix`: of the topic, such as `orders/`."""
    *above, leaf = prefix.removesuffix("/").split("/")
    root, new = _directory(target), _directory(rewritten)
    with (
        os_errors_about(prefix),
        opened_root(root) as top,
        opened_below(top, above, create=True) as old,
        opened_root(new) as beside,
        opened_below(beside, above) as fresh,
    ):
        _exchange(fresh, old, leaf)
        os.fsync(old)
        os.fsync(fresh)


def _exchange(fresh: int, old: int, leaf: str) -> None:
    """Two directories of one name in one step; in two steps where the file system cannot do that."""
    rename = getattr(ctypes.CDLL(None, use_errno=True), "renameat2", None)
    name = os.fsencode(leaf)
    if rename is not None and not rename(fresh, name, old, name, _EXCHANGE):
        return
    code = ctypes.get_errno() if rename is not None else errno.ENOSYS
    if code in {errno.ENOSYS, errno.EINVAL}:
        os.rename(leaf, f"{leaf}{_REPLACED}", src_dir_fd=old, dst_dir_fd=fresh)
    elif code != errno.ENOENT:
        raise OSError(code, os.strerror(code))
    os.rename(leaf, leaf, src_dir_fd=fresh, dst_dir_fd=old)


def _directory(target: DatasetTarget) -> Path:
    assert target.directory is not None  # noqa: S101 - `rewrite_target` refuses buckets
    return target.directory
