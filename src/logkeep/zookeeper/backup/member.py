"""One member on its way into a backup: what was seen of it, what is kept of it, how far its files were read."""

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
from logkeep.zookeeper.backup.open_files import Pins
from logkeep.zookeeper.backup.round_rules import LogWish, MemberProgress, holes, logs_to_read, proven_by, with_bounds
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
from logkeep.zookeeper.model.sink import DamagedFile, PlacedLog, PlacedSnapshot, Shelf
from logkeep.zookeeper.server.four_letter import ServerState


@dataclass(frozen=True)
class Spot:
    """Where a piece lay in a file."""

    file: str
    joins_at: int
    start_at: int
    end_at: int


@dataclass
class MemberRun:
    """Changed by the rounds of one backup, and by nobody else."""

    place: MemberPlace
    history: str
    shelf: Shelf
    continued: Continued
    known_snapshots: Mapping[str, tuple[int, str]]
    """Size and sha256 of those that are kept already, by name."""
    largest_record: int | None = None
    chunk_bytes: int = CHUNK_BYTES
    found: ServerFiles | None = None
    _looked: ServerFiles | None = None
    still: bool = False
    """Nothing changed in its directories while they were copied."""
    state: ServerState | None = None
    state_after: ServerState | None = None
    stranger: ServerState | None = None
    """What another server said that answers in the place of this one: it counts as not asked."""
    overtaken: int | None = None
    """What these logs held before that server was asked, where it did not say as much however long it was waited."""
    lagging: bool = False
    """It may be the right one all the same: a member of an ensemble that waits for the others."""
    snapshots: dict[str, PlacedSnapshot] = field(default_factory=dict)
    told: dict[str, int] = field(default_factory=dict)
    unusable: dict[str, CopiedSnapshot] = field(default_factory=dict)
    """Snapshots whose bytes are none, by name."""
    logs: list[PlacedLog] = field(default_factory=list)
    damage: dict[str, tuple[FoundDamage, ...]] = field(default_factory=dict)
    """By log file. A bad end that had nothing behind it is looked at anew in every round."""
    again: dict[str, tuple[LoggedAgain, ...]] = field(default_factory=dict)
    """By log file: what a server has logged more than once."""
    others: dict[str, tuple[OtherRecords, ...]] = field(default_factory=dict)
    """By log file: what is not kept because it contradicts what is."""
    ends: dict[str, int] = field(default_factory=dict)
    spots: dict[tuple[str, int], Spot] = field(default_factory=dict)
    """Where a piece lay, by its file and its first zxid."""
    closed_at: dict[str, int] = field(default_factory=dict)
    """Files that are whole and that another one follows: where their last record ends."""
    hashed: dict[tuple[str, int, int], str] = field(default_factory=dict)
    """Files that were hashed, by path, size and time: shared by the rounds of a run that follows."""
    schemes: set[str] = field(default_factory=set)
    damaged: list[DamagedFile] = field(default_factory=list)
    pins: Pins = field(default_factory=Pins)
    purged: bool = False
    """Files that were seen lost their names while this runs."""
    voters: int | None = None
    rereads: bool = False
    """A log has some of what others have: it is to be read again without that."""
    _reread: set[str] = field(default_factory=set)

    def __post_init__(self) -> None:
        self._begin_logs()

    def _begin_logs(self) -> None:
        if self.continued.file:
            self.ends[self.continued.file] = self.continued.end_at

    def path_of(self, name: str) -> str:
        """Where a file of this name was seen, for people."""
        return next((str(f.path) for f in (*self.seen.logs, *self.seen.snapshots) if f.path.name == name), name)

    def saw(self, found: ServerFiles) -> None:
        """Once more, maybe: `still` tells whether it was the same as before."""
        self.still = self._looked == found
        self._looked = found
        self.pins.hold((*found.snapshots, *found.logs))
        self.purged = self.purged or self.pins.gone() > 0
        self.found = self._with_purged(found)

    def _with_purged(self, found: ServerFiles) -> ServerFiles:
        """What was purged meanwhile and is still held counts as if it were there."""
        if self.found is None:
            return found
        return replace(
            found,
            snapshots=_joined_files(self.found.snapshots, found.snapshots, self.pins),
            logs=_joined_files(self.found.logs, found.logs, self.pins),
        )

    def snapshot_units(self) -> list[SnapshotCopyUnit]:
        """Those that are not kept yet. One that could not be read is read again: it may have been unfinished."""
        wanted = [f for f in self._seen.snapshots if f.path.name not in self.snapshots and not self._is_known(f)]
        packed = {f.zxid for f in self._seen.snapshots if f.name.packing is not SnapshotPacking.PLAIN}
        return [
            SnapshotCopyUnit(
                path=str(f.path),
                pinned=self.pins.path_of(str(f.path)),
                name=f.path.name,
                zxid=f.zxid,
                packing=f.name.packing,
                as_is=f.name.packing is not SnapshotPacking.PLAIN or f.zxid in packed,
                size_bytes=f.size_bytes,
                member=self.place.name,
                history=self.history,
                shelf=self.shelf,
            )
            for f in wanted
        ]

    def took_snapshot(self, unit: SnapshotCopyUnit, copied: CopiedSnapshot) -> None:
        self.unusable.pop(unit.name, None)
        if copied.outcome is SnapshotCopyOutcome.VANISHED:
            return
        if copied.stored is None:
            self.unusable[unit.name] = copied
        else:
            self.schemes.update(copied.schemes)
            self.snapshots[unit.name] = PlacedSnapshot(self._kept_snapshot(unit, copied), copied.stored)

    def asked(self, state: ServerState | None) -> None:
        """The server's word bounds every snapshot that was whole before it was asked."""
        if state is not None and self.stranger is None and contradicted(state, self._processed()):
            self.disown(state)
        self.state = state if self.stranger is None else None
        state = self.state
        if state is not None:
            for name in self.snapshots:
                self.told.setdefault(name, state.zxid)

    def _processed(self) -> Iterator[int]:
        """What its server is known to have processed."""
        yield self.continued.kept_to or 0
        yield from self._held_snapshots()

    def _held_snapshots(self) -> Iterator[int]:
        """Of snapshots on its disk: those that are kept, by this backup or an earlier one."""
        for file in self._seen.snapshots:
            if file.path.name in self.snapshots or self._is_known(file):
                yield file.zxid

    def unprocessed(self) -> int:
        """Where the log goes on behind the server's word: what it must say soon, if it is its log. 0: nowhere."""
        if self.state is None:
            return 0
        return logged_to(self._seen.logs, self.ends, self.largest_record, self.chunk_bytes)

    def overtakes(self, stranger: ServerState, logged: int) -> None:
        """Its word stays behind what was logged before it was asked."""
        self.overtaken, self.lagging = logged, not processes_all(stranger, self._seen.current_epoch)
        self.disown(stranger)

    def disown(self, stranger: ServerState | None) -> None:
        """Who answered is another server: forget its words, and what was copied by them. The logs are read anew.

        None: nobody answers any more.
        """
        self.stranger, self.state, self.state_after = stranger, None, None
        by_file = (self.damage, self.again, self.others, self.ends, self.closed_at)
        for by_its_word in (self.told, self.logs, self.spots, self._reread, *by_file):
            by_its_word.clear()
        self._begin_logs()

    def log_units(self) -> list[tuple[LogWish, LogCopyUnit]]:
        self.rereads = False
        wishes = logs_to_read(self._seen.logs, self.ends, self.continued.kept_to)
        cap = self.state.zxid if self.state is not None else None
        alone = self.state is not None and self.state.mode == "standalone"
        proven = proven_by((s.kept for s in self.snapshots.values()), cap, alone=alone)
        return [(wish, self._log_unit(wish, cap, proven)) for wish in wishes]

    def took_log(self, wish: LogWish, copied: CopiedLog) -> None:
        name = wish.file.path.name
        if copied.vanished:
            return
        self._refuse_another_past(copied.others)
        end_at = self._new_until(name, copied)
        self.ends[name] = min(copied.end_at, end_at)
        lasting = (d for d in self.damage.get(name, ()) if d.resumes_zxid is not None)
        self.damage[name] = (*lasting, *(d for d in copied.damage if d.position < end_at))
        self.again[name] = tuple(dict.fromkeys([*self.again.get(name, ()), *copied.again]))
        self.others[name] = copied.others
        for piece in (each for each in copied.pieces if each.start_at < end_at):
            kept = self._kept_log(name, piece, _ending(wish, copied))
            self.logs.append(PlacedLog(kept, piece.stored, piece.tail))
            self.spots[name, kept.first] = Spot(name, piece.joins_at, piece.start_at, piece.end_at)
        self.closed_at[name] = copied.closes_at if wish.closed else 0

    def _refuse_another_past(self, others: Sequence[OtherRecords]) -> None:
        """What is archived and what is here are two histories then, however the last records agreed."""
        kept_to = self.continued.kept_to
        contradicting = [other.first for other in others if kept_to is not None and other.first <= kept_to]
        if contradicting:
            raise unproven(self.place.name, contradicting[0], CONTRADICTED)

    def _new_until(self, name: str, copied: CopiedLog) -> int:
        """Where in the file a piece begins that has something kept already: from there on it is read again, once."""
        for piece in copied.pieces:
            has_kept = any(p.kept.first <= piece.last and piece.first <= p.kept.last for p in self.logs)
            if has_kept and name not in self._reread:
                self._reread.add(name)
                self.rereads = True
                return piece.start_at
        return copied.end_at + 1

    def _held(self, file: FoundFile) -> tuple[KnownRecords, ...]:
        """What is kept already and may come again in a file."""
        runs = [self._run_of(p.kept) for p in self.logs]
        if self.continued.kept_to is not None:
            runs += archived_runs(file, self._seen.logs, self.continued, self.pins)
        return tuple(runs)

    def _run_of(self, kept: ArchivedLog) -> KnownRecords:
        spot, paths = self.spots[kept.name, kept.first], {log.path.name: str(log.path) for log in self._seen.logs}
        path = paths.get(kept.name, "")
        return KnownRecords(kept.first, kept.last, kept.last_adler, path, self.pins.path_of(path), spot.start_at)

    def side_by_side(self, before: ArchivedLog, after: ArchivedLog) -> bool:
        """Whether two pieces lay one right behind the other: in one file, or at the border of two."""
        one, other = self.spots.get((before.name, before.first)), self.spots.get((after.name, after.first))
        if other is None:
            return False
        return one is not None and self._joined(one.file, one.end_at, other)

    def follows_archive(self, first: ArchivedLog) -> bool:
        """The same for the last archived record and the first piece of this run."""
        spot = self.spots.get((first.name, first.first))
        return spot is not None and self._joined(self.continued.file, self.continued.end_at, spot)

    def _joined(self, file: str, end_at: int, spot: Spot) -> bool:
        if file == spot.file:
            return end_at == spot.joins_at
        names = [log.path.name for log in self._seen.logs]
        next_one = spot.file in names[1:] and names[names.index(spot.file) - 1] == file
        return next_one and spot.joins_at == HEADER_BYTES and self.closed_at.get(file) == end_at

    def holds(self, one: ArchivedLog, other: ArchivedLog) -> bool:
        """Whether a piece holds the last record of another one, the same."""
        return is_same(self._run_of(other), self._run_of(one))

    def standing(self) -> MemberProgress:
        newest = max((p.kept for p in self.snapshots.values()), key=lambda s: s.zxid, default=None)
        last = max((p.kept.last for p in self.logs), default=self.continued.kept_to or 0)
        zxid = newest.zxid if newest is not None else 0
        return MemberProgress(
            newest_snapshot=max([zxid, *self._held_snapshots()]),
            fuzzy_end=(newest.fuzzy_end or zxid) if newest is not None else 0,
            last=last,
            cap=self.state.zxid if self.state is not None else None,
            cap_after=self.state_after.zxid if self.state_after is not None else None,
            outrun=self.purged and self._has_hole_behind(zxid),
        )

    def _has_hole_behind(self, zxid: int) -> bool:
        """Not one that damage made: no newer look mends that."""
        runs = [(p.kept.first, p.kept.last) for p in self.logs if p.kept.last > zxid]
        made = {d.after_zxid + 1 for damages in self.damage.values() for d in damages}
        before = [] if self.continued.kept_to is None else [(self.continued.kept_to, self.continued.kept_to)]
        return any(hole.last > zxid and hole.first not in made for hole in holes([*before, *runs]))

    def bounded_snapshots(self) -> Iterator[PlacedSnapshot]:
        """Where no server runs and no file changes, the end of the logs bounds what a snapshot may hold."""
        last = self.standing().last
        told = self.told or (dict.fromkeys(self.snapshots, last) if self.still and last else {})
        bounds = with_bounds([p.kept for p in self.snapshots.values()], told)
        for placed in self.snapshots.values():
            yield replace(placed, kept=msgspec.structs.replace(placed.kept, bound=bounds[placed.kept.name]))

    def member(self) -> Member:
        state = self.state_after or self.state
        return Member(
            name=self.place.name,
            version=state.version if state else "",
            host=self.place.host,
            data_dir=str(self._seen.snapshot_dir) if self.place.origin is FileOrigin.DISK else "",
            log_dir=str(self._seen.log_dir) if self.place.origin is FileOrigin.DISK else "",
            role=state.mode if state else "",
            zxid=self.state.zxid if self.state else None,
            current_epoch=self._seen.current_epoch,
            accepted_epoch=self._seen.accepted_epoch,
            voters=self.voters,
        )

    @property
    def seen(self) -> ServerFiles:
        return self._seen

    @property
    def _seen(self) -> ServerFiles:
        if self.found is None:
            raise RuntimeError("nobody has looked yet")
        return self.found

    @property
    def lacks_logs(self) -> bool:
        """A server has a log as soon as it has a transaction: they lie in another directory."""
        return not self._seen.logs

    def newest_log(self) -> FoundFile | None:
        return self._seen.logs[-1] if self._seen.logs else None

    def _is_known(self, file: FoundFile) -> bool:
        """A snapshot may be written anew under its old name: only the same bytes are the same snapshot."""
        known = self.known_snapshots.get(file.path.name)
        if known is None or known[0] != file.size_bytes:
            return False
        seen = (str(file.path), file.size_bytes, file.changed_ns)
        if seen not in self.hashed:
            self.hashed[seen] = sha256_of(file.path)
        return self.hashed[seen] == known[1]

    def _log_unit(self, wish: LogWish, cap: int | None, proven: tuple[int, ...]) -> LogCopyUnit:
        return LogCopyUnit(
            path=str(wish.file.path),
            pinned=self.pins.path_of(str(wish.file.path)),
            size_bytes=max(wish.file.used_bytes - wish.start_at, 0),
            member=self.place.name,
            history=self.history,
            shelf=self.shelf,
            start_at=wish.start_at,
            limit=cap,
            proven=proven,
            tail_from=max(proven, default=0) if cap is None else None,
            largest_record=self.largest_record,
            chunk_bytes=self.chunk_bytes,
            held=self._held(wish.file),
        )

    def _kept_snapshot(self, unit: SnapshotCopyUnit, copied: CopiedSnapshot) -> ArchivedSnapshot:
        assert copied.stored is not None  # noqa: S101 - asked by the caller
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

    def _kept_log(self, name: str, piece: CopiedPiece, ending: LogFileEnding) -> ArchivedLog:
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


def _ending(wish: LogWish, copied: CopiedLog) -> LogFileEnding:
    """What ended a file. A bad end with nothing good behind it, in the newest log, is a record being written."""
    if not copied.damage:
        return LogFileEnding.CLEAN
    if any(d.resumes_zxid is not None for d in copied.damage):
        return LogFileEnding.DAMAGED
    return LogFileEnding.TORN if wish.closed else LogFileEnding.ACTIVE_TAIL


def _joined_files(before: Sequence[FoundFile], now: Sequence[FoundFile], pins: Pins) -> tuple[FoundFile, ...]:
    names = {file.path.name for file in now}
    purged = [file for file in before if file.path.name not in names and pins.path_of(str(file.path))]
    return tuple(sorted([*purged, *now], key=lambda file: (file.zxid, file.path.name)))
