"""A backup of the scripted source that stops after its first unit."""

from logkeep.model.ids import BackupId
from logkeep.model.time import random_token, utc_now
from logkeep.model.work import Task
from logkeep.repository.backups.backup import begin
from logkeep.repository.backups.source import ensure_source
from logkeep.repository.chain.commits import SourceRef
from logkeep.repository.chain.write_session import writing
from tests.support.scripted.backup import Copied, CopyUnit


def leave_unfinished(place: SourceRef, backup_id: BackupId, copy: Task[CopyUnit, Copied]) -> None:
    """Begin a backup, copy one unit with its receipt, and end without a word."""
    with writing(place, "backup", utc_now, random_token) as session:
        ongoing = begin(session, ensure_source(place, "scripted", {"id": "s-1"}, utc_now()), wanted=backup_id)
        copy(CopyUnit(place, ongoing.id, session.run, 0, 9, 13), lambda _: None)


def leave_failed(place: SourceRef, kind: str, identity: dict[str, str]) -> BackupId:
    """A backup whose failure was recorded; its id."""
    with writing(place, "backup", utc_now, random_token) as session:
        ongoing = begin(session, ensure_source(place, kind, identity, utc_now()))
        ongoing.fail("the source went away")
        return ongoing.id
