"""`logkeep zeebe list`: which backups a store of Zeebe has."""

from collections.abc import Sequence

import msgspec

from logkeep.checkpoint.zeebe.inventory import ZeebeBackup, ZeebeCopy, read_inventory
from logkeep.checkpoint.zeebe.states import BackupState
from logkeep.cli.frame.execute import Run
from logkeep.cli.frame.verb import verb
from logkeep.cli.terminal.text import TerminalStyle, count, plural, size
from logkeep.cli.verbs.zeebe.declarations import LIST
from logkeep.cli.verbs.zeebe.zeebe_store import opened_zeebe_store
from logkeep.config.options import ALL

_SHOWN = 40
_TROUBLE = {BackupState.FAILED, BackupState.INCOMPLETE, BackupState.UNREADABLE}


class ListedCopy(msgspec.Struct, frozen=True, kw_only=True):
    partition: int
    node: int
    state: str
    """`unreadable` if its manifest cannot be read or is that of another copy."""
    reason: str | None
    checkpoint_position: int | None
    snapshot: str | None
    broker_version: str | None
    files: int
    stored_bytes: int
    created: str | None


class ListedBackup(msgspec.Struct, frozen=True, kw_only=True):
    id: int
    state: str
    partitions: int
    stored_bytes: int
    created: str | None
    copies: tuple[ListedCopy, ...]


class ZeebeListReport(msgspec.Struct, frozen=True, kw_only=True):
    url: str
    backups: tuple[ListedBackup, ...]
    all: bool


def _text(report: ZeebeListReport, look: TerminalStyle) -> str:
    if not report.backups:
        return look.text(f"no backups of Zeebe in {report.url}")
    shown = report.backups if report.all else report.backups[-_SHOWN:]
    rows = [(str(b.id), b.state, count(b.partitions), size(b.stored_bytes), b.created or "-", _notes(b)) for b in shown]
    headers = ("ID", "STATE", "PARTITIONS", "SIZE", "CREATED", "NOTES")
    lines = [look.table(headers, rows, right="ID,PARTITIONS,SIZE", free="NOTES")]
    if left := len(report.backups) - len(shown):
        lines.append(look.text(f"… and {plural(left, 'older backup')}; --all shows them"))
    return "\n".join(lines)


def _notes(backup: ListedBackup) -> str:
    reasons = [f"partition {each.partition}: {each.reason}" for each in backup.copies if each.reason]
    return reasons[0] + (f", and {count(len(reasons) - 1)} more" if len(reasons) > 1 else "") if reasons else ""


@verb(
    LIST,
    report=ZeebeListReport,
    text=_text,
    exit_code=lambda report: 2 if any(each.state in _TROUBLE for each in report.backups) else 0,
)
def list_stored(run: Run) -> ZeebeListReport:
    store = opened_zeebe_store(run)
    return ZeebeListReport(url=store.url, backups=listed(read_inventory(store)), all=run[ALL])


def listed(backups: Sequence[ZeebeBackup]) -> tuple[ListedBackup, ...]:
    """Backups as they are reported."""
    return tuple(_backup(each) for each in backups)


def _backup(backup: ZeebeBackup) -> ListedBackup:
    copies = tuple(_copy(each) for each in backup.copies)
    return ListedBackup(
        id=backup.checkpoint_id,
        state=backup.state,
        partitions=backup.partitions,
        stored_bytes=backup.stored_bytes,
        created=min((each.created for each in copies if each.created), default=None),
        copies=copies,
    )


def _copy(copy: ZeebeCopy) -> ListedCopy:
    manifest = copy.manifest
    reason = copy.problem or (manifest.failure if manifest is not None else "")
    return ListedCopy(
        partition=copy.place.partition,
        node=copy.place.node,
        state=BackupState.UNREADABLE if copy.problem else copy.state,
        reason=reason or None,
        checkpoint_position=manifest.checkpoint_position if manifest and manifest.checkpoint_position > 0 else None,
        snapshot=(manifest.snapshot_id if manifest else "") or None,
        broker_version=(manifest.broker_version if manifest else "") or None,
        files=len(copy.objects),
        stored_bytes=copy.stored_bytes,
        created=manifest.created.isoformat() if manifest and manifest.created else None,
    )
