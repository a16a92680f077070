"""What `zkbackup backup` says when it is done. Pure."""

import shlex
from pathlib import Path

from logkeep.cli.terminal.boxes import BAD, FAIR, GOOD, condition_word, told
from logkeep.cli.terminal.text import TerminalStyle, count, duration, plural, size
from logkeep.cli.zkbackup.findings_text import finding_lines
from logkeep.formats.zookeeper.names import hex_zxid
from logkeep.model.findings import Finding
from logkeep.zookeeper.backup.run import ZooKeeperBackupDone
from logkeep.zookeeper.model.sink import Gathered
from logkeep.zookeeper.verify.recorded_losses import is_of_the_backup
from logkeep.zookeeper.verify.verdict import Judged

_OUTCOMES = {
    0: f"{GOOD} Backup completed",
    2: f"{FAIR} Backup completed, with warnings",
    10: f"{BAD} Backup written, but a file in it is damaged",
    21: f"{BAD} Backup written, but transactions are lost",
}
_NOT_RESTORABLE = f"{BAD} Backup written, but it cannot be restored"
_BY_HAND = "keytabs are never copied; key stores, private keys and passwords only with --include-secrets"


def backup_text(
    bundle: Path,
    done: ZooKeeperBackupDone,
    checked: Judged,
    took_s: float,
    code: int,
    look: TerminalStyle,
    *,
    with_config: bool,
) -> str:
    """`with_config`: the server's configuration was to be kept too."""
    gathered = done.gathered
    lines = [
        f"{_outcome(checked, code)}: {done.name}",
        "",
        f"Directory:  {bundle}",
        *_facts(gathered, took_s),
        f"Status:     {_status(checked)}, quality {checked.score}/100 (level {checked.level})",
        *_configuration(gathered, with_config),
        *finding_lines([*gathered.findings, *_new(checked, gathered)]),
        "",
        "Next steps:",
        f"  zkbackup verify --backup-dir {shlex.quote(str(bundle))}",
        f"  zkbackup info {done.name} --backup-base-dir {shlex.quote(str(bundle.parent))}",
    ]
    return told("\n".join(lines), look)


def _new(checked: Judged, gathered: Gathered) -> list[Finding]:
    return [finding for finding in checked.new_to(gathered.findings) if not is_of_the_backup(finding)]


def _outcome(checked: Judged, code: int) -> str:
    return _NOT_RESTORABLE if code == 10 and not checked.restorable else _OUTCOMES[code]


def _status(checked: Judged) -> str:
    return condition_word(checked.condition, unproven_end=checked.unproven_end, read_back=checked.verified.reads_data)


def _facts(gathered: Gathered, took_s: float) -> list[str]:
    member = gathered.members[0]
    stored = [*(placed.stored for placed in gathered.snapshots), *(placed.stored for placed in gathered.logs)]
    plain, kept = sum(s.plain_bytes for s in stored), sum(s.size_bytes for s in stored)
    transactions = sum(placed.kept.records for placed in gathered.logs)
    server = f"{member.version} ({member.role}) at {member.host}" if member.version else f"no answer from {member.host}"
    return [
        f"ZXID:       {hex_zxid(gathered.backup_zxid)} ({gathered.backup_zxid})",
        f"ZooKeeper:  {server}",
        f"Snapshots:  {len(gathered.snapshots)}",
        f"Logs:       {len(gathered.logs)} with {plural(transactions, 'transaction')}",
        f"Size:       {size(plain)}, stored {size(kept)}",
        f"Took:       {duration(took_s)} in {plural(gathered.rounds, 'round')}",
        f"Schemes:    {', '.join(gathered.schemes) or 'none seen'} (in ACLs)",
    ]


def _configuration(gathered: Gathered, wanted: bool) -> list[str]:
    if not wanted:
        return ["Config:     not kept; --include-config keeps zoo.cfg, myid and the like"]
    redacted = sum(file.redacted for file in gathered.config)
    kept = f"Config:     {plural(len(gathered.config), 'file')} kept, passwords replaced in {count(redacted)}"
    left = [f"  left out: {line}" for line in gathered.left_out]
    return [kept, *left, f"            keep what is secret yourself: {_BY_HAND}"]
