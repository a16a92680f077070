"""Build the document of a bundle from the gathered files. Pure."""

from collections.abc import Collection, Sequence
from datetime import datetime
from pathlib import PurePath

from logkeep.formats.zookeeper.names import hex_or_none, hex_zxid, log_name
from logkeep.model.findings import Finding
from logkeep.model.segments import Codec, Proof
from logkeep.repository.object_writer import StoredObject
from logkeep.zookeeper.backup.findings import exit_code
from logkeep.zookeeper.bundle import layout
from logkeep.zookeeper.bundle.document import (
    Authentication,
    BackupInfo,
    DamagedEntry,
    Files,
    LogEntry,
    Server,
    SnapshotEntry,
    Statistics,
    Validation,
    ZxidField,
)
from logkeep.zookeeper.model.archived import ArchivedLog, LogFileEnding, Member
from logkeep.zookeeper.model.sink import DamagedFile, Gathered, PlacedLog, PlacedSnapshot

_REPAIRED = frozenset({"header-rewritten", "torn-tail"})
_BROKEN = frozenset({"snapshot-damaged", "lost-transactions"})


def stored_names(gathered: Gathered) -> dict[str, str]:
    """The temporary names of stored files → their names in the bundle."""
    snapshots = {p.stored.name: f"{layout.SNAPSHOTS}/{_stored_snapshot(p)}" for p in gathered.snapshots}
    logs = {p.stored.name: f"{layout.TXNLOGS}/{_stored_log(p)}" for p in gathered.logs}
    damaged = {d.stored.name: f"{layout.DAMAGED}/{d.name}" for d in gathered.damaged}
    return {**snapshots, **logs, **damaged}


def info_of(gathered: Gathered, backup_id: str, started: datetime, took_s: float, codec: Codec) -> BackupInfo:
    stored = [*(p.stored for p in gathered.snapshots), *(p.stored for p in gathered.logs)]
    rewritten = _rewritten(gathered.findings)
    return BackupInfo(
        backup_id=backup_id,
        backup_timestamp=started.isoformat(timespec="seconds"),
        backup_zxid=ZxidField(hex_zxid(gathered.backup_zxid), gathered.backup_zxid),
        zookeeper=_server(gathered.members[0]),
        files=Files(
            snapshots=tuple(_snapshot(p) for p in gathered.snapshots),
            txnlogs=tuple(_log(p, rewritten) for p in gathered.logs),
            config=tuple(c.name for c in gathered.config),
            damaged=tuple(_damaged(d) for d in gathered.damaged),
        ),
        validation=_validation(gathered),
        statistics=Statistics(
            total_size=sum(s.plain_bytes for s in stored),
            compressed_size=sum(s.size_bytes for s in stored),
            duration_seconds=round(took_s, 3),
        ),
        compression=codec,
        history=gathered.history,
        authentication=Authentication(schemes=tuple(gathered.schemes)),
        left_out=tuple(gathered.left_out),
        findings=tuple(gathered.findings),
        exit_code=exit_code(gathered.findings),
    )


def _damaged(found: DamagedFile) -> DamagedEntry:
    stored = found.stored
    return DamagedEntry(
        name=found.name, size=stored.plain_bytes, checksum=f"sha256:{stored.plain_sha256}", positions=found.positions
    )


def _server(member: Member) -> Server:
    return Server(
        version=member.version,
        host=member.host,
        data_dir=member.data_dir,
        log_dir=member.log_dir,
        member=member.name,
        role=member.role,
        zxid=hex_or_none(member.zxid),
        current_epoch=member.current_epoch,
        accepted_epoch=member.accepted_epoch,
        voters=member.voters,
    )


def _validation(gathered: Gathered) -> Validation:
    """Counts what the checks during the copy found. Only reading the files back shows what is on the disk."""
    kept = len(gathered.snapshots) + len(gathered.logs)
    lost = len({f.where for f in gathered.findings if f.code == "snapshot-damaged"})
    repaired = len({f.where for f in gathered.findings if f.code in _REPAIRED})
    broken = len({f.where for f in gathered.findings if f.code in _BROKEN})
    return Validation(
        enabled=False,
        total_files=kept + lost,
        valid_files=max(kept + lost - broken - repaired, 0),
        corrupted_files=broken + repaired,
        repaired_files=repaired,
        unrecoverable_files=broken,
    )


def damaged_at_source(findings: Sequence[Finding]) -> tuple[int, int]:
    """How many files of the server were damaged, and how many could be repaired in the backup. A torn end is no damage:
    a server leaves it when it is killed."""
    files = [finding for finding in findings if not finding.where.startswith("member ")]
    broken = {finding.where for finding in files if finding.code in _BROKEN}
    rewritten = {finding.where for finding in files if finding.code == "header-rewritten"}
    return len(broken), len(rewritten - broken)


def _snapshot(placed: PlacedSnapshot) -> SnapshotEntry:
    kept, stored = placed.kept, placed.stored
    return SnapshotEntry(
        name=kept.name,
        zxid=hex_zxid(kept.zxid),
        size=kept.size_bytes,
        checksum=f"sha256:{kept.sha256}",
        stored_name=_stored_snapshot(placed),
        stored_size=stored.size_bytes,
        stored_checksum=f"sha256:{stored.sha256}",
        fuzzy_end=hex_or_none(kept.fuzzy_end),
        bound=hex_or_none(kept.bound),
        digest=hex_or_none(kept.digest),
        digest_zxid=hex_zxid(kept.digest_zxid),
        nodes=kept.nodes,
        origin=kept.origin,
    )


def _rewritten(findings: Sequence[Finding]) -> set[str]:
    """Names of logs with no damage but in the header."""
    of = {code: {PurePath(f.where).name for f in findings if f.code == code} for code in {f.code for f in findings}}
    return of.get("header-rewritten", set()) - of.get("lost-transactions", set()) - of.get("held-elsewhere", set())


def _log(placed: PlacedLog, rewritten: Collection[str]) -> LogEntry:
    status, note = _HEADER_REWRITTEN if placed.kept.name in rewritten else _status(placed.kept)
    return log_entry(placed.kept, placed.stored, _stored_log(placed), status=status, note=note)


def log_entry(kept: ArchivedLog, stored: StoredObject, stored_name: str, *, status: str, note: str) -> LogEntry:
    return LogEntry(
        name=log_name(kept.first),
        start_zxid=hex_zxid(kept.first),
        end_zxid=hex_zxid(kept.last),
        size=kept.size_bytes,
        status=status,
        transaction_count=kept.records,
        checksum=f"sha256:{kept.sha256}",
        stored_name=stored_name,
        stored_size=stored.size_bytes,
        stored_checksum=f"sha256:{stored.sha256}",
        source_name=kept.name,
        min_time_ms=kept.min_time_ms,
        max_time_ms=kept.max_time_ms,
        last_adler=kept.last_adler,
        ending=kept.ending,
        proof=kept.proof,
        borders=tuple((hex_zxid(a), hex_zxid(b)) for a, b in kept.borders),
        digests=kept.digests,
        note=note,
    )


_HEADER_REWRITTEN = ("repaired", "Its header was damaged and was written anew; every record is here")


def _status(kept: ArchivedLog) -> tuple[str, str]:
    if kept.proof is Proof.UNPROVEN and kept.ending is LogFileEnding.CLEAN:
        return "valid", "Nothing here proves that these transactions were committed"
    return {
        LogFileEnding.CLEAN: ("valid", ""),
        LogFileEnding.ACTIVE_TAIL: ("truncated", "A record was being written; everything before it is here"),
        LogFileEnding.TORN: ("truncated", "The file ends within a record"),
        LogFileEnding.DAMAGED: ("damaged", "Something is wrong in the file; this is what could be read in one run"),
    }[kept.ending]


def _stored_snapshot(placed: PlacedSnapshot) -> str:
    return f"{placed.kept.name}{placed.stored.codec.suffix}"


def _stored_log(placed: PlacedLog) -> str:
    return f"{log_name(placed.kept.first)}{placed.stored.codec.suffix}"
