"""What a backup keeps of an ensemble besides its files: members, and of each file what its segment row cannot say.

One document per backup, pinned by its manifest under the role `ensemble`.
"""

from typing import ClassVar

import msgspec

from logkeep.model.ids import StoredId
from logkeep.model.segments import Collection, LogName, Position, Segment, Sha256, Token
from logkeep.repository.chain.documents import MIB, SourceDocument
from logkeep.zookeeper.model.archived import ArchivedLog, ArchivedSnapshot, FileOrigin, LogFileEnding, Member
from logkeep.zookeeper.model.sink import DamagedFile, Known, MemberReach, PlacedLog, PlacedSnapshot

ROLE = "ensemble"
KIND = "zookeeper"


class MemberRecord(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True, omit_defaults=True):
    name: str
    version: str = ""
    host: str = ""
    data_dir: str = ""
    log_dir: str = ""
    role: str = ""
    zxid: Position | None = None
    current_epoch: int | None = None
    accepted_epoch: int | None = None
    voters: int | None = None
    mntr: str = ""
    stat: str = ""
    conf: str = ""


class SnapshotRecord(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True, omit_defaults=True):
    token: Token
    """Of its object."""
    member: str
    history: str
    name: str
    zxid: Position
    fuzzy_end: Position | None = None
    bound: Position | None = None
    digest: str = ""
    """Hexadecimal: it has 64 bits, which not every reader of JSON can hold. Empty: none."""
    digest_zxid: Position = 0
    nodes: Position = 0
    size: Position
    sha256: Sha256
    """Of the file, so that the same name is not taken for the same file."""
    origin: FileOrigin = FileOrigin.DISK


class LogRecord(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True, omit_defaults=True):
    token: Token
    member: str
    history: str
    name: str
    first: Position
    last: Position
    last_adler: Position
    max_time_ms: int
    ending: LogFileEnding = LogFileEnding.CLEAN
    borders: tuple[tuple[Position, Position], ...] = ()
    digests: bool | None = None
    apart: str = ""
    """The history that its object is stored under, where no server said that it is committed: nothing continues it."""
    size: Position = 0
    """Of the piece, and the rest of what the row of its object says while it has one of its own; 0: only that does."""
    sha256: Sha256 | None = None
    records: Position = 0
    min_time_ms: int = 0


class DamagedRecord(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True, omit_defaults=True):
    """A file that is not whole, kept as it was found."""

    token: Token
    member: str
    name: str
    zxid: Position
    positions: tuple[int, ...] = ()


class ConfigRecord(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    name: str
    content: bytes
    redacted: bool


class EnsembleRecord(SourceDocument, frozen=True, kw_only=True, tag="zookeeper-ensemble"):
    limit: ClassVar[int] = 64 * MIB

    id: StoredId
    history: str
    backup_zxid: Position
    members: tuple[MemberRecord, ...]
    snapshots: tuple[SnapshotRecord, ...]
    logs: tuple[LogRecord, ...]
    damaged: tuple[DamagedRecord, ...] = ()
    schemes: tuple[str, ...] = ()
    config: tuple[ConfigRecord, ...] = ()
    left_out: tuple[str, ...] = ()


def snapshot_record(placed: PlacedSnapshot) -> SnapshotRecord:
    kept = placed.kept
    return SnapshotRecord(
        token=placed.stored.token,
        member=kept.member,
        history=kept.history,
        name=kept.name,
        zxid=kept.zxid,
        fuzzy_end=kept.fuzzy_end,
        bound=kept.bound,
        digest="" if kept.digest is None else f"{kept.digest:016x}",
        digest_zxid=kept.digest_zxid,
        nodes=kept.nodes,
        size=kept.size_bytes,
        sha256=kept.sha256,
        origin=kept.origin,
    )


def log_record(placed: PlacedLog, apart: str) -> LogRecord:
    """`apart`: where tails are stored."""
    kept = placed.kept
    return LogRecord(
        token=placed.stored.token,
        member=kept.member,
        history=kept.history,
        name=kept.name,
        first=kept.first,
        last=kept.last,
        last_adler=kept.last_adler,
        max_time_ms=kept.max_time_ms,
        ending=kept.ending,
        borders=kept.borders,
        digests=kept.digests,
        apart=apart if placed.tail else "",
        size=kept.size_bytes,
        sha256=kept.sha256,
        records=kept.records,
        min_time_ms=kept.min_time_ms,
    )


def damaged_record(found: DamagedFile) -> DamagedRecord:
    return DamagedRecord(
        token=found.stored.token, member=found.member, name=found.name, zxid=found.zxid, positions=found.positions
    )


def member_of(record: MemberRecord) -> Member:
    return Member(
        name=record.name,
        version=record.version,
        host=record.host,
        data_dir=record.data_dir,
        log_dir=record.log_dir,
        role=record.role,
        zxid=record.zxid,
        current_epoch=record.current_epoch,
        accepted_epoch=record.accepted_epoch,
        voters=record.voters,
    )


def kept_snapshot(record: SnapshotRecord, row: Segment) -> ArchivedSnapshot:
    return ArchivedSnapshot(
        member=record.member,
        history=record.history,
        name=record.name,
        zxid=record.zxid,
        fuzzy_end=record.fuzzy_end,
        bound=record.bound,
        digest=int(record.digest, 16) if record.digest else None,
        digest_zxid=record.digest_zxid,
        nodes=record.nodes,
        size_bytes=row.plain_bytes,
        sha256=row.plain_sha256,
        origin=record.origin,
    )


def kept_log(record: LogRecord, row: Segment) -> ArchivedLog:
    """`row`: of the object that it lies in, which may hold more."""
    own = record.token == row.token
    return ArchivedLog(
        member=record.member,
        history=record.history,
        name=record.name,
        first=record.first,
        last=record.last,
        records=row.records if own else record.records,
        min_time_ms=row.base_time_ms if own else record.min_time_ms,
        max_time_ms=row.max_time_ms if own else record.max_time_ms,
        last_adler=record.last_adler,
        ending=record.ending,
        proof=row.proof,
        size_bytes=row.plain_bytes if own else record.size,
        sha256=row.plain_sha256 if own else record.sha256 or "",
        borders=record.borders,
        digests=record.digests,
    )


def log_of(collection: Collection, member: str, history: str) -> LogName:
    return LogName(collection, member, history, 0)


def known_from(record: EnsembleRecord | None) -> Known:
    """What the newest backup means for the next one."""
    if record is None:
        return Known()
    held = sorted((r for r in record.logs if r.history == record.history), key=lambda r: r.last, reverse=True)
    logs = [r for r in held if not r.apart] or held
    reached: dict[str, MemberReach] = {}
    for one in (r for r in logs if not r.apart):
        reached.setdefault(one.member, MemberReach(one.history, one.last, one.last_adler))
    runs: dict[str, list[tuple[int, int]]] = {}
    for one in (r for r in held if not r.apart):  # what may be rewritten is not carried over to the next backup
        runs.setdefault(one.member, []).append((one.first, one.last))
    return Known(
        history=record.history,
        logs=runs,
        reached=reached,
        marks=tuple((one.last, one.last_adler) for one in logs),
        snapshots={(s.member, s.name): (s.size, s.sha256) for s in record.snapshots if s.history == record.history},
        anything=True,
    )
