"""The contents of a backup of an ensemble, from its record alone: members, their transactions, configuration files."""

from collections.abc import Mapping

import msgspec

from logkeep.formats.zookeeper.names import hex_or_none, hex_zxid
from logkeep.model.segments import Proof, Segment
from logkeep.zookeeper.repo.record import EnsembleRecord, MemberRecord


class MemberReport(msgspec.Struct, frozen=True, kw_only=True):
    name: str
    role: str
    """Empty when no server answered."""
    version: str
    host: str
    zxid: str | None
    """The last transaction that the server reported as processed."""
    snapshots: int
    newest_snapshot: str | None
    logs: int
    """Pieces of logs."""
    transactions: int
    first: str | None
    """Of the archived transactions."""
    last: str | None
    oldest_ms: int | None
    newest_ms: int | None
    unproven_from: str | None
    """From here on it was not checked whether the transactions were committed."""
    bytes: int
    """Plain."""


class ZooKeeperReport(msgspec.Struct, frozen=True, kw_only=True):
    history: str
    backup_zxid: str
    members: tuple[MemberReport, ...]
    reachable: tuple[str, ...]
    """Intervals whose every transaction can be restored to, according to the record; `verify` proves it."""
    schemes: tuple[str, ...]
    """Authentication schemes in the ACLs."""
    config: tuple[str, ...]
    """Archived configuration files."""
    left_out: tuple[str, ...]


def report(record: EnsembleRecord, rows: Mapping[str, Segment]) -> ZooKeeperReport:
    from logkeep.zookeeper.repo.reachable import intervals_of  # noqa: PLC0415 - needs Arrow

    reachable = [str(i) for intervals in intervals_of(record).values() for i in intervals]
    return ZooKeeperReport(
        history=record.history,
        backup_zxid=hex_zxid(record.backup_zxid),
        members=tuple(_member(member, record, rows) for member in record.members),
        reachable=tuple(reachable),
        schemes=record.schemes,
        config=tuple(config.name for config in record.config),
        left_out=record.left_out,
    )


def _member(member: MemberRecord, record: EnsembleRecord, rows: Mapping[str, Segment]) -> MemberReport:
    snapshots = [each for each in record.snapshots if each.member == member.name]
    logs = [each for each in record.logs if each.member == member.name]
    kept = [rows[each.token] for each in logs]
    newest = max((each.zxid for each in snapshots), default=None)
    return MemberReport(
        name=member.name,
        role=member.role,
        version=member.version,
        host=member.host,
        zxid=hex_or_none(member.zxid),
        snapshots=len(snapshots),
        newest_snapshot=hex_or_none(newest),
        logs=len(logs),
        transactions=sum(row.records for row in kept),
        first=hex_or_none(min((each.first for each in logs), default=None)),
        last=hex_or_none(max((each.last for each in logs), default=None)),
        oldest_ms=min((row.base_time_ms for row in kept), default=None),
        newest_ms=max((row.max_time_ms for row in kept), default=None),
        unproven_from=hex_or_none(min((row.first for row in kept if row.proof is Proof.UNPROVEN), default=None)),
        bytes=sum(row.plain_bytes for row in [*kept, *(rows[each.token] for each in snapshots)]),
    )
