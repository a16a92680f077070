"""Where groups go on, row by row: what each case must give, and what is said of commits that are left out."""

import numpy as np
import pytest

from logkeep.formats.run_map.runs import RunMap, RunMapBuilder
from logkeep.kafka.client.topology import TopicPartition
from logkeep.kafka.record.documents import CommitRecord
from logkeep.kafka.restore.plan.group_offsets import (
    GroupOffsets,
    LeftOutOffset,
    MappedLog,
    Omission,
    Reason,
    Routes,
    RouteTable,
    UnchangedLog,
)

ORDERS, AUDIT = TopicPartition("orders", 0), TopicPartition("audit", 0)


def translate_commits(commits: list[CommitRecord], routes: Routes) -> GroupOffsets:
    return RouteTable(routes).translate(commits)


def _map(base: int = 100) -> RunMap:
    """Records 10, 11, 20 and 30 of [10, 35); 12..19 are compacted, 31..34 end in a marker. The target was not empty."""
    builder = RunMapBuilder(10, 35, base)
    builder.extend(np.array([[10, 2], [20, 1], [30, 1]], np.int64))
    return builder.finish()


def _commit(offset: int, committed: int | None = None, log: TopicPartition = ORDERS) -> CommitRecord:
    return CommitRecord(log.topic, log.partition, offset, offset if committed is None else committed, 99, "m")


@pytest.mark.parametrize(
    ("offset", "committed", "expected", "reason"),
    [
        (11, 11, 101, Reason.EXACT),
        (15, 15, 102, Reason.HOLE),
        (35, 35, 104, Reason.END),
        (31, 31, 104, Reason.END),
        (3, 3, 100, Reason.EXPIRED),
        (0, 0, 100, Reason.EXPIRED),
        (35, 50, 104, Reason.BEYOND),
        (40, 40, 104, Reason.BEYOND),
    ],
    ids=["record", "hole", "end", "trailing marker", "expired", "zero", "beyond the cut", "beyond an earlier end"],
)
def test_each_row_of_the_table(offset: int, committed: int, expected: int, reason: Reason) -> None:
    target = TopicPartition("renamed", 0)
    (placed,) = translate_commits([_commit(offset, committed)], {ORDERS: [MappedLog(target, _map())]}).placed
    assert (placed.target, placed.offset, placed.reason, placed.again) == (target, expected, reason, 0)
    assert placed.metadata == "m"


def test_zero_is_a_position_like_any_other() -> None:
    builder = RunMapBuilder(0, 5, 0)
    builder.append(0, 5)
    (placed,) = translate_commits([_commit(0)], {ORDERS: [MappedLog(ORDERS, builder.finish())]}).placed
    assert (placed.offset, placed.reason) == (0, Reason.EXACT)


def test_topics_with_the_same_partition_numbers_are_not_mixed() -> None:
    routes = {ORDERS: [MappedLog(ORDERS, _map(100))], AUDIT: [MappedLog(AUDIT, _map(500))]}
    placed = translate_commits([_commit(11), _commit(20, log=AUDIT)], routes).placed
    assert {p.target: p.offset for p in placed} == {ORDERS: 101, AUDIT: 502}


def test_what_did_not_come_back_is_left_out_and_said() -> None:
    commits = [_commit(1, log=TopicPartition("orders", 7)), _commit(2, log=TopicPartition("gone", 0)), _commit(11)]
    positions = translate_commits(commits, {ORDERS: [MappedLog(ORDERS, _map())]})
    assert positions.left_out == (
        LeftOutOffset(TopicPartition("gone", 0), 2, Omission.TOPIC),
        LeftOutOffset(TopicPartition("orders", 7), 1, Omission.PARTITION),
    )
    assert [p.target for p in positions.placed] == [ORDERS]


def test_kept_offsets_do_not_leave_the_log() -> None:
    for offset, expected in ((3, 10), (10, 10), (15, 15), (35, 35), (36, 35)):
        (placed,) = translate_commits([_commit(offset)], {ORDERS: [UnchangedLog(ORDERS, 10, 35)]}).placed
        assert (placed.offset, placed.exact) == (expected, 10 <= offset <= 35)


def test_a_partition_that_a_group_never_read_holds_the_others_back() -> None:
    """Else its records that stand behind would be lost; what is read again for that is counted."""
    one, two = RunMapBuilder(0, 2, 0), RunMapBuilder(0, 1, 0)
    one.place(np.array([[0, 0, 1], [1, 2, 1]], np.int64))
    two.place(np.array([[0, 1, 1]], np.int64))
    two.skip_to(3)
    routes = {ORDERS: [MappedLog(AUDIT, one.finish())], TopicPartition("orders", 1): [MappedLog(AUDIT, two.finish())]}
    (placed,) = translate_commits([_commit(2)], routes).placed
    assert (placed.offset, placed.again, placed.reason, placed.exact) == (1, 1, Reason.SHARED, False)
