"""Rewrites topics of a dataset: beside the old ones, in `.logkeep/rewrite`, and exchanged with them at the end.

In a directory each topic is exchanged in one step; where the file system has no such step, in two. What a killed run
left there is removed by the next one: it is not complete, or it was replaced. A bucket has a module of its own.
"""

import ctypes
import errno
import os
import shutil
from collections.abc import Callable, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Protocol

from logkeep.errors import ObjectMissing
from logkeep.kafka.datasets.bucket_rewrite import BucketRewrite, ReadBack
from logkeep.kafka.datasets.dataset_lock import HeldDataset
from logkeep.kafka.datasets.documents import put_document
from logkeep.kafka.datasets.files.names import TOPICS
from logkeep.kafka.datasets.target import DatasetTarget
from logkeep.kafka.datasets.values import ExportedLog
from logkeep.kafka.record.dataset_document import DatasetDocument
from logkeep.kafka.record.dataset_version import FOLDER
from logkeep.store.local.directory import opened_below, opened_root, os_errors_about
from logkeep.store.local.store import LocalStore

_REWRITE = "rewrite"
_REPLACED = "+replaced"
"""No topic has such a name."""
_EXCHANGE = 2


class Rewrite(Protocol):
    @property
    def beside(self) -> DatasetTarget:
        """The place to which the new topics are written."""

    def finish(self, written: Sequence[ExportedLog], document: DatasetDocument, begun: DatasetDocument) -> None:
        """Exchange them with the old ones, and put the document in place of the one that the run has begun with."""


def begin_rewrite(held: HeldDataset, topics: Sequence[str], root: Callable[[str], str], read_back: ReadBack) -> Rewrite:
    """The rewrite of these topics; without topics, nothing is rewritten. `root` returns the prefix of a topic."""
    prefixes = [root(topic) for topic in topics]
    if not topics:
        return _Plain(held.target)
    if held.journal is None:
        return _InDirectory(held.target, prefixes)
    return BucketRewrite(held.target, held.journal, topics, prefixes, read_back)


class _Plain:
    def __init__(self, target: DatasetTarget) -> None:
        self._target = self.beside = target

    def finish(self, written: Sequence[ExportedLog], document: DatasetDocument, begun: DatasetDocument) -> None:
        put_document(self._target, document, begun)


class _InDirectory:
    def __init__(self, target: DatasetTarget, prefixes: Sequence[str]) -> None:
        self._target, self._prefixes = target, prefixes
        self.beside = _empty_place(target)

    def finish(self, written: Sequence[ExportedLog], document: DatasetDocument, begun: DatasetDocument) -> None:
        for prefix in self._prefixes:
            _exchange_topic(self._target, self.beside, prefix)
        remove_rewritten(self._target)
        put_document(self._target, document, begun)


def _empty_place(target: DatasetTarget) -> DatasetTarget:
    remove_rewritten(target)
    root = _directory(target) / FOLDER / _REWRITE
    with opened_root(_directory(target)) as top, opened_below(top, [FOLDER, _REWRITE], create=True):
        return DatasetTarget(LocalStore(root), root)


def remove_rewritten(target: DatasetTarget) -> None:
    """Remove what an earlier run left."""
    if target.directory is None:
        return
    with os_errors_about(f"{FOLDER}/{_REWRITE}"), opened_root(target.directory) as top:
        _put_back(top)
        try:
            shutil.rmtree(f"{FOLDER}/{_REWRITE}", dir_fd=top)
        except FileNotFoundError:
            return


def _put_back(top: int) -> None:
    """Restore the old directory of each topic whose exchange in two steps was killed between the steps."""
    for above in ([], [TOPICS.removesuffix("/")]):
        with (
            suppress(ObjectMissing),
            opened_below(top, [FOLDER, _REWRITE, *above]) as beside,
            opened_below(top, above) as place,
        ):
            for name in _names(beside):
                leaf = name.removesuffix(_REPLACED)
                if leaf not in {name, *_names(place)}:
                    os.rename(name, leaf, src_dir_fd=beside, dst_dir_fd=place)
            os.fsync(place)


def _names(directory: int) -> list[str]:
    with os.scandir(directory) as entries:
        return [entry.name for entry in entries]


def _exchange_topic(target: DatasetTarget, rewritten: DatasetTarget, prefix: str) -> None:
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
    """Exchange two directories of one name in one step; in two steps where the file system cannot do that."""
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
    assert target.directory is not None  # noqa: S101 - buckets have another class
    return target.directory
