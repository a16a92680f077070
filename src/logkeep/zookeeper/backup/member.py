"""State of one member during a backup: files found, pieces copied, and how far each file was read."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace

import msgspec

from logkeep.formats.zookeeper.names import SnapshotPacking
from logkeep.formats.zookeeper.txnlog import HEADER_BYTES
from logkeep.formats.zookeeper.window import CHUNK_BYTES
from logkeep.zookeeper.backup.continuity import CONTRADICTED, Continued, unproven
from logkeep.zookeeper.backup.known_records import KnownRecords, archived_runs, is_same
from logkeep.zookeeper.backup.log_task import (
    CopiedLog,
    CopiedPiece,
    FoundDamage,
    LogCopyUnit,
    LoggedAgain,
    OtherRecords,
)
from logkeep.zookeeper.backup.open_files import OpenFiles
from logkeep.zookeeper.backup.round_rules import LogToRead, MemberProgress, holes, logs_to_read, proven_by, with_bounds
from logkeep.zookeeper.backup.server_files import FoundFile, MemberPlace, ServerFiles
from logkeep.zookeeper.backup.server_identity import contradicted, logged_to, processes_all
from logkeep.zookeeper.backup.snapshot_task import CopiedSnapshot, SnapshotCopyOutcome, SnapshotCopyUnit
from logkeep.zookeeper.backup.source_file import sha256_of
from logkeep.zookeeper.model.archived import (
    ArchivedLog,
    ArchivedSnapshot,
    FileOrigin,
    LogFileEnding,
    Member,
    digest_hex,
)
from logkeep.zookeeper.model.sink import DamagedFile, NewObjects, PlacedLog, PlacedSnapshot
from logkeep.zookeeper.model.spans import Span
from logkeep.zookeeper.server.four_letter import ServerState
from logkeep.zookeeper.timeline.holdings import FIRST_EVER


@dataclass(frozen=True)
class PiecePosition:
    """Position of a piece in a file."""

    file: str
    joins_at: int
    start_at: int
    end_at: int


@dataclass
class MemberRun:
    """Changed only by the rounds of one backup."""

    place: MemberPlace
    history: str
    new_objects: NewObjects
    continued: Continued
    known_snapshots: Mapping[str, tuple[int, str]]
    """Size and sha256 of archived snapshots, by name."""
    known_logs: Sequence[Span] = ()
    """First and last of the archived runs of transactions."""
    largest_record: int | None = None
    chunk_bytes: int = CHUNK_BYTES
    found: ServerFiles | None = None
    _last_seen: ServerFiles | None = None
    still: bool = False
    """Nothing changed in its directories between the last two listings."""
    state: ServerState | None = None
    state_after: ServerState | None = None
    other_server: ServerState | None = None
    """State of a different server that answered at this address: this one counts as not asked."""
    overtaken: int | None = None
    """Last transaction in these logs before that server was asked, if it did not reach it within the time limit."""
    lagging: bool = False
    """It may still be the right server: a member of an ensemble that waits for the others."""
    snapshots: dict[str, PlacedSnapshot] = field(default_factory=dict)
    reported: dict[str, int] = field(default_factory=dict)
    """The server's zxid when a snapshot was complete, by name."""
    unusable: dict[str, CopiedSnapshot] = field(default_factory=dict)
    """Unreadable snapshots, by name."""
    logs: list[PlacedLog] = field(default_factory=list)
    damage: dict[str, tuple[FoundDamage, ...]] = field(default_factory=dict)
    """By log file. A damaged end with nothing after it is read again in every round."""
    again: dict[str, tuple[LoggedAgain, ...]] = field(default_factory=dict)
    """By log file: records that the server logged more than once."""
    others: dict[str, tuple[OtherRecords, ...]] = field(default_factory=dict)
    """By log file: records that are not archived because they contradict archived ones."""
    ends: dict[str, int] = field(default_factory=dict)
    positions: dict[tuple[str, int], PiecePosition] = field(default_factory=dict)
    """Position of a piece, by its file and its first zxid."""
    closed_at: dict[str, int] = field(default_factory=dict)
    """Undamaged files with a later one: the byte after their last record."""
    hashed: dict[tuple[str, int, int], str] = field(default_factory=dict)
    """Hashed files, by path, size and time: shared by the rounds of `--follow`."""
    schemes: set[str] = field(default_factory=set)
    damaged: list[DamagedFile] = field(default_factory=list)
    open_files: OpenFiles = field(default_factory=OpenFiles)
    purged: bool = False
    """Files that were listed have been purged since."""
    voters: int | None = None
    rereads: bool = False
    """A log has records that others have too: it must be read again without them."""
    _reread: set[str] = field(default_factory=set)

    def __post_init__(self) -> None:
        self._begin_logs()

    def _begin_logs(self) -> None:
        if self.continued.file:
            self.ends[self.continued.file] = self.continued.end_at

    def path_of(self, name: str) -> str:
        """The path of a file of this name, for messages."""
        return next((str(f.path) for f in (*self.files.logs, *self.files.snapshots) if f.path.name == name), name)

    def update_files(self, found: ServerFiles) -> None:
        """Take a new listing; `still` is whether it equals the last one."""
        self.still = self._last_seen == found
        self._last_seen = found
        self.open_files.hold((*found.snapshots, *found.logs))
        self.purged = self.purged or self.open_files.gone() > 0
        self.found = self._with_purged(found)

    def _with_purged(self, found: ServerFiles) -> ServerFiles:
        """Purged files that are still open count as present."""
        if self.found is None:
            return found
        return replace(
            found,
            snapshots=_joined_files(self.found.snapshots, found.snapshots, self.open_files),
            logs=_joined_files(self.found.logs, found.logs, self.open_files),
        )

    def snapshot_units(self) -> list[SnapshotCopyUnit]:
        """Snapshots that are not archived yet. Unreadable ones are tried again: they may have been unfinished."""
        wanted = [f for f in self.files.snapshots if f.path.name not in self.snapshots and not self._is_known(f)]
        packed = {f.zxid for f in self.files.snapshots if f.name.packing is not SnapshotPacking.PLAIN}
        return [
            SnapshotCopyUnit(
                path=str(f.path),
                pinned=self.open_files.path_of(str(f.path)),
                name=f.path.name,
                zxid=f.zxid,
                packing=f.name.packing,
                as_is=f.name.packing is not SnapshotPacking.PLAIN or f.zxid in packed,
                size_bytes=f.size_bytes,
                member=self.place.name,
                history=self.history,
                new_objects=self.new_objects,
            )
            for f in wanted
        ]

    def add_snapshot(self, unit: SnapshotCopyUnit, copied: CopiedSnapshot) -> None:
        self.unusable.pop(unit.name, None)
        if copied.outcome is SnapshotCopyOutcome.VANISHED:
            return
        if copied.stored is None:
            self.unusable[unit.name] = copied
        else:
            self.schemes.update(copied.schemes)
            self.snapshots[unit.name] = PlacedSnapshot(self._archived_snapshot(unit, copied), copied.stored)

    def update_state(self, state: ServerState | None) -> None:
        """The server's zxid bounds every snapshot that was complete before it was asked."""
        if state is not None and self.other_server is None and contradicted(state, self._processed()):
            self.forget_answers(state)
        self.state = state if self.other_server is None else None
        state = self.state
        if state is not None:
            for name in self.snapshots:
                self.reported.setdefault(name, state.zxid)

    def _processed(self) -> Iterator[int]:
        """Transactions that its server must have processed."""
        yield self.continued.kept_to or 0
        yield from self._held_snapshots()

    def _held_snapshots(self) -> Iterator[int]:
        """zxids of snapshots on its disk that are archived, by this backup or an earlier one."""
        for file in self.files.snapshots:
            if file.path.name in self.snapshots or self._is_known(file):
                yield file.zxid

    def unprocessed(self) -> int:
        """The last logged transaction beyond the server's zxid, which it must reach soon if it is its log; 0: none."""
        if self.state is None:
            return 0
        return logged_to(self.files.logs, self.ends, self.largest_record, self.chunk_bytes)

    def note_lag(self, other_server: ServerState, logged: int) -> None:
        """Its zxid stays below what was logged before it was asked."""
        self.overtaken, self.lagging = logged, not processes_all(other_server, self.files.current_epoch)
        self.forget_answers(other_server)

    def forget_answers(self, other_server: ServerState | None) -> None:
        """Another server answered: discard its answers, and what was copied with them. The logs are read again.

        None: no server answers any more.
        """
        self.other_server, self.state, self.state_after = other_server, None, None
        by_file = (self.damage, self.again, self.others, self.ends, self.closed_at)
        for collected in (self.reported, self.logs, self.positions, self._reread, *by_file):
            collected.clear()
        self._begin_logs()

    def log_units(self) -> list[tuple[LogToRead, LogCopyUnit]]:
        self.rereads = False
        logs = logs_to_read(self.files.logs, self.ends, self.continued.kept_to)
        cap = self.state.zxid if self.state is not None else None
        alone = self.state is not None and self.state.mode == "standalone"
        proven = proven_by((s.kept for s in self.snapshots.values()), cap, alone=alone)
        return [(log, self._log_unit(log, cap, proven)) for log in logs]

    def add_log(self, log: LogToRead, copied: CopiedLog) -> None:
        name = log.file.path.name
        if copied.vanished:
            return
        self._refuse_another_history(copied.others)
        end_at = self._new_until(name, copied)
        self.ends[name] = min(copied.end_at, end_at)
        lasting = (d for d in self.damage.get(name, ()) if d.resumes_zxid is not None)
        self.damage[name] = (*lasting, *(d for d in copied.damage if d.position < end_at))
        self.again[name] = tuple(dict.fromkeys([*self.again.get(name, ()), *copied.again]))
        self.others[name] = copied.others
        for piece in (each for each in copied.pieces if each.start_at < end_at):
            kept = self._archived_log(name, piece, _ending(log, copied))
            self.logs.append(PlacedLog(kept, piece.stored, piece.tail))
            self.positions[name, kept.first] = PiecePosition(name, piece.joins_at, piece.start_at, piece.end_at)
        self.closed_at[name] = copied.closes_at if log.closed else 0

    def _refuse_another_history(self, others: Sequence[OtherRecords]) -> None:
        """Archived and current records are then two histories, even if the last records agreed."""
        kept_to = self.continued.kept_to
        contradicting = [other.first for other in others if kept_to is not None and other.first <= kept_to]
        if contradicting:
            raise unproven(self.place.name, contradicting[0], CONTRADICTED)

    def _new_until(self, name: str, copied: CopiedLog) -> int:
        """The byte of the first piece with archived records: from there on the file is read again, once."""
        for piece in copied.pieces:
            has_kept = any(p.kept.first <= piece.last and piece.first <= p.kept.last for p in self.logs)
            if has_kept and name not in self._reread:
                self._reread.add(name)
                self.rereads = True
                return piece.start_at
        return copied.end_at + 1

    def _archived_runs(self, file: FoundFile) -> tuple[KnownRecords, ...]:
        """Archived records that may be logged again in a file."""
        runs = [self._run_of(p.kept) for p in self.logs]
        if self.continued.kept_to is not None:
            runs += archived_runs(file, self.files.logs, self.continued, self.open_files)
        return tuple(runs)

    def _run_of(self, kept: ArchivedLog) -> KnownRecords:
        path = next((str(log.path) for log in reversed(self.files.logs) if log.path.name == kept.name), "")
        start_at, pinned = self.positions[kept.name, kept.first].start_at, self.open_files.path_of(path)
        return KnownRecords(kept.first, kept.last, kept.last_adler, path, pinned, start_at)

    def side_by_side(self, before: ArchivedLog, after: ArchivedLog) -> bool:
        """Whether two pieces are adjacent: in one file, or at the border of two."""
        one, other = self.positions.get((before.name, before.first)), self.positions.get((after.name, after.first))
        if other is None:
            return False
        return one is not None and self._adjacent(one.file, one.end_at, other)

    def follows_archive(self, first: ArchivedLog) -> bool:
        """The same for the last archived record and the first piece of this run."""
        position = self.positions.get((first.name, first.first))
        return position is not None and self._adjacent(self.continued.file, self.continued.end_at, position)

    def _adjacent(self, file: str, end_at: int, position: PiecePosition) -> bool:
        if file == position.file:
            return end_at == position.joins_at
        names = [log.path.name for log in self.files.logs]
        next_one = position.file in names[1:] and names[names.index(position.file) - 1] == file
        return next_one and position.joins_at == HEADER_BYTES and self.closed_at.get(file) == end_at

    def holds(self, one: ArchivedLog, other: ArchivedLog) -> bool:
        """Whether a piece contains the last record of another one."""
        return is_same(self._run_of(other), self._run_of(one))

    def progress(self) -> MemberProgress:
        newest = max((p.kept for p in self.snapshots.values()), key=lambda s: s.zxid, default=None)
        last = max((p.kept.last for p in self.logs), default=self.continued.kept_to or 0)
        zxid = newest.zxid if newest is not None else 0
        return MemberProgress(
            newest_snapshot=max([zxid, *self._held_snapshots()]),
            fuzzy_end=(newest.fuzzy_end or zxid) if newest is not None else 0,
            last=last,
            cap=self.state.zxid if self.state is not None else None,
            cap_after=self.state_after.zxid if self.state_after is not None else None,
            outrun=self.purged and self._has_hole_after(zxid),
        )

    def _has_hole_after(self, zxid: int) -> bool:
        """Holes from damage do not count: reading again does not resolve them."""
        runs = [(p.kept.first, p.kept.last) for p in self.logs if p.kept.last > zxid]
        made = {d.after_zxid + 1 for damages in self.damage.values() for d in damages}
        before = [] if self.continued.kept_to is None else [(self.continued.kept_to, self.continued.kept_to)]
        return any(hole.last > zxid and hole.first not in made for hole in holes([*before, *runs]))

    def bounded_snapshots(self) -> Iterator[PlacedSnapshot]:
        """If no server runs and no file changes, the end of the logs bounds what a snapshot may contain."""
        last = self.progress().last
        reported = self.reported or (dict.fromkeys(self.snapshots, last) if self.still and last else {})
        bounds = with_bounds([p.kept for p in self.snapshots.values()], reported)
        for placed in self.snapshots.values():
            yield replace(placed, kept=msgspec.structs.replace(placed.kept, bound=bounds[placed.kept.name]))

    def member(self) -> Member:
        state = self.state_after or self.state
        return Member(
            name=self.place.name,
            version=state.version if state else "",
            host=self.place.host,
            data_dir=str(self.files.snapshot_dir) if self.place.origin is FileOrigin.DISK else "",
            log_dir=str(self.files.log_dir) if self.place.origin is FileOrigin.DISK else "",
            role=state.mode if state else "",
            zxid=self.state.zxid if self.state else None,
            current_epoch=self.files.current_epoch,
            accepted_epoch=self.files.accepted_epoch,
            voters=self.voters,
        )

    @property
    def files(self) -> ServerFiles:
        """The last listing, with purged files that are still open."""
        if self.found is None:
            raise RuntimeError("the directories were not listed yet")
        return self.found

    @property
    def has_base(self) -> bool:
        """Whether a restore can start from this member alone: from a snapshot, or from the empty tree.

        Before 3.5 a server writes its first snapshot after many transactions. Its logs go back to the first one.
        """
        runs = [*self.known_logs, *((placed.kept.first, placed.kept.last) for placed in self.logs)]
        return bool(self.snapshots or self.known_snapshots) or any(first in FIRST_EVER for first, _ in runs)

    @property
    def lacks_logs(self) -> bool:
        """A server has a log as soon as it has a transaction: without any, they are in another directory."""
        return not self.files.logs

    def newest_log(self) -> FoundFile | None:
        return self.files.logs[-1] if self.files.logs else None

    def _is_known(self, file: FoundFile) -> bool:
        """A server may write a snapshot again under its old name: only equal bytes are the same snapshot."""
        known = self.known_snapshots.get(file.path.name)
        if known is None or known[0] != file.size_bytes:
            return False
        seen = (str(file.path), file.size_bytes, file.changed_ns)
        if seen not in self.hashed:
            self.hashed[seen] = sha256_of(file.path)
        return self.hashed[seen] == known[1]

    def _log_unit(self, log: LogToRead, cap: int | None, proven: tuple[int, ...]) -> LogCopyUnit:
        return LogCopyUnit(
            path=str(log.file.path),
            pinned=self.open_files.path_of(str(log.file.path)),
            size_bytes=max(log.file.used_bytes - log.start_at, 0),
            member=self.place.name,
            history=self.history,
            new_objects=self.new_objects,
            start_at=log.start_at,
            limit=cap,
            proven=proven,
            tail_from=max(proven, default=0) if cap is None else None,
            largest_record=self.largest_record,
            chunk_bytes=self.chunk_bytes,
            held=self._archived_runs(log.file),
        )

    def _archived_snapshot(self, unit: SnapshotCopyUnit, copied: CopiedSnapshot) -> ArchivedSnapshot:
        assert copied.stored is not None  # noqa: S101 - checked by the caller
        return ArchivedSnapshot(
            member=self.place.name,
            history=self.history,
            name=unit.name,
            zxid=unit.zxid,
            fuzzy_end=copied.fuzzy_end,
            bound=None,
            digest_hex=digest_hex(copied.digest),
            digest_zxid=copied.digest_zxid,
            nodes=copied.nodes,
            size_bytes=copied.stored.plain_bytes,
            sha256=copied.stored.plain_sha256,
            origin=self.place.origin,
        )

    def _archived_log(self, name: str, piece: CopiedPiece, ending: LogFileEnding) -> ArchivedLog:
        return ArchivedLog(
            member=self.place.name,
            history=self.history,
            name=name,
            first=piece.first,
            last=piece.last,
            records=piece.records,
            min_time_ms=piece.min_time_ms,
            max_time_ms=piece.max_time_ms,
            last_adler=piece.last_adler,
            ending=ending,
            proof=piece.proof,
            digests=piece.digests,
            size_bytes=piece.stored.plain_bytes,
            sha256=piece.stored.plain_sha256,
        )


def _ending(log: LogToRead, copied: CopiedLog) -> LogFileEnding:
    """How a file ended. A damaged end of the newest log with nothing after it is a record being written."""
    if not copied.damage:
        return LogFileEnding.CLEAN
    if any(d.resumes_zxid is not None for d in copied.damage):
        return LogFileEnding.DAMAGED
    return LogFileEnding.TORN if log.closed else LogFileEnding.ACTIVE_TAIL


def _joined_files(
    before: Sequence[FoundFile], now: Sequence[FoundFile], open_files: OpenFiles
) -> tuple[FoundFile, ...]:
    names = {file.path.name for file in now}
    purged = [file for file in before if file.path.name not in names and open_files.path_of(str(file.path))]
    return tuple(sorted([*purged, *now], key=lambda file: (file.zxid, file.path.name)))
