"""Copies objects of earlier backups again that a verification found damaged, if the server still has the same bytes.

The record of a backup has the transactions and the hash of a piece: a copy of the same transactions with the same hash
is that piece, whatever else has changed on the server.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from logkeep.formats.zookeeper.names import SnapshotPacking
from logkeep.model.work import EngineFor
from logkeep.zookeeper.backup.known_records import KnownRecords
from logkeep.zookeeper.backup.log_task import CopiedLog, LogCopyUnit, copy_log
from logkeep.zookeeper.backup.member import MemberRun
from logkeep.zookeeper.backup.server_files import FoundFile
from logkeep.zookeeper.backup.snapshot_task import CopiedSnapshot, SnapshotCopyUnit, copy_snapshot
from logkeep.zookeeper.backup.source_file import RecordMark, mark_in, sha256_of
from logkeep.zookeeper.model.archived import ArchivedLog, ArchivedSnapshot
from logkeep.zookeeper.model.sink import CopiedAgain


@dataclass(frozen=True)
class _Wanted:
    logs: list[tuple[ArchivedLog, LogCopyUnit]]
    snapshots: list[tuple[ArchivedSnapshot, SnapshotCopyUnit]]


def copy_again(
    members: Sequence[MemberRun], damaged: Sequence[ArchivedLog | ArchivedSnapshot], engine_for: EngineFor
) -> list[CopiedAgain]:
    """Those that could be copied again. Nothing is stored of the others."""
    wanted = _units_to_recopy(members, damaged)
    engine = engine_for(sum(u.size_bytes for _, u in wanted.logs) + sum(u.size_bytes for _, u in wanted.snapshots))
    logs = engine.map(
        copy_log, [unit for _, unit in wanted.logs], CopiedLog, label="again", weight=lambda u: u.size_bytes
    )
    snapshots = engine.map(
        copy_snapshot, [u for _, u in wanted.snapshots], CopiedSnapshot, label="again", weight=lambda u: u.size_bytes
    )
    found = [
        *(CopiedAgain(kept, p.stored) for (kept, _), c in zip(wanted.logs, logs, strict=True) for p in c.pieces),
        *(
            CopiedAgain(kept, copied.stored)
            for (kept, _), copied in zip(wanted.snapshots, snapshots, strict=True)
            if copied.stored is not None
        ),
    ]
    return [one for one in found if one.stored.plain_sha256 == one.kept.sha256]


def _units_to_recopy(members: Sequence[MemberRun], damaged: Sequence[ArchivedLog | ArchivedSnapshot]) -> _Wanted:
    wanted = _Wanted([], [])
    for member in members:
        for kept in (one for one in damaged if (one.member, one.history) == (member.place.name, member.history)):
            if isinstance(kept, ArchivedLog):
                wanted.logs.extend((kept, unit) for unit in _log_units(member, kept))
            else:
                wanted.snapshots.extend((kept, unit) for unit in _snapshot_units(member, kept))
    return wanted


def _log_units(member: MemberRun, kept: ArchivedLog) -> Iterator[LogCopyUnit]:
    """Nothing if no log of the server goes back to its first transaction."""
    file = next((log for log in reversed(member.files.logs) if log.zxid <= kept.first), None)
    before = _before(file, kept.first) if file is not None else None
    if file is not None and before is not None:
        path, pinned = str(file.path), member.open_files.path_of(str(file.path))
        yield LogCopyUnit(
            path=path,
            pinned=pinned,
            size_bytes=kept.size_bytes,
            member=kept.member,
            history=kept.history,
            new_objects=member.new_objects,
            start_at=before.end_at,
            held=(KnownRecords(0, kept.first - 1, before.adler, path, pinned),) if before.zxid else (),
            limit=kept.last,
            proven=(kept.last,),
            largest_record=member.largest_record,
            chunk_bytes=member.chunk_bytes,
        )


def _before(file: FoundFile, first: int) -> RecordMark | None:
    """The record directly before a transaction, which may be logged again after it. None: it is missing."""
    return RecordMark(0, 0, 0) if file.zxid == first else mark_in(file.path, first - 1)


def _snapshot_units(member: MemberRun, kept: ArchivedSnapshot) -> Iterator[SnapshotCopyUnit]:
    """Nothing if the file is gone, or was written again."""
    for file in member.files.snapshots:
        if file.path.name == kept.name and sha256_of(file.path) == kept.sha256:
            yield SnapshotCopyUnit(
                path=str(file.path),
                pinned=member.open_files.path_of(str(file.path)),
                name=kept.name,
                zxid=kept.zxid,
                packing=file.name.packing,
                as_is=file.name.packing is not SnapshotPacking.PLAIN,
                size_bytes=kept.size_bytes,
                member=kept.member,
                history=kept.history,
                new_objects=member.new_objects,
            )
