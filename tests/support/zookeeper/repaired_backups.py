"""Backups in a repository that are damaged, verified and mended, for tests."""

from logkeep.engine.inline import InlineEngine
from logkeep.model.ids import BackupId
from logkeep.model.time import random_token, utc_now
from logkeep.repository.chain.commits import SourceRef, read_chain
from logkeep.repository.chain.owner import this_process
from logkeep.repository.verify.run import Verifier, VerifyResult
from logkeep.zookeeper.model.archived import ArchivedLog, ArchivedSnapshot, BackupView, Member
from logkeep.zookeeper.repo.repair import RepairOutcome, RepairRun
from logkeep.zookeeper.repo.verify import DeepVerification
from logkeep.zookeeper.repo.view import ArchiveView, view_of
from logkeep.zookeeper.verify.directory_view import DirectoryView, directory_view
from logkeep.zookeeper.verify.run import Level
from tests.support.zookeeper.encoding import LOG_HEADER
from tests.support.zookeeper.handmade_directories import MadeServer, txn


def ids(place: SourceRef) -> list[int]:
    return [entry.id for entry in read_chain(place).completed]


def viewed(place: SourceRef, backup_id: int) -> ArchiveView:
    entry = read_chain(place).entry(backup_id)
    assert entry is not None
    return view_of(place, entry)


def byte_in(number: int) -> int:
    """A byte within a record of a log, the first of which is number 0."""
    return len(LOG_HEADER) + number * len(txn(1)) + 40


def damage(place: SourceRef, view: ArchiveView, kept: ArchivedLog | ArchivedSnapshot, *at: int) -> str:
    """One bit of its object is wrong from now on, at each of these bytes; how the object is called."""
    name = view.object_name(kept)
    content = bytearray(place.store.get(name, 1 << 30))
    for position in at or (-20,):
        content[position] ^= 4
    place.store.delete(name)
    place.store.put_new(name, bytes(content))
    return name


def verified(
    place: SourceRef, backup_id: int, level: Level = Level.DATA, looks: list[DeepVerification] | None = None
) -> VerifyResult:
    """`looks` takes what was seen besides."""
    entry = read_chain(place).entry(backup_id)
    assert entry is not None
    look = DeepVerification(entry, level)
    if looks is not None:
        looks.append(look)
    verifier = Verifier(place, InlineEngine(), this_process("verify"), utc_now, random_token, deeper=look)
    return verifier.verify(BackupId(backup_id), level)


def previewed(place: SourceRef, backup_id: int, *beside: BackupView, accept_loss: bool = False) -> RepairOutcome:
    return RepairRun(place, utc_now, random_token, beside=beside, accept_loss=accept_loss).preview(BackupId(backup_id))


def repaired(place: SourceRef, backup_id: int, *beside: BackupView, accept_loss: bool = False) -> RepairOutcome:
    return RepairRun(place, utc_now, random_token, beside=beside, accept_loss=accept_loss).run(BackupId(backup_id))


def beside(server: MadeServer, name: str = "zk2") -> DirectoryView:
    """A server's directories, to take records from."""
    return directory_view(Member(name=name, data_dir=str(server.snapshot_dir), log_dir=str(server.log_dir)))
