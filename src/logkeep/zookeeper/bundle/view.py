"""Read a bundle: its document names the files. A caller that reads a file compares its hash."""

import os
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import BinaryIO, Final

from logkeep.errors import Damaged, UsageError
from logkeep.model.segments import Codec
from logkeep.repository.segments.damaged_bytes import salvaged
from logkeep.repository.segments.reader import StoredLog
from logkeep.store.local.directory import opened_below, opened_root, os_errors_about, require_regular
from logkeep.store.local.files import READ_FLAGS
from logkeep.store.local.store import LocalStore
from logkeep.zookeeper.bundle import layout
from logkeep.zookeeper.bundle.document import (
    WITHOUT_DOCUMENT,
    BackupInfo,
    LogEntry,
    SnapshotEntry,
    codec_of,
    read_info,
)
from logkeep.zookeeper.bundle.info_file import document_of, is_intact
from logkeep.zookeeper.model.archived import ArchivedLog, ArchivedSnapshot, Member, digest_hex
from logkeep.zookeeper.model.packing import unpacked_stream

CHANGED: Final = "it was changed: its seal does not match"


@dataclass(frozen=True)
class BundleView:
    """A `logkeep.zookeeper.model.archived.BackupView`. `path` is the bundle directory; its name is the id."""

    path: Path

    @cached_property
    def info(self) -> BackupInfo:
        """Raises Damaged, or UsageError where there is no bundle at all."""
        if not layout.info_path(self.path).is_file() and not (self.path / layout.TXNLOGS).is_dir():
            raise UsageError(
                "there is no backup here", subject=str(self.path), remedy="name the directory of one backup"
            )
        return read_info(self.path)

    @property
    def name(self) -> str:
        return self.info.backup_id

    @cached_property
    def intact(self) -> bool:
        """Whether its document is unchanged, as far as it has a seal. Raises what `info` does."""
        _ = self.info  # its errors describe an unreadable document better
        return is_intact(document_of(self.path))

    def require_intact(self) -> None:
        """Raises Damaged for a changed document: it may describe other files than there are."""
        if not self.intact:
            raise Damaged(CHANGED, subject=str(layout.info_path(self.path)), remedy=WITHOUT_DOCUMENT)

    @property
    def members(self) -> tuple[Member, ...]:
        server = self.info.zookeeper
        return (
            Member(
                name=server.member,
                version=server.version,
                host=server.host,
                data_dir=server.data_dir,
                log_dir=server.log_dir,
                role=server.role,
                zxid=_number(server.zxid),
                current_epoch=server.current_epoch,
                accepted_epoch=server.accepted_epoch,
                voters=server.voters,
            ),
        )

    @cached_property
    def snapshots(self) -> tuple[ArchivedSnapshot, ...]:
        return tuple(self._snapshot(entry) for entry in self.info.files.snapshots)

    @cached_property
    def logs(self) -> tuple[ArchivedLog, ...]:
        return tuple(sorted((self._log(entry) for entry in self.info.files.txnlogs), key=lambda log: log.first))

    def open(self, kept: ArchivedSnapshot | ArchivedLog) -> BinaryIO:
        kind, entry = self._entry(kept)
        if codec_of(entry) is Codec.NONE:
            return self._plain(kind, entry.stored_name)
        return unpacked_stream(self._stored(kind, entry).pieces())

    def salvage(self, kept: ArchivedLog) -> BinaryIO:
        kind, entry = self._entry(kept)
        if codec_of(entry) is Codec.NONE:
            return self._plain(kind, entry.stored_name)
        return unpacked_stream(salvaged(self._stored(kind, entry)))

    def unsealed(self, kept: ArchivedSnapshot | ArchivedLog) -> bool:
        kind, entry = self._entry(kept)
        stored = self._stored(kind, entry)
        return stored.codec is not Codec.NONE and not stored.is_stored_as(entry.stored_checksum.removeprefix("sha256:"))

    def _stored(self, kind: str, entry: SnapshotEntry | LogEntry) -> StoredLog:
        name = f"{kind}/{entry.stored_name}"
        return StoredLog(LocalStore(self.path), name, codec_of(entry), entry.stored_size, entry.size)

    def _entry(self, kept: ArchivedSnapshot | ArchivedLog) -> tuple[str, SnapshotEntry | LogEntry]:
        if isinstance(kept, ArchivedSnapshot):
            return layout.SNAPSHOTS, next(e for e in self.info.files.snapshots if e.name == kept.name)
        return layout.TXNLOGS, next(e for e in self.info.files.txnlogs if int(e.start_zxid, 16) == kept.first)

    def _plain(self, kind: str, leaf: str) -> BinaryIO:
        """Opens the stored file itself. No link is followed."""
        with os_errors_about(f"{kind}/{leaf}"), opened_root(self.path) as root, opened_below(root, [kind]) as parent:
            descriptor = os.open(leaf, READ_FLAGS, dir_fd=parent)
            file = os.fdopen(descriptor, "rb")
            require_regular(descriptor, f"{kind}/{leaf}")
        return file

    def _snapshot(self, entry: SnapshotEntry) -> ArchivedSnapshot:
        return ArchivedSnapshot(
            member=self.info.zookeeper.member,
            history=self.info.history,
            name=entry.name,
            zxid=int(entry.zxid, 16),
            fuzzy_end=_number(entry.fuzzy_end),
            bound=_number(entry.bound),
            digest_hex=digest_hex(_number(entry.digest)),
            digest_zxid=int(entry.digest_zxid, 16),
            nodes=entry.nodes,
            size_bytes=entry.size,
            sha256=entry.checksum.removeprefix("sha256:"),
            origin=entry.origin,
        )

    def _log(self, entry: LogEntry) -> ArchivedLog:
        first, last = int(entry.start_zxid, 16), int(entry.end_zxid, 16)
        if first > last:
            raise Damaged(f"{entry.name} ends before it begins", subject=str(layout.info_path(self.path)))
        return ArchivedLog(
            member=self.info.zookeeper.member,
            history=self.info.history,
            name=entry.source_name,
            first=first,
            last=last,
            records=entry.transaction_count,
            min_time_ms=entry.min_time_ms,
            max_time_ms=entry.max_time_ms,
            last_adler=entry.last_adler,
            ending=entry.ending,
            proof=entry.proof,
            size_bytes=entry.size,
            sha256=entry.checksum.removeprefix("sha256:"),
            borders=tuple((int(before, 16), int(after, 16)) for before, after in entry.borders),
            digests=entry.digests,
        )


def _number(text: str | None) -> int | None:
    return None if text is None else int(text, 16)
