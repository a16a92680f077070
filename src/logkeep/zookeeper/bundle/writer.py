"""Write a bundle: staged in `.<id>.partial`, synced, and renamed. The rename is the commit.

Tasks write files under temporary names, complete and synced. A run that is killed leaves the staging directory; the
next run with the same id removes it, unless its writer is alive. Files are 0600, directories 0700.
"""

import fcntl
import os
import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from datetime import datetime
from pathlib import Path

from logkeep.errors import BackupFailed, Locked, StoreError, UsageError
from logkeep.formats.zookeeper.names import log_name
from logkeep.model.findings import Finding
from logkeep.model.segments import Codec
from logkeep.model.time import Clock, TokenSource, random_token
from logkeep.repository.object_writer import DEFAULT_LEVEL, StoredWriter
from logkeep.store.local.directory import os_errors_about
from logkeep.store.local.files import sync_path
from logkeep.store.local.root import PARTIAL
from logkeep.store.local.store import LocalStore
from logkeep.zookeeper.bundle import layout
from logkeep.zookeeper.bundle.contents import info_of, stored_names
from logkeep.zookeeper.bundle.document import BackupInfo, encoded, with_seal
from logkeep.zookeeper.bundle.texts import log_text, manifest_text
from logkeep.zookeeper.model.sink import CompletedBackup, Gathered, Known, MemberText
from logkeep.zookeeper.timeline.restorable import check_restorable

_NAME_DIRECTORY = "name a directory for backups"
_DIRECTORIES = (layout.SNAPSHOTS, layout.TXNLOGS, layout.METADATA, layout.LOGS)


@dataclass(frozen=True)
class BundleObjects:
    """A token after each name keeps the file of an aborted attempt from blocking the next attempt."""

    store: LocalStore
    codec: Codec
    level: int = DEFAULT_LEVEL
    tokens: TokenSource = random_token

    def open_snapshot(self, member: str, history: str, name: str, zxid: int, *, packed: bool) -> StoredWriter:
        return self._open(f"{layout.SNAPSHOTS}/{name}", Codec.NONE if packed else self.codec)

    def open_damaged(self, member: str, history: str, name: str, zxid: int) -> StoredWriter:
        return self._open(f"{layout.DAMAGED}/{name}", Codec.NONE)

    def open_log(self, member: str, history: str, first: int, *, tail: bool = False) -> StoredWriter:
        return self._open(f"{layout.TXNLOGS}/{log_name(first)}", self.codec)

    def _open(self, name: str, codec: Codec) -> StoredWriter:
        token = self.tokens()
        stored = f"{name}.{token}"
        return StoredWriter(self.store.open_new(stored), stored, token, codec, self.level)


@dataclass
class BundleSink:
    """A `logkeep.zookeeper.model.sink.BackupSink`. Made by `new_bundle`."""

    directory: Path
    backup_id: str
    new_objects: BundleObjects
    clock: Clock
    started: datetime
    known: Known = field(default_factory=Known)
    info: BackupInfo | None = None
    """The document, set by `complete`."""

    @property
    def path(self) -> Path:
        """The directory of the complete bundle."""
        return self.directory / self.backup_id

    @property
    def url(self) -> str:
        return self.directory.absolute().as_uri()

    def start(self) -> None:
        """Nothing to do: the staging directory exists already."""

    def complete(self, gathered: Gathered) -> CompletedBackup:
        if len(gathered.members) != 1:
            raise UsageError("a bundle holds one member; back several up into a repository")
        found = self._planned(gathered)
        gathered = replace(gathered, findings=[*gathered.findings, *found])
        took_s = (self.clock() - self.started).total_seconds()
        info = with_seal(info_of(gathered, self.backup_id, self.started, took_s, self.new_objects.codec))
        root = self.new_objects.store.root
        with os_errors_about(str(root)):
            self._rename_files(gathered, root)
            self._write_documents(gathered, info, root)
            self._commit(root)
        self.info = info
        return CompletedBackup(self.backup_id, found)

    def _planned(self, gathered: Gathered) -> tuple[Finding, ...]:
        snapshots, logs = [p.kept for p in gathered.snapshots], [p.kept for p in gathered.logs]
        return check_restorable(gathered.members, snapshots, logs, gathered.history, str(self.path)).findings

    def _rename_files(self, gathered: Gathered, root: Path) -> None:
        """Give files their final names, and remove what aborted attempts left."""
        names = stored_names(gathered)
        for name in _DIRECTORIES:
            (root / name).mkdir(mode=0o700, exist_ok=True)
        for temporary, final in names.items():
            (root / temporary).rename(root / final)
        wanted = {root / final for final in names.values()}
        for kind in (layout.SNAPSHOTS, layout.TXNLOGS, layout.DAMAGED):
            for left in sorted((root / kind).iterdir()) if (root / kind).is_dir() else ():
                if left not in wanted:
                    left.unlink()
        shutil.rmtree(root / PARTIAL, ignore_errors=True)

    def _write_documents(self, gathered: Gathered, info: BackupInfo, root: Path) -> None:
        member = gathered.members[0].name
        text = gathered.texts.get(member, MemberText())
        metadata = root / layout.METADATA
        if gathered.config:
            (root / layout.CONFIG).mkdir(mode=0o700)
        for config in gathered.config:
            _write(root / layout.CONFIG / config.name, config.content)
        _write(metadata / layout.MNTR, text.mntr.encode())
        _write(metadata / layout.STAT, text.stat.encode())
        _write(metadata / layout.CONF, text.conf.encode())
        _write(metadata / layout.MANIFEST, manifest_text(info, gathered).encode())
        _write(root / layout.LOGS / layout.BACKUP_LOG, log_text(info, gathered, self.started, self.clock()).encode())
        _write(metadata / layout.INFO, encoded(info))

    def _commit(self, root: Path) -> None:
        for name in (*_DIRECTORIES, layout.CONFIG, layout.DAMAGED, "."):
            if (root / name).is_dir():
                sync_path(root / name)
        if self.path.exists():
            raise BackupFailed("another run has used this id meanwhile", subject=str(self.path))
        root.rename(self.path)
        sync_path(self.directory)


@contextmanager
def new_bundle(
    directory: Path,
    backup_id: str | None,
    *,
    clock: Clock,
    tokens: TokenSource,
    codec: Codec = Codec.GZIP,
    level: int = DEFAULT_LEVEL,
) -> Iterator[BundleSink]:
    """A sink for a new bundle. An incomplete bundle is removed at the end of the block."""
    started = clock()
    name = layout.checked_id(backup_id) if backup_id is not None else layout.default_id(started)
    with os_errors_about(str(directory)):
        _make_directory(directory)
        if (directory / name).exists():
            raise UsageError(
                "a backup with this id exists already",
                subject=str(directory / name),
                remedy="choose another --backup-id, or leave it out: the time is then the id",
            )
        root = layout.partial(directory, name)
        lock = _lock_staging(root)
    try:
        yield BundleSink(directory, name, BundleObjects(LocalStore(root, tokens), codec, level, tokens), clock, started)
    finally:
        shutil.rmtree(root, ignore_errors=True)  # it does not exist after a commit
        os.close(lock)


def _make_directory(directory: Path) -> None:
    """Create the directory for bundles if it is missing; its entry is durable."""
    missing = [path for path in (directory, *directory.absolute().parents) if not path.exists()]
    try:
        for path in reversed(missing):
            path.mkdir(mode=0o700, exist_ok=True)
            sync_path(path.absolute().parent)
    except (FileNotFoundError, NotADirectoryError, FileExistsError) as error:
        what = "no directory can be created there"
        raise StoreError(what, subject=str(directory), remedy=_NAME_DIRECTORY) from error
    if not directory.is_dir():
        raise StoreError("this is not a directory", subject=str(directory), remedy=_NAME_DIRECTORY)


def _lock_staging(root: Path) -> int:
    """Create and lock an empty staging directory; the lock ends with the process. Leftovers are removed."""
    while True:
        root.mkdir(mode=0o700, exist_ok=True)
        descriptor = os.open(root, os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC)
        try:
            fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            os.close(descriptor)
            raise Locked(
                "another run is writing this backup", subject=str(root), remedy="wait for it, or choose another id"
            ) from None
        if _is_still(descriptor, root):
            break
        os.close(descriptor)  # its writer completed and renamed it between open and lock
    for left in sorted(root.iterdir()):
        shutil.rmtree(left) if left.is_dir() else left.unlink()
    return descriptor


def _is_still(descriptor: int, root: Path) -> bool:
    try:
        return os.path.samestat(os.fstat(descriptor), root.lstat())
    except FileNotFoundError:
        return False


def _write(path: Path, content: bytes) -> None:
    descriptor = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC, 0o600)
    with os.fdopen(descriptor, "wb") as file:
        file.write(content)
        file.flush()
        os.fsync(descriptor)
