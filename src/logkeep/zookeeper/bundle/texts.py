"""The texts `MANIFEST.txt` and `backup.log` of a bundle: the facts of its document, for people. Pure."""

from collections.abc import Iterator
from datetime import datetime

from logkeep.formats.zookeeper.names import hex_zxid
from logkeep.model.redaction import redact
from logkeep.model.time import rfc3339
from logkeep.zookeeper.bundle.document import BackupInfo
from logkeep.zookeeper.model.sink import Gathered


def manifest_text(info: BackupInfo, gathered: Gathered) -> str:
    return "\n".join(_manifest(info, gathered)) + "\n"


def _manifest(info: BackupInfo, gathered: Gathered) -> Iterator[str]:
    server = info.zookeeper
    yield from (
        f"Backup      {info.backup_id}",
        f"Taken       {info.backup_timestamp}",
        f"Up to zxid  {info.backup_zxid.hex} ({info.backup_zxid.decimal})",
        f"ZooKeeper   {server.version or 'unknown version'} {server.role} at {server.host or 'no address'}".rstrip(),
        f"From        {server.data_dir}",
        f"            {server.log_dir}",
        f"Schemes     {', '.join(info.authentication.schemes) or 'none seen'}",
        "",
        f"Snapshots ({len(info.files.snapshots)})",
    )
    yield from (f"  {s.stored_name:<40} {s.size:>14} bytes  {s.checksum}" for s in info.files.snapshots)
    yield from ("", f"Transaction logs ({len(info.files.txnlogs)})")
    for log in info.files.txnlogs:
        yield f"  {log.stored_name:<40} {log.size:>14} bytes  {log.checksum}"
        span = f"{log.start_zxid} to {log.end_zxid}, {log.transaction_count} transactions"
        yield f"    {span}, {log.status} {log.note}".rstrip()
    yield from _configuration(gathered)
    yield from _section("Left out", info.left_out)
    yield from _section("Findings", tuple(f"{f.severity} {f.code}: {f.where}: {f.what}" for f in info.findings))


def _configuration(gathered: Gathered) -> Iterator[str]:
    if gathered.config:
        yield from ("", f"Configuration ({len(gathered.config)})")
        yield from (f"  {c.name}{'  (passwords replaced by ***)' if c.redacted else ''}" for c in gathered.config)


def _section(title: str, lines: tuple[str, ...]) -> Iterator[str]:
    if lines:
        yield from ("", title)
        yield from (f"  {line}" for line in lines)


def log_text(info: BackupInfo, gathered: Gathered, started: datetime, finished: datetime) -> str:
    """One line for each event, without secrets."""
    begun, ended = rfc3339(started), rfc3339(finished)
    lines = [
        f"{begun} backup {info.backup_id} began: {info.zookeeper.data_dir}, {info.zookeeper.log_dir}",
        *(f"{ended} kept snapshot {p.kept.name} at {hex_zxid(p.kept.zxid)}" for p in gathered.snapshots),
        *(
            f"{ended} kept {hex_zxid(p.kept.first)} to {hex_zxid(p.kept.last)} of {p.kept.name}, {p.kept.proof}"
            for p in gathered.logs
        ),
        *(f"{ended} {f.severity} {f.code}: {f.where}: {f.what}" for f in gathered.findings),
        f"{ended} done in {gathered.rounds} rounds, up to {info.backup_zxid.hex}",
    ]
    return redact("\n".join(lines)) + "\n"
