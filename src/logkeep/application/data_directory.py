"""The data directory of an application: of all of it, or of one of its processes if the log is on Kafka.

application.json              sealed: application id, name, partitions, history, when it was created
lock                          locked while a process runs the application
control.sock                  where that process answers `send`, `state` and a coordinator
p<N>/log/<20 digits>.log      the log of a partition; p<N>/log/leader its lock and term
member                        the id of this process in its group, if the log is on Kafka; there is no p<N>/log then
p<N>/state.sqlite             its state; made again from snapshot and log where it is missing
p<N>/snapshots/<20 digits>.sqlite
"""

import fcntl
import os
import secrets
import shutil
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path
from typing import Annotated

import msgspec

from logkeep.checkpoint.durable_directory import make_durable_directory, sync_directory
from logkeep.directories.path_walk import user_name
from logkeep.errors import Damaged, Locked, OtherOwner, TargetUnsafe, UsageError
from logkeep.file_owners import facts_of, walked, who_can_change
from logkeep.model.time import rfc3339
from logkeep.repository.chain.documents import Document, seal, unseal

DOCUMENT, LOCK, SOCKET, MEMBER, LOG = "application.json", "lock", "control.sock", "member", "log"


class ApplicationDocument(Document, frozen=True, kw_only=True, tag="application-directory"):
    """What a data directory is. `repository` stays empty: the directory belongs to no repository."""

    application: Annotated[str, msgspec.Meta(pattern=r"^[0-9a-f]{32}$")]
    name: str
    partitions: Annotated[int, msgspec.Meta(ge=1, le=100_000)]
    history: Annotated[int, msgspec.Meta(ge=0, le=2**32 - 1)] = 0
    """How often it was restored."""
    created: str


@dataclass(frozen=True)
class DataDirectory:
    path: Path
    document: ApplicationDocument

    def partition(self, number: int) -> Path:
        return self.path / f"p{number}"

    @property
    def socket(self) -> Path:
        return self.path / SOCKET


class DirectoryLock:
    """Held while a process runs the application, or a restore replaces the directory."""

    def __init__(self, directory: Path) -> None:
        """Raises Locked."""
        self._file = os.open(directory / LOCK, os.O_RDWR | os.O_CREAT | os.O_NOFOLLOW | os.O_CLOEXEC, 0o600)
        try:
            fcntl.flock(self._file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError as error:
            os.close(self._file)
            remedy = "stop the process that runs this application, or use another --data"
            raise Locked("the application is running", subject=str(directory), remedy=remedy) from error

    def release(self) -> None:
        os.close(self._file)


def require_own_directory(path: Path) -> None:
    """Called before a restore changes a directory, or makes one at this path: the owner of the directory could leave
    links there that lead the restore into other directories. Raises OtherOwner; for root also if others can write to
    it or redirect its path.
    """
    there = next(one for one in (path.absolute(), *path.absolute().parents) if one.exists())
    owner, user = there.stat().st_uid, os.geteuid()
    if owner not in {0, user}:
        remedy = f"run the same command with sudo -u '#{owner}'"
        raise OtherOwner(f"the directory belongs to {user_name(owner)}", subject=str(there), remedy=remedy)
    with walked(there) as (found, above):
        made = there != path.absolute()
        reason = above or who_can_change(facts_of(found), str(there), user, sticky_allowed=made)
    if user == 0 and reason:
        remedy = "let only root write to the directory and to those above it, or run as the application's own user"
        raise OtherOwner(f"others can change what a restore works on: {reason}", subject=str(path), remedy=remedy)


def read_directory(path: Path) -> DataDirectory:
    """An existing data directory. Raises UsageError, Damaged."""
    try:
        data = (path / DOCUMENT).read_bytes()
    except FileNotFoundError as error:
        remedy = "start the application first: `python PROGRAM run --data DIR`"
        raise UsageError("this is not an application's data directory", subject=str(path), remedy=remedy) from error
    try:
        return DataDirectory(path, unseal(data, ApplicationDocument, str(path / DOCUMENT)))
    except Damaged as error:
        error.remedy = "put it back if you have it, or restore to another directory: `logkeep app restore`"
        raise


def open_directory(
    path: Path, name: str, partitions: int, now: datetime, application: str | None = None, history: int = 0
) -> DataDirectory:
    """The data directory of an application; a new one where there is nothing. The caller holds its lock.

    `application` and `history` are what the cluster says, if the log is on Kafka. The state of an earlier history is
    removed: the log on the cluster has what comes instead. Raises TargetUnsafe if the directory belongs to another
    application, has another number of partitions, or is for a log in another place, and Damaged if a log is missing.
    """
    if not (path / DOCUMENT).exists():
        _require_empty(path)
        document = ApplicationDocument(
            repository="",
            application=application or secrets.token_hex(16),
            name=name,
            partitions=partitions,
            history=history,
            created=rfc3339(now),
        )
        if application is None:
            _make_logs(DataDirectory(path, document))
        write_document(path, document)
    found = read_directory(path)
    if (found.document.name, found.document.partitions) != (name, partitions):
        known = f"{found.document.name!r} with {found.document.partitions} partitions"
        what = f"the directory has the application {known}, not {name!r} with {partitions}"
        raise TargetUnsafe(what, subject=str(path), remedy="the number of partitions is fixed; use another --data")
    if application is None and (path / MEMBER).exists():
        remedy = "name the cluster with --bootstrap-servers, or use another --data"
        raise TargetUnsafe("the log of this application is on Kafka", subject=str(path), remedy=remedy)
    if application not in (None, found.document.application):
        what = f"the directory is of application {found.document.application}, the cluster has {application}"
        raise TargetUnsafe(what, subject=str(path), remedy="use another --data for the log on this cluster")
    if application is not None:
        return _of_history(found, history)
    _require_logs(found)
    return found


def _make_logs(made: DataDirectory) -> None:
    """Before the document: where it is, a log that is missing was lost."""
    for partition in map(made.partition, range(made.document.partitions)):
        make_durable_directory(partition / LOG)
        sync_directory(partition)


def _require_logs(found: DataDirectory) -> None:
    for log in (found.partition(number) / LOG for number in range(found.document.partitions)):
        if not log.is_dir():
            remedy = "put it back if you have it, or restore the application from a backup"
            raise Damaged("the log of this partition is missing", subject=str(log), remedy=remedy)


def _of_history(found: DataDirectory, history: int) -> DataDirectory:
    """The directory of a process after a restore to the cluster: it keeps its member id only."""
    known = found.document.history
    if known > history:
        what = f"the directory is of history {known}, the cluster has {history}"
        raise TargetUnsafe(what, subject=str(found.path), remedy="use another --data for the log on this cluster")
    if known < history:
        for partition in map(found.partition, range(found.document.partitions)):
            if partition.exists():
                shutil.rmtree(partition)
        write_document(found.path, msgspec.structs.replace(found.document, history=history))
    return read_directory(found.path)


def write_document(path: Path, document: ApplicationDocument) -> None:
    """Write the document whole or not at all."""
    part = path / f"{DOCUMENT}.part"
    with part.open("wb") as file:
        file.write(seal(document))
        file.flush()
        os.fsync(file.fileno())
    part.replace(path / DOCUMENT)
    sync_directory(path)


def _require_empty(path: Path) -> None:
    known = (LOCK, f"{DOCUMENT}.part")
    others = sorted(one.name for one in path.iterdir() if one.name not in known and not _is_new_partition(one))
    if others:
        what = f"the directory holds {others[0]}, but no application"
        raise TargetUnsafe(what, subject=str(path), remedy="use an empty directory, or restore this one")


def _is_new_partition(path: Path) -> bool:
    """Whether a first start that was killed left it: nothing has been in it."""
    return path.name.startswith("p") and path.is_dir() and all(inner.is_dir() for inner in path.rglob("*"))
