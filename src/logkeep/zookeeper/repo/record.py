"""What a backup keeps of an ensemble besides its files: members, and of each file what its segment row cannot say.

One document per backup, pinned by its manifest under the role `ensemble`.
"""

from typing import ClassVar

import msgspec

from logkeep.model.ids import StoredId
from logkeep.model.segments import Collection, LogName, Position, Proof, Token
from logkeep.repository.chain.documents import MIB, SourceDocument
from logkeep.zookeeper.model.archived import ArchivedLog, ArchivedSnapshot, Member
from logkeep.zookeeper.model.sink import DamagedFile, Known, MemberReach, PlacedLog, PlacedSnapshot

ROLE = "ensemble"
KIND = "zookeeper"


class MemberRecord(Member, frozen=True, kw_only=True, forbid_unknown_fields=True, omit_defaults=True):
    mntr: str = ""
    stat: str = ""
    conf: str = ""


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
    snapshots: tuple[ArchivedSnapshot, ...]
    logs: tuple[ArchivedLog, ...]
    damaged: tuple[DamagedRecord, ...] = ()
    schemes: tuple[str, ...] = ()
    config: tuple[ConfigRecord, ...] = ()
    left_out: tuple[str, ...] = ()

    def __post_init__(self) -> None:
        if not all(s.token for s in self.snapshots) or not all(log.token for log in self.logs):
            raise ValueError("a snapshot or log without the token of its object")


def snapshot_record(placed: PlacedSnapshot) -> ArchivedSnapshot:
    return msgspec.structs.replace(placed.kept, token=placed.stored.token)


def log_record(placed: PlacedLog, apart: str) -> ArchivedLog:
    """`apart`: where tails are stored."""
    return msgspec.structs.replace(placed.kept, token=placed.stored.token, apart=apart if placed.tail else "")


def without_proof(log: ArchivedLog) -> ArchivedLog:
    """As a record stores it: the row of its object says how well it is proven."""
    return msgspec.structs.replace(log, proof=Proof.UNPROVEN)


def damaged_record(found: DamagedFile) -> DamagedRecord:
    return DamagedRecord(
        token=found.stored.token, member=found.member, name=found.name, zxid=found.zxid, positions=found.positions
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
        snapshots={
            (s.member, s.name): (s.size_bytes, s.sha256) for s in record.snapshots if s.history == record.history
        },
        anything=True,
    )
