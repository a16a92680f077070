"""A backup whose burial the chain lost: damage, and all its offsets are compared again by the next backup."""

from msgspec.structs import replace as changed

from logkeep.kafka.backup.deletion_proof import KnownLogs
from logkeep.kafka.backup.preparation import PreviousBackup
from logkeep.kafka.client.topology import TopicPartition
from logkeep.kafka.record.deletion_times import DeletionTimes
from logkeep.kafka.record.documents import ROLE, reached_in
from logkeep.kafka.record.lost_burials import lost_burials
from logkeep.kinds import KAFKA
from logkeep.model.clock_time import ClockName
from logkeep.model.findings import Severity
from logkeep.model.ids import BackupId
from logkeep.model.ranges import Range
from logkeep.model.segments import Collection, LogName
from logkeep.repository.backups.attachments import put_packed_attachment
from logkeep.repository.backups.manifest import LogCut, Manifest
from logkeep.repository.chain.actions import ObjectRef
from logkeep.repository.chain.commits import SourceRef
from logkeep.repository.chain.fold import Burial, Folded
from logkeep.store.memory import MemoryStore
from tests.golden.test_kafka_record_golden import RECORD

LOG, PARTITION = LogName(Collection.TOPICS, "orders", "0" * 31 + "a", 0), TopicPartition("orders", 0)
TIMES = DeletionTimes(cut_ms=5, clock=ClockName.BROKER, retention_ms=86_400_000, buried=3)
BURYING = changed(RECORD, version=3, logs=(changed(RECORD.logs[0], deletions=TIMES),))


def _burial(offsets: int, log: LogName = LOG) -> Burial:
    return Burial(log=log, first=BackupId(RECORD.id), object=ObjectRef("0" * 16, 24, "0" * 64), offsets=offsets)


def test_fewer_buried_offsets_than_the_backup_recorded_are_a_loss() -> None:
    for there in ({}, {LOG: (_burial(2),)}, {changed(LOG, history="b"): (_burial(3),)}):
        assert lost_burials(BURYING, there) == BURYING.logs
    assert lost_burials(BURYING, {LOG: (_burial(2), _burial(1))}) == ()
    assert lost_burials(RECORD, {}) == ()


def test_a_backup_continues_such_a_log_as_wholly_unproven() -> None:
    """Also where a later round, which stored nothing, has times of it."""
    lost = {PARTITION: Range(2, 9)}
    known = PreviousBackup(record=BURYING, later=reached_in(BURYING), lost=lost).known
    assert (known.reached[PARTITION].deletions, known.unproven) == (None, lost)
    whole: KnownLogs = PreviousBackup(record=BURYING).known
    assert (whole.reached[PARTITION].deletions, whole.unproven) == (TIMES, {})


def test_verify_finds_it() -> None:
    place = SourceRef(MemoryStore(), RECORD.repository, "shop")
    stored = put_packed_attachment(place, BackupId(RECORD.id), ROLE, BURYING, "1" * 16)
    manifest = Manifest(
        repository=RECORD.repository, source="shop", id=BackupId(RECORD.id), run="r", kind="kafka", identity={},
        started="", finished="", base=None, cut=(LogCut(LOG, 2, 9),), parts=(), attachments=(stored,), version=2,
    )  # fmt: skip
    (found,) = KAFKA.doubts(place, Folded(), manifest)
    assert (found.code, found.severity, found.where) == ("burial-lost", Severity.DAMAGE, "orders/0")
    assert KAFKA.doubts(place, Folded(buried=(_burial(3),)), manifest) == ()
