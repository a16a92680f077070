"""What a run knows of deletions from pass to pass."""

from dataclasses import replace

import numpy as np
from msgspec.structs import replace as changed

from logkeep.formats.kafka.buried_offsets import BuriedOffsets, encode_runs
from logkeep.kafka.admin.topics import TopicConfigs
from logkeep.kafka.backup.assemble import Assembled
from logkeep.kafka.backup.deletion_compare import DeletionsFound
from logkeep.kafka.backup.deletion_passes import DeletionPasses, first_pass
from logkeep.kafka.backup.deletion_proof import JudgedLog
from logkeep.kafka.backup.facts import Facts
from logkeep.kafka.backup.plan import log_of
from logkeep.kafka.client.topology import TopicPartition
from logkeep.kafka.logs.read_times import ReadTimes
from logkeep.kafka.record.deletion_times import DeletionTimes
from logkeep.model.clock_time import ClockName, ClockTime
from logkeep.model.ranges import Range
from logkeep.model.segments import Segment
from logkeep.repository.backups.manifest import LogCut
from tests.support.kafka.cluster_values import ID, bounds, facts, topic

ORDERS = topic("orders")
LOG, PARTITION = log_of(ORDERS, 0, ID.hex), TopicPartition("orders", 0)
DAY, NOW = 86_400_000, 1_000_000_000
BROKER = ClockName.BROKER


def _facts(end: int) -> Facts:
    return replace(
        facts((ORDERS,), {PARTITION: bounds(0, end)}, {}),
        configs={"orders": TopicConfigs({"cleanup.policy": "compact", "delete.retention.ms": str(DAY)}, {})},
        cut=ClockTime(NOW, BROKER),
    )


def _doubtful() -> DeletionPasses:
    """[0, 20) is archived, and not proven."""
    times = DeletionTimes(cut_ms=NOW, clock=BROKER, retention_ms=DAY, unproven_from=0, unproven_to=20)
    about = Assembled((LogCut(LOG, 0, 20),), (), (), (), {})
    return first_pass({LOG: JudgedLog(LOG, times, "too late")}, _facts(20), about)


def _found(*offsets: int, problem: str = "") -> DeletionsFound:
    runs = encode_runs(BuriedOffsets.of(np.array(offsets, np.int64)))
    begin = ClockTime(NOW, BROKER)
    return DeletionsFound(
        log=LOG, end=20, begin=begin, runs=runs, keys=9, vanished=len(offsets), odd=0, unclear=0, problem=problem
    )


def _added(records: int) -> Assembled:
    """[20, 30) was read at once after the comparison, with so many records."""
    row = Segment.without_object(LOG, 20, 30, "0" * 16)
    row = changed(row, first=20, has_object=True, records=records)
    return Assembled((LogCut(LOG, 0, 30),), (row,), (), (), {}, times={LOG: ReadTimes(NOW, NOW + 1, BROKER)})


def test_a_comparison_that_is_not_complete_leaves_what_an_earlier_one_buried() -> None:
    first = _doubtful().compared([_found(3, 4)], last=False).extended(_facts(30), _added(7))
    after = first.compared([_found(problem="the leader changed")], last=True)
    assert {log: each.count for log, each in after.buried().items()} == {LOG: 2}
    assert after.doubtful() == first.doubtful()
    alone = _doubtful().compared(iter([_found(3, problem="the leader changed")]), last=True)
    assert (alone.buried(), alone.doubtful()) == ({}, (LOG,))
    assert alone.compared(iter([_found(3)]), last=True).doubtful() == ()


def test_what_came_during_a_comparison_that_buries_is_proven_only_without_missing_offsets() -> None:
    """A later value replaced a key that is buried; it may be replaced and cleaned too before it is read."""
    burying, plain = (_doubtful().compared([found], last=False) for found in (_found(3), _found()))
    sparse = burying.extended(_facts(30), _added(7))
    assert sparse.judged[LOG].unproven == Range(20, 30)
    assert "cleaned while it was compared" in sparse.judged[LOG].why
    assert burying.extended(_facts(30), _added(10)).judged[LOG].unproven is None
    assert plain.extended(_facts(30), _added(7)).judged[LOG].unproven is None
