"""What a backup keeps of an ensemble besides its files: members, and of each file what its segment row cannot say.

One document per backup, pinned by its manifest under the role `ensemble`.
"""

from collections.abc import Iterable
from typing import ClassVar

import msgspec

from logkeep.errors import Damaged
from logkeep.model.ids import StoredId
from logkeep.model.segments import Collection, LogName, Position, Segment, Token
from logkeep.repository.documents import MIB, SourceDocument
from logkeep.zookeeper.kept import Ending, KeptLog, KeptSnapshot, Member
from logkeep.zookeeper.sink import Known, PlacedLog, PlacedSnapshot, Reached

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


class LogRecord(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True, omit_defaults=True):
    token: Token
    member: str
    history: str
    name: str
    first: Position
    last: Position
    last_adler: Position
    ending: Ending = Ending.CLEAN


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
    )


def log_record(placed: PlacedLog) -> LogRecord:
    kept = placed.kept
    return LogRecord(
        token=placed.stored.token,
        member=kept.member,
        history=kept.history,
        name=kept.name,
        first=kept.first,
        last=kept.last,
        last_adler=kept.last_adler,
        ending=kept.ending,
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
    )


def kept_snapshot(record: SnapshotRecord, row: Segment) -> KeptSnapshot:
    return KeptSnapshot(
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
    )


def kept_log(record: LogRecord, row: Segment) -> KeptLog:
    return KeptLog(
        member=record.member,
        history=record.history,
        name=record.name,
        first=record.first,
        last=record.last,
        records=row.records,
        min_time_ms=row.base_time_ms,
        max_time_ms=row.max_time_ms,
        last_adler=record.last_adler,
        ending=record.ending,
        proof=row.proof,
        size_bytes=row.plain_bytes,
        sha256=row.plain_sha256,
    )


def rows_by_token(rows: Iterable[Segment], wanted: Iterable[str], subject: str) -> dict[str, Segment]:
    """The row of every record. Raises Damaged when one has none: the two documents do not belong together."""
    found = {row.token: row for row in rows}
    missing = next((token for token in wanted if token not in found), None)
    if missing is not None:
        raise Damaged(f"the record names an object {missing} that the backup does not have", subject=subject)
    return found


def log_of(collection: Collection, member: str, history: str) -> LogName:
    return LogName(collection, member, history, 0)


def known_from(record: EnsembleRecord | None) -> Known:
    """What the newest backup means for the next one."""
    if record is None:
        return Known()
    logs = sorted((r for r in record.logs if r.history == record.history), key=lambda r: r.last, reverse=True)
    reached: dict[str, Reached] = {}
    for one in logs:
        reached.setdefault(one.member, Reached(one.history, one.last, one.last_adler))
    return Known(
        history=record.history,
        reached=reached,
        marks=tuple((one.last, one.last_adler) for one in logs),
        snapshots=frozenset((s.member, s.name) for s in record.snapshots if s.history == record.history),
        anything=True,
    )
