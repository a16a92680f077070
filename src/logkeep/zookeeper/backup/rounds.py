"""The rounds of a backup: list files, copy snapshots, ask the server, copy logs; until nothing is missing.

Files may be purged, logs may roll and records may be half written while this runs: none of it is an error. What is
still missing after the time limit is reported as a finding.
"""

import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field

from logkeep.errors import ClusterError
from logkeep.formats.zookeeper.window import CHUNK_BYTES
from logkeep.model.work import EngineFor
from logkeep.zookeeper.backup.continuity import Continued, check_continuity
from logkeep.zookeeper.backup.log_task import CopiedLog, copy_log
from logkeep.zookeeper.backup.member import MemberRun
from logkeep.zookeeper.backup.round_rules import settled
from logkeep.zookeeper.backup.server_files import FoundFile, MemberPlace, list_files
from logkeep.zookeeper.backup.snapshot_task import CopiedSnapshot, copy_snapshot
from logkeep.zookeeper.backup.verbatim_task import CopiedVerbatim, VerbatimUnit, copy_verbatim
from logkeep.zookeeper.model.sink import BackupSink, DamagedFile, Known
from logkeep.zookeeper.server.four_letter import ServerState

Ask = Callable[[str], ServerState]
"""Raises ClusterError if a server does not answer."""
_PAUSE_S = 0.2
_PROCESSED_WITHIN_S = 10.0
"""Maximum time for a server to process what it has logged: a disk or a majority may be slow."""


@dataclass(frozen=True)
class RoundSettings:
    """How a backup is carried out."""

    engine_for: EngineFor
    ask: Ask
    timeout_s: float = 30.0
    """Maximum time to wait until the logs reach the server's zxid and the end of the newest snapshot."""
    most_rounds: int = 200
    largest_record: int | None = None
    chunk_bytes: int = CHUNK_BYTES
    """Bytes of a log that are read at once."""
    hashed: dict[tuple[str, int, int], str] = field(default_factory=dict)
    """Hashes of snapshots that were compared with archived ones; valid while the files do not change."""
    monotonic: Callable[[], float] = time.monotonic
    sleep: Callable[[float], None] = time.sleep

    def begin(self, members: Sequence[MemberPlace], sink: BackupSink, *, new_history: bool) -> list[MemberRun]:
        """Check that every member continues its history, before anything is copied. Raises HistoryUnproven."""
        known = sink.known
        history = str(int(known.history) + 1) if new_history and known.anything else known.history
        continues = known.anything and not new_history
        return [self._member(place, sink, known if continues else Known(), history) for place in members]

    def run(self, members: Sequence[MemberRun]) -> int:
        """Copy until all members are complete, or the time limit is reached; returns the number of rounds."""
        deadline, number, open_members = self.monotonic() + self.timeout_s, 0, list(members)
        while open_members:
            number += 1
            had = {id(m): len(m.logs) + len(m.snapshots) for m in open_members}
            self._round(open_members)
            open_members = [m for m in open_members if self._needs_more(m, len(m.logs) + len(m.snapshots) > had[id(m)])]
            if open_members and (self.monotonic() >= deadline or number == self.most_rounds):
                break
            if open_members:
                self.sleep(_PAUSE_S)
        return number

    def _member(self, place: MemberPlace, sink: BackupSink, known: Known, history: str) -> MemberRun:
        found = list_files(place)
        continues = check_continuity(place.name, found, known) if known.anything else Continued()
        kept = {name: facts for (member, name), facts in known.snapshots.items() if member == place.name}
        return MemberRun(
            place,
            history,
            sink.new_objects,
            continues,
            kept,
            known.logs.get(place.name, ()),
            self.largest_record,
            self.chunk_bytes,
            hashed=self.hashed,
        )

    def _needs_more(self, member: MemberRun, grew: bool) -> bool:
        """Whether another round may help. Without a running server, waiting changes nothing."""
        if settled(member.progress()) and not _newest_unfinished(member):
            return False
        return grew or (member.state is not None and not member.lacks_logs)

    def _round(self, members: Sequence[MemberRun]) -> None:
        for member in members:
            member.update_files(list_files(member.place))
        self._copy_snapshots(members)
        for member in members:
            member.update_state(self.ask_server(member.place.host))
            member.update_files(list_files(member.place))  # logs roll while snapshots are copied
        self._copy_logs(members)
        unbounded = [member for member in members if self._lags(member)]
        self._copy_logs(unbounded)
        for member in members:
            member.update_files(list_files(member.place))

    def _lags(self, member: MemberRun) -> bool:
        """Whether its zxid is no limit for these logs: it stays below what they held before the server was asked.

        Under load a server does within milliseconds. One that does not is another server, or a member that waits for
        the others; one that no longer answers may have processed all that it has logged.
        """
        if member.state is None:
            return False
        logged, host = member.unprocessed(), member.place.host
        deadline = self.monotonic() + min(self.timeout_s, _PROCESSED_WITHIN_S)
        member.state_after = after = self.ask_server(host)
        while (after is None or after.zxid < logged) and logged and self.monotonic() < deadline:
            self.sleep(_PAUSE_S)
            after = self.ask_server(host)
        if not logged or (after is not None and after.zxid >= logged):
            return False
        if after is None:
            member.forget_answers(None)
        else:
            member.note_lag(after, logged)
        return True

    def _copy_snapshots(self, members: Sequence[MemberRun]) -> None:
        work = [(member, unit) for member in members for unit in member.snapshot_units()]
        units = [unit for _, unit in work]
        engine = self.engine_for(sum(u.size_bytes for u in units))
        copied = engine.map(copy_snapshot, units, CopiedSnapshot, label="snapshots", weight=lambda u: u.size_bytes)
        for (member, unit), result in zip(work, copied, strict=True):
            member.add_snapshot(unit, result)

    def _copy_logs(self, members: Sequence[MemberRun]) -> None:
        work = [(member, log, unit) for member in members for log, unit in member.log_units()]
        units = [unit for *_, unit in work]
        engine = self.engine_for(sum(u.size_bytes for u in units))
        copied = engine.map(copy_log, units, CopiedLog, label="logs", weight=lambda u: u.size_bytes)
        for (member, log, _), result in zip(work, copied, strict=True):
            member.add_log(log, result)
        if again := [member for member in members if member.rereads]:
            self._copy_logs(again)

    def keep_damaged(self, members: Sequence[MemberRun]) -> None:
        """Store damaged files unchanged: a later analysis may find more in them."""
        work = [(m, file, positions) for m in members for file, positions in damaged_files(m)]
        units = [verbatim_unit(m, f) for m, f, _ in work]
        engine = self.engine_for(sum(u.size_bytes for u in units))
        copied = engine.map(copy_verbatim, units, CopiedVerbatim, label="damaged", weight=lambda u: u.size_bytes)
        for (member, file, positions), result in zip(work, copied, strict=True):
            if result.stored is not None:
                found = DamagedFile(
                    member.place.name, member.history, file.path.name, file.zxid, positions, result.stored
                )
                member.damaged.append(found)

    def ask_server(self, host: str) -> ServerState | None:
        try:
            return self.ask(host) if host else None
        except ClusterError:
            return None


def verbatim_unit(member: MemberRun, file: FoundFile) -> VerbatimUnit:
    return VerbatimUnit(
        path=str(file.path),
        pinned=member.open_files.path_of(str(file.path)),
        name=file.path.name,
        zxid=file.zxid,
        size_bytes=file.used_bytes,
        member=member.place.name,
        history=member.history,
        new_objects=member.new_objects,
    )


def damaged_files(member: MemberRun) -> Iterator[tuple[FoundFile, tuple[int, ...]]]:
    """Files with damage that later rounds will not resolve."""
    newest = member.newest_log()
    for log in member.files.logs:
        found = member.damage.get(log.path.name, ())
        lasting = [d.position for d in found if d.resumes_zxid is not None or log != newest]
        lasting += [other.position for other in member.others.get(log.path.name, ())]
        if lasting:
            yield log, tuple(lasting)
    for snapshot in member.files.snapshots[:-1]:
        if snapshot.path.name in member.unusable:
            yield snapshot, ()


def _newest_unfinished(member: MemberRun) -> bool:
    """The newest snapshot cannot be read, and a restore needs it: the server may still be writing it."""
    return bool(member.unusable) and not member.has_base
