"""`zkbackup info`: all about one backup, from its document alone."""

from pathlib import Path
from typing import Any

import click
import msgspec

from logkeep.cli.frame.execute import CommandAnswer
from logkeep.cli.terminal.boxes import BAD, FAIR, GOOD, branches, columns, condition_word, fit_terminal, title
from logkeep.cli.terminal.messages import Translation, message, words
from logkeep.cli.terminal.text import TerminalStyle, size
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
            message("it cannot be read"),
            subject=str(directory),
            remedy=message("run as the user that takes the backups"),
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
    say, condition = words(look), known.validation.condition
    lines = [
        *title(say("Backup details")),
        *(say("Backup ID: {name}", name=directory.name), say("Location: {path}", path=directory), ""),
        *_basics(say, known, look),
        *_files(say, known),
        *_validation(say, known, condition),
        *_quality(say, known, condition),
        *_restore(say, directory, known),
    ]
    return fit_terminal(lines, look)


def _restore(say: Translation, directory: Path, known: Claims) -> list[str]:
    parts = _command_parts(directory, known)
    if parts:
        begin = "  zkbackup restore "
        lines = [f"{begin}{parts[0]}", *(f"{'':{len(begin)}}{part}" for part in parts[1:])]
        return [say("Restore command:"), *(f"{line} \\" for line in lines[:-1]), lines[-1]]
    checking = f"zkbackup verify --backup-dir {shell_word(directory)}"
    if _unverified(known):
        never = say("It was never verified, or not to the end. To check whether it can be restored:")
        return [never, f"  {checking}"]
    return [say("Its end cannot be restored. To see what can, and what --fix may repair:"), f"  {checking}"]


def _basics(say: Translation, known: Claims, look: TerminalStyle) -> list[str]:
    zxid = known.backup_zxid.decimal
    taken = f"{moment_of(known).astimezone(look.zone):%Y-%m-%d %H:%M:%S %z}"
    return [
        say("General:"),
        say("  Taken: {time}", time=taken),
        say("  ZXID: {zxid}", zxid=f"{hex_zxid(zxid)} ({zxid})"),
        say("  ZooKeeper version: {version}", version=known.zookeeper.version or say("not known")),
        say("  Source host: {host}", host=known.zookeeper.host or say("not known")),
        "",
    ]


def _files(say: Translation, known: Claims) -> list[str]:
    snapshots, logs = known.files.snapshots, known.files.txnlogs
    shown = [(s.name, f"ZXID: {s.zxid}", size(s.size)) for s in snapshots]
    return [
        *(say("Files:"), say("  Snapshots: {count}", count=len(snapshots))),
        say("  Transaction logs: {count}", count=len(logs)),
        say("  Total size: {size}", size=size(known.statistics.total_size)),
        say("  Stored: {size}", size=size(known.statistics.compressed_size)),
        *("", say("Snapshots:"), *branches(columns(shown))),
        *("", say("Transaction logs:"), *branches(columns([_log(say, log) for log in logs])), ""),
    ]


def _log(say: Translation, log: ClaimedLog) -> tuple[str, ...]:
    mark = "" if log.status in {"valid", "truncated", ""} else f"{FAIR} {log.status}"
    where = f"ZXID: {log.start_zxid}~{log.end_zxid}"
    return log.name, where, size(log.size), say.plural(log.transaction_count, "txn"), mark


def _validation(say: Translation, known: Claims, condition: Condition) -> list[str]:
    found = known.validation
    word = condition_word(say, condition, unproven_end=found.unproven_end, read_back=found.enabled)
    return [
        say("Verification:"),
        say("  Files: {count}", count=found.total_files),
        say("  Valid: {count}", count=found.valid_files),
        say("  Repaired: {count}", count=found.repaired_files),
        *(say("  Lost: {count}", count=found.unrecoverable_files), "", say("  Status: {status}", status=word), ""),
    ]


def _quality(say: Translation, known: Claims, condition: Condition) -> list[str]:
    found = known.validation
    if _unverified(known):
        return [say("Quality score: not known"), ""]
    complete = condition is not Condition.DAMAGED
    repairs = say("fair ({repairs})", repairs=say.plural(found.repaired_files, "repair"))
    whole = f"{GOOD} {say('complete')}"
    integrity = whole if complete else f"{BAD} {say('its end cannot be restored')}"
    files = f"{FAIR} {repairs}" if found.repaired_files else f"{GOOD} {say('good')}"
    coverage = f"{FAIR} {say('a gap in an older part')}" if found.old_hole else whole
    return [
        say("Quality score: {score}/100", score=found.quality_score),
        say("  - Integrity: {state}", state=integrity),
        say("  - Files: {state}", state=files),
        say("  - Coverage: {state}", state=coverage),
        "",
    ]


COMMAND = ZkCommand(
    info, own=_OPTIONS, exits=(0, 1, 10, 40, 52), arguments=(click.Argument(["backup_id"], metavar="BACKUP-ID"),)
)
