"""Read a ZooKeeper backup in a repository."""

from collections.abc import Collection, Container, Iterator, Mapping
from dataclasses import dataclass, field, replace
from functools import cached_property
from itertools import chain
from typing import BinaryIO

import msgspec

from logkeep.errors import Damaged, ObjectMissing, UnknownBackup
from logkeep.formats.zookeeper.scanned_log import HEADER
from logkeep.formats.zookeeper.txnlog import digest_in, tables
from logkeep.model.segments import Codec, Segment
from logkeep.repository.backups.attachments import read_attachment
from logkeep.repository.backups.manifest import Manifest
from logkeep.repository.backups.source import read_manifest
from logkeep.repository.chain import layout
from logkeep.repository.chain.commits import SourceRef, read_chain
from logkeep.repository.chain.fold import BackupEntry, Folded
from logkeep.repository.segments.damaged_bytes import salvaged
from logkeep.repository.segments.reader import StoredLog
from logkeep.zookeeper.model.archived import ArchivedLog, ArchivedSnapshot, Member
from logkeep.zookeeper.model.packing import unpacked_stream
from logkeep.zookeeper.model.tree import Tree
from logkeep.zookeeper.repo.current_record import served_record
from logkeep.zookeeper.repo.record import (
    ROLE,
    EnsembleRecord,
)
from logkeep.zookeeper.timeline.object_check import checked_object
from logkeep.zookeeper.timeline.plan import RestorePath
from logkeep.zookeeper.timeline.replay import replay
from logkeep.zookeeper.timeline.restorable import end_of


@dataclass(frozen=True)
class ArchiveView:
    """A `logkeep.zookeeper.model.archived.BackupView`. Picklable: a task opens the same objects."""

    place: SourceRef
    manifest: Manifest
    record: EnsembleRecord
    rows: dict[str, Segment]
    """The object of everything that the record names, by token."""
    within: dict[str, int] = field(default_factory=dict)
    """See `ServedRecord`."""
    repaired: int = 0
    """Number of damaged objects that were replaced by others."""
    last_starts: Mapping[str, int] | None = None
    """See `_last_starts`; of the whole backup, if this is a share of it."""

    @property
    def name(self) -> str:
        return str(self.manifest.id)

    @property
    def members(self) -> tuple[Member, ...]:
        return self.record.members

    @property
    def snapshots(self) -> tuple[ArchivedSnapshot, ...]:
        return self.record.snapshots

    @cached_property
    def logs(self) -> tuple[ArchivedLog, ...]:
        return tuple(sorted(self.record.logs, key=lambda log: (log.member, log.history, log.first)))

    def open(self, kept: ArchivedSnapshot | ArchivedLog) -> BinaryIO:
        stored, start = StoredLog.of(self.place, self.row_of(kept)), self.within.get(kept.token)
        if start is None:
            pieces = stored.pieces()
        else:
            size = kept.size_bytes - len(HEADER)
            pieces = chain((memoryview(HEADER),), _up_to(stored.range(start, size), size))
        return unpacked_stream(pieces)

    def salvage(self, kept: ArchivedLog) -> BinaryIO:
        return unpacked_stream(salvaged(StoredLog.of(self.place, self.row_of(kept))))

    def unsealed(self, kept: ArchivedSnapshot | ArchivedLog) -> bool:
        row, start = self.row_of(kept), self.within.get(kept.token)
        covered = row.codec is Codec.NONE if start is None else start != self._last_starts[row.token]
        return not covered and not StoredLog.of(self.place, row).is_stored_as(row.sha256)

    def object_name(self, kept: ArchivedSnapshot | ArchivedLog) -> str:
        """The name of its object in the store."""
        return layout.segment(self.place.source, self.row_of(kept))

    def row_of(self, kept: ArchivedSnapshot | ArchivedLog) -> Segment:
        return self.rows[kept.token]

    def only(self, objects: Collection[ArchivedSnapshot | ArchivedLog]) -> "ArchiveView":
        """A view of these objects alone, small enough to be sent with each unit of work."""
        tokens = {kept.token for kept in objects}
        record = msgspec.structs.replace(
            self.record,
            snapshots=tuple(s for s in self.record.snapshots if s.token in tokens),
            logs=tuple(r for r in self.record.logs if r.token in tokens),
            config=(),
        )
        rows = {token: row for token, row in self.rows.items() if token in tokens}
        within = {token: at for token, at in self.within.items() if token in tokens}
        last_starts = {rows[token].token: self._last_starts[rows[token].token] for token in within}
        return replace(self, record=record, rows=rows, within=within, last_starts=last_starts)

    @cached_property
    def _last_starts(self) -> Mapping[str, int]:
        """Where the last piece of each merged object begins, by the object's token: the check of that piece covers all
        bytes of the object."""
        if self.last_starts is not None:
            return self.last_starts
        starts = sorted((start, self.rows[token].token) for token, start in self.within.items())
        return {token: start for start, token in starts}


def _up_to(pieces: Iterator[memoryview], size: int) -> Iterator[memoryview]:
    """The bytes after a part of an object are not unpacked."""
    while size > 0 and (piece := next(pieces, None)) is not None:
        size -= len(piece)
        yield piece


def view_of(place: SourceRef, entry: BackupEntry, folded: Folded | None = None) -> ArchiveView:
    """A view of a committed backup. Raises Damaged, or UnknownBackup for another kind of source.

    `folded`: the chain, if the caller has read it already.
    """
    manifest = read_manifest(place, entry)
    record = read_attachment(place, manifest, ROLE, EnsembleRecord)
    if record is None:
        raise UnknownBackup("this is not a backup of ZooKeeper", subject=f"{place.source} {entry.id}")
    if record.id != entry.id:
        raise Damaged("the record belongs to another backup", subject=f"{place.source} {entry.id}")
    found = served_record(place, folded or read_chain(place), manifest, record)
    return ArchiveView(place, manifest, found.record, found.rows, found.within, found.repaired)


def damaged_in(view: ArchiveView, names: Container[str]) -> tuple[ArchivedLog | ArchivedSnapshot, ...]:
    """Logs and snapshots of a backup in these objects, except tails, which no later backup includes."""
    kept: list[ArchivedLog | ArchivedSnapshot] = [*view.snapshots, *(log for log in view.logs if not log.apart)]
    return tuple(one for one in kept if view.object_name(one) in names)


def digest_at(view: ArchiveView, zxid: int) -> int | None:
    """The digest of the tree after a transaction of the newest history; None when it is not archived.

    Raises Damaged, which names the object.
    """
    history = view.record.history
    log = next((one for one in view.logs if one.history == history and one.first <= zxid <= one.last), None)
    if log is None:
        return None
    try:
        with view.open(log) as source:
            return digest_in(tables(source), zxid)
    except (Damaged, ObjectMissing) as error:
        raise Damaged(error.what, subject=view.object_name(log)) from error


def tree_at_end(view: ArchiveView) -> Tree | None:
    """The tree after the last archived transaction, replayed; None if it cannot be reached.

    Raises Damaged, which names the object.
    """
    logs = [log for log in view.logs if not log.apart]
    path = end_of(view.members, view.snapshots, logs, view.record.history)
    if path is None:
        return None
    try:
        return replay(view, path).tree
    except (Damaged, ObjectMissing) as error:
        raise Damaged(error.what, subject=_damaged_on(view, path) or error.subject or view.name) from error


def _damaged_on(view: ArchiveView, path: RestorePath) -> str | None:
    """The first object of the path whose bytes are not those that were written."""
    base = path.base.snapshot
    needed = [*((base,) if base is not None else ()), *(piece.log for piece in path.slices)]
    checked = ((kept, checked_object(view, kept)) for kept in needed)
    return next((view.object_name(kept) for kept, found in checked if found.seen and not found.whole), None)
