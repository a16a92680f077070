"""Opens a Kafka backup for reading and holds it: it is not pruned before the block ends."""

from collections.abc import Iterator
from contextlib import contextmanager
from datetime import datetime

from logkeep.errors import UnknownBackup
from logkeep.kafka.record.backup_view import KafkaBackupView, view_backup
from logkeep.model.ids import BackupId
from logkeep.model.time import Clock, TokenSource, rfc3339
from logkeep.repository.backups.holds import reading
from logkeep.repository.backups.source import view
from logkeep.repository.chain.commits import SourceRef
from logkeep.repository.chain.fold import BackupEntry, Folded
from logkeep.repository.chain.owner import this_process


@contextmanager
def open_backup(
    place: SourceRef, which: str | datetime, operation: str, clock: Clock, tokens: TokenSource
) -> Iterator[KafkaBackupView]:
    """The backup with an id, a unique prefix of one, `latest`, or the newest one that was complete at a time.

    Raises UnknownBackup, Damaged, or UsageError if it is not a backup of a Kafka cluster.
    """
    found = view(place, clock(), this_process("reader"))
    entry = complete_by(found.folded, which, place.source) if isinstance(which, datetime) else found.completed(which)
    with reading(place, BackupId(entry.id), this_process(tokens()), operation, tokens) as held:
        yield view_backup(place, held)


def complete_by(folded: Folded, moment: datetime, source: str) -> BackupEntry:
    """The newest backup that was complete at a time. Pure. Raises UnknownBackup."""
    found = [e for e in folded.completed if datetime.fromisoformat(e.committed) <= moment]
    if not found:
        raise UnknownBackup(
            f"no backup was complete at {rfc3339(moment)}",
            subject=source,
            remedy="`logkeep list` shows when each backup ended",
        )
    return max(found, key=lambda e: e.id)
