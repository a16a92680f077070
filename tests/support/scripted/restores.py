"""Restores that nobody carried out: what would be stored of them, for tests of how it is stored and shown."""

from datetime import UTC, datetime

from logkeep.formats.run_map.file_format import Route
from logkeep.formats.run_map.runs import RunMapBuilder
from logkeep.model.findings import Finding, Severity
from logkeep.model.ids import RestoreId
from logkeep.model.time import Clock
from logkeep.repository.chain.actions import ObjectRef
from logkeep.repository.chain.commits import SourceRef
from logkeep.repository.chain.owner import Owner
from logkeep.repository.restores import (
    FIRST,
    NewRestore,
    ProducerRow,
    ReceiptDocument,
    RestoredGroup,
    RestoredPartition,
    RestoreTargetRef,
    RestoreVerdict,
)
from tests.support.kafka.run_maps import encode_all

NOW = datetime(2026, 11, 16, 2, 15, 0, 123000, UTC)
REPOSITORY = "0123456789abcdef0123456789abcdef"
OWNER = Owner("00000000000000aa", "host-1", 4711, "boot", "4026531836", "123456")
TARGET = RestoreTargetRef(cluster_id="I_CWjvlXQjq4MG_QQ9r8cA", name="staging")
DIGEST = "lk1:3:00000000000000010000000000000002:0000000000000003:0"
NEW = NewRestore(
    backup=20261116001348,
    kind="kafka",
    target=TARGET,
    body=b'{"topics":["orders"],"offsets":"preserve"}',
    options={"offsets": "preserve"},
    who="ops",
)
PRODUCERS = (
    ProducerRow(topic="orders", partition=0, producer_id=4000, epoch=0, position=0),
    ProducerRow(topic="orders", partition=1, producer_id=4001, epoch=0, position=17),
)
TOPICS = {"orders": "0a" * 16}
PARTITION = RestoredPartition(
    source_topic="orders",
    source_partition=0,
    topic="orders",
    partition=0,
    mode="preserve",
    records=3,
    bytes=1234,
    end=42,
    archive_digest=DIGEST,
    target_digest=DIGEST,
    outcome="done",
)
GROUP = RestoredGroup(
    group="billing", topic="orders", partition=0, previous_offset=7, previous_metadata="m", offset=40, reread=2
)


def clock_at(moment: datetime) -> Clock:
    return lambda: moment


def receipt(
    place: SourceRef,
    restore_id: int,
    *,
    verdict: RestoreVerdict = RestoreVerdict.PROVEN,
    drill: bool = False,
    backup: int = NEW.backup,
    finished: str = "2026-11-16T02:15:12.345Z",
    partitions: tuple[RestoredPartition, ...] = (PARTITION,),
    map_ref: ObjectRef | None = None,
) -> ReceiptDocument:
    return ReceiptDocument(
        repository=place.repository,
        source=place.source,
        restore=restore_id,
        number=FIRST,
        backup=backup,
        drill=drill,
        verdict=verdict,
        owner=OWNER,
        started="2026-11-16T02:15:00.123Z",
        finished=finished,
        duration_s=12.222,
        target=TARGET,
        partitions=partitions,
        groups=(GROUP,),
        map=map_ref,
        findings=(Finding(code="config", severity=Severity.NOTE, where="orders", what="segment.bytes differs"),),
        rates={"sent_bytes_per_s": 218e6},
    )


def map_bytes(restore_id: RestoreId) -> bytes:
    """Two partitions, one of them under another name, with a hole."""
    first = RunMapBuilder(0, 100, 0)
    first.append(0, 10)
    first.append(20, 5)
    second = RunMapBuilder(7, 9, 1000 + restore_id % 7)
    second.append(7, 2)
    return encode_all(
        {Route("orders", 0, "orders", 0): first.finish(), Route("orders", 1, "copy.orders", 1): second.finish()}
    )
