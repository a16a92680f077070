"""`zkbackup info`: all about one backup, from its document alone."""

from pathlib import Path
from typing import Any

import click
import msgspec

from logkeep.cli.frame.execute import CommandAnswer
from logkeep.cli.terminal.boxes import BAD, FAIR, GOOD, branches, columns, condition_word, fit_terminal, title
from logkeep.cli.terminal.text import TerminalStyle, plural, size
from logkeep.cli.zkbackup.bundles import find, moment_of
from logkeep.cli.zkbackup.claims import INFO, ClaimedLog, Claims, claims, document_bytes
from logkeep.cli.zkbackup.command import CommandRun, ZkCommand
from logkeep.cli.zkbackup.options import BASE_DIR, FORMAT
from logkeep.errors import Damaged, StoreDenied
from logkeep.formats.zookeeper.names import hex_zxid
from logkeep.model.shell_words import shell_word
from logkeep.zookeeper.bundle.document import WITHOUT_DOCUMENT
from logkeep.zookeeper.model.condition import Condition

_OPTIONS = (BASE_DIR, FORMAT)


def info(run: CommandRun, backup_id: str) -> CommandAnswer:
    """Show all about one backup.

    Reads only its document; `zkbackup verify` reads the data itself.
    """
    directory = find(run[BASE_DIR], backup_id).absolute()
    try:
        known, whole = claims(directory), msgspec.json.decode(document_bytes(directory))
        moment_of(known)
    except PermissionError as error:
        raise StoreDenied(
            "it cannot be read", subject=str(directory), remedy="run as the user that takes the backups"
        ) from error
    except (OSError, ValueError) as error:
        why = (error.strerror or "unreadable").lower() if isinstance(error, OSError) else "not a document of a backup"
        raise Damaged(why, subject=str(directory / INFO), remedy=WITHOUT_DOCUMENT) from error
    return CommandAnswer(_document(directory, known, whole), lambda look: _text(directory, known, look))


def _document(directory: Path, known: Claims, whole: dict[str, Any]) -> dict[str, Any]:
    return {
        **whole,
        "location": str(directory),
        "status": known.validation.condition.value,
        "quality_score": None if _unverified(known) else known.validation.quality_score,
        "unproven_end": known.validation.unproven_end,
        "restore_command": restore_command(directory, known),
    }


def _unverified(known: Claims) -> bool:
    return known.validation.condition is Condition.UNVERIFIED


def restore_command(directory: Path, known: Claims) -> str | None:
    """The command that restores it to where it came from; None for a damaged or unverified backup."""
    parts = _command_parts(directory, known)
    return f"zkbackup restore {' '.join(parts)}" if parts else None


def _command_parts(directory: Path, known: Claims) -> list[str]:
    if known.validation.condition in {Condition.UNVERIFIED, Condition.DAMAGED}:
        return []
    server = known.zookeeper
    places = {"--backup-dir": str(directory), "--zk-data-dir": server.data_dir, "--zk-log-dir": server.log_dir}
    return [f"{flag} {shell_word(path)}" for flag, path in places.items()]


def _text(directory: Path, known: Claims, look: TerminalStyle) -> str:
    condition = known.validation.condition
    lines = [
        *title("Backup details"),
        *(f"Backup ID: {directory.name}", f"Location: {directory}", ""),
        *_basics(known, look),
        *_files(known),
        *_validation(known, condition),
        *_quality(known, condition),
        *_restore(directory, known),
    ]
    return fit_terminal(lines, look)


def _restore(directory: Path, known: Claims) -> list[str]:
    parts = _command_parts(directory, known)
    if parts:
        begin = "  zkbackup restore "
        lines = [f"{begin}{parts[0]}", *(f"{'':{len(begin)}}{part}" for part in parts[1:])]
        return ["Restore command:", *(f"{line} \\" for line in lines[:-1]), lines[-1]]
    checking = f"zkbackup verify --backup-dir {shell_word(directory)}"
    if _unverified(known):
        return ["It was never verified, or not to the end. To check whether it can be restored:", f"  {checking}"]
    return ["Its end cannot be restored. To see what can, and what --fix may repair:", f"  {checking}"]


def _basics(known: Claims, look: TerminalStyle) -> list[str]:
    zxid = known.backup_zxid.decimal
    return [
        "General:",
        f"  Taken: {moment_of(known).astimezone(look.zone):%Y-%m-%d %H:%M:%S %z}",
        f"  ZXID: {hex_zxid(zxid)} ({zxid})",
        f"  ZooKeeper version: {known.zookeeper.version or 'not known'}",
        f"  Source host: {known.zookeeper.host or 'not known'}",
        "",
    ]


def _files(known: Claims) -> list[str]:
    snapshots, logs = known.files.snapshots, known.files.txnlogs
    shown = [(s.name, f"ZXID: {s.zxid}", size(s.size)) for s in snapshots]
    return [
        *("Files:", f"  Snapshots: {len(snapshots)}", f"  Transaction logs: {len(logs)}"),
        *(f"  Total size: {size(known.statistics.total_size)}", f"  Stored: {size(known.statistics.compressed_size)}"),
        *("", "Snapshots:", *branches(columns(shown))),
        *("", "Transaction logs:", *branches(columns([_log(log) for log in logs])), ""),
    ]


def _log(log: ClaimedLog) -> tuple[str, ...]:
    mark = "" if log.status in {"valid", "truncated", ""} else f"{FAIR} {log.status}"
    where = f"ZXID: {log.start_zxid}~{log.end_zxid}"
    return log.name, where, size(log.size), plural(log.transaction_count, "txn"), mark


def _validation(known: Claims, condition: Condition) -> list[str]:
    found = known.validation
    word = condition_word(condition, unproven_end=found.unproven_end, read_back=found.enabled)
    return [
        "Verification:",
        *(f"  Files: {found.total_files}", f"  Valid: {found.valid_files}", f"  Repaired: {found.repaired_files}"),
        *(f"  Lost: {found.unrecoverable_files}", "", f"  Status: {word}", ""),
    ]


def _quality(known: Claims, condition: Condition) -> list[str]:
    found = known.validation
    if _unverified(known):
        return ["Quality score: not known", ""]
    complete = condition is not Condition.DAMAGED
    repaired = f"{FAIR} fair ({plural(found.repaired_files, 'repair')})" if found.repaired_files else f"{GOOD} good"
    return [
        f"Quality score: {found.quality_score}/100",
        f"  - Integrity: {f'{GOOD} complete' if complete else f'{BAD} its end cannot be restored'}",
        f"  - Files: {repaired}",
        f"  - Coverage: {f'{FAIR} a gap in an older part' if found.old_hole else f'{GOOD} complete'}",
        "",
    ]


COMMAND = ZkCommand(
    info, own=_OPTIONS, exits=(0, 1, 10, 40, 52), arguments=(click.Argument(["backup_id"], metavar="BACKUP-ID"),)
)
