"""Which groups are planned, what is refused, what a receipt keeps, and how that is put back."""

import numpy as np
import pytest

from logkeep.errors import Damaged, TargetUnsafe, UsageError
from logkeep.formats.kafka.internal_topics.offsets_topic import PositionKey
from logkeep.formats.run_map.file_format import Route
from logkeep.formats.run_map.runs import RunMapBuilder
from logkeep.kafka.admin.groups import CommittedOffset, Group, GroupMember
from logkeep.kafka.admin.offsets import LogBounds
from logkeep.kafka.client.topology import TopicPartition
from logkeep.kafka.record.documents import CommitRecord, GroupRecord
from logkeep.kafka.restore.plan.group_offsets import MappedLog, UnchangedLog
from logkeep.kafka.restore.plan.group_rollback import GroupBack, plan_rollback
from logkeep.kafka.restore.plan.group_routes import routes_by_map
from logkeep.kafka.restore.plan.groups import (
    GroupPosition,
    GroupsPlan,
    TargetGroup,
    expected_rows,
    inexact_findings,
    plan_groups,
    rows_of,
)
from logkeep.repository.restores.documents import RestoredGroup, RestoredPartition

A0, A1, B0 = TopicPartition("a", 0), TopicPartition("a", 1), TopicPartition("b", 0)
ROUTES = {A0: [UnchangedLog(A0, 0, 10)], A1: [UnchangedLog(A1, 0, 10)]}


def _group(name: str, *commits: tuple[TopicPartition, int], kind: str = "classic") -> GroupRecord:
    records = (CommitRecord(log.topic, log.partition, offset, offset, 3, "m") for log, offset in commits)
    return GroupRecord(name, kind, "Empty", "consumer", tuple(records))


def _standing(
    name: str, commits: dict[TopicPartition, int], state: str = "Empty", kind: str = "classic", members: int = 0
) -> dict[str, TargetGroup]:
    who = tuple(GroupMember(f"m{i}", f"client-{i}", f"/10.0.0.{i}") for i in range(members))
    offsets = {log: CommittedOffset(offset, 5, "old") for log, offset in commits.items()}
    return {name: TargetGroup(Group(name, kind, state, "consumer"), offsets, who)}


def test_patterns_match_whole_names() -> None:
    groups = [_group("billing", (A0, 1)), _group("billing-2", (A0, 2)), _group("audit", (A0, 3))]
    plan = plan_groups(groups, ROUTES, ["billing", "aud.*"], {})
    assert [g.name for g in plan.groups] == ["audit", "billing"]
    with pytest.raises(UsageError, match="no group of the backup matches bill"):
        plan_groups(groups, ROUTES, ["bill"], {})
    with pytest.raises(UsageError, match=r"no group of the backup matches bil$"):
        plan_groups(groups, ROUTES, ["audit", "bil"], {})
    with pytest.raises(UsageError, match="not a pattern"):
        plan_groups(groups, ROUTES, ["("], {})


def test_before_records_have_new_offsets_nobody_knows_where_a_group_goes_on() -> None:
    """Numbers of the source are not told as if they were; whether it will be exact is known, unless keys decide."""
    plan = plan_groups([_group("billing", (A0, 15), (A1, 3))], ROUTES, [], {})
    assert [(r.offset, r.exact) for r in rows_of(plan)] == [(10, False), (3, True)]
    foreseen = expected_rows(plan, ())
    assert [(r.offset, r.exact) for r in foreseen] == [(None, False), (None, True)]
    assert [r.detail for r in foreseen] == [
        "it had read further than what was restored",
        "its offset is known when the records are restored",
    ]
    (finding,) = inexact_findings(foreseen)
    assert finding.where == "group billing"
    assert finding.what == ("in 1 partition it does not continue exactly: it had read further than what was restored")
    spread = expected_rows(plan, {"a"})
    assert [(r.offset, r.exact) for r in spread] == [(None, False)] * 2
    assert inexact_findings(spread) == [], "not known is not a warning"


def test_groups_without_a_position_in_what_came_back_are_left_alone_and_named() -> None:
    plan = plan_groups([_group("far", (B0, 1)), _group("near", (A0, 1))], ROUTES, [], {})
    assert ([g.name for g in plan.groups], plan.untouched) == (["near"], ("far",))


def test_what_is_overwritten_is_told_and_kept() -> None:
    now = _standing("g", {A0: 4, A1: 2, B0: 9})
    plan = plan_groups([_group("g", (A0, 4), (A1, 7), (B0, 1))], ROUTES, [], now)
    assert [p.target for p in plan.groups[0].overwritten] == [A1]
    assert plan.groups[0].commits == {A0: CommittedOffset(4, -1, "m"), A1: CommittedOffset(7, -1, "m")}
    rows = {(r.topic, r.partition): r for r in rows_of(plan)}
    assert (rows[A1].previous_offset, rows[A1].previous_metadata, rows[A1].offset) == (2, "old", 7)
    assert (rows[B0].offset, rows[B0].previous_offset, rows[B0].detail) == (None, None, "the topic was not restored")


@pytest.mark.parametrize("state", ["Stable", "PreparingRebalance", "CompletingRebalance", "Assigning", "Reconciling"])
def test_a_live_group_is_refused_with_its_members(state: str) -> None:
    with pytest.raises(TargetUnsafe, match=r"g \(client-0 at 10.0.0.0, client-1 at 10.0.0.1\)") as caught:
        plan_groups([_group("g", (A0, 1))], ROUTES, [], _standing("g", {}, state, members=2))
    assert caught.value.exit_code == 31


def test_a_group_whose_members_are_not_told_is_live_by_its_state() -> None:
    with pytest.raises(TargetUnsafe, match=r"g \(Stable\)"):
        plan_groups([_group("g", (A0, 1))], ROUTES, [], _standing("g", {}, "Stable", kind="streams"))


def test_a_live_group_that_would_not_be_moved_is_no_reason_to_refuse() -> None:
    live = _standing("far", {}, "Stable", members=1)
    assert plan_groups([_group("far", (B0, 1)), _group("near", (A0, 1))], ROUTES, [], live).untouched == ("far",)


def test_a_group_of_the_other_kind_is_refused() -> None:
    with pytest.raises(TargetUnsafe, match="is a classic group in the target and a share group in the backup"):
        plan_groups([_group("g", (A0, 1), kind="share")], ROUTES, [], _standing("g", {A0: 1}))
    with pytest.raises(TargetUnsafe, match="is a share group in the target and not a share group in the backup"):
        plan_groups([_group("g", (A0, 1))], ROUTES, [], _standing("g", {A0: 1}, kind="share"))


def test_share_groups_carry_no_metadata() -> None:
    (planned,) = plan_groups([_group("g", (A0, 1), kind="share")], ROUTES, [], {}).groups
    assert (planned.share, planned.commits) == (True, {A0: CommittedOffset(1, -1, "")})
    assert [r.share for r in rows_of(GroupsPlan((planned,)))] == [True]


def test_erased_positions_win_over_older_ones_and_bring_back_groups() -> None:
    recovered = {
        PositionKey("g", "a", 0): GroupPosition(8, 1, "late", 100, erased_ms=200),
        PositionKey("g", "a", 1): GroupPosition(9, 1, "still there", 100),
        PositionKey("only-there", "a", 1): GroupPosition(5, 1, "", 100, erased_ms=200),
    }
    plan = plan_groups([_group("g", (A0, 2), (A1, 3))], ROUTES, [], {}, recovered)
    found = {g.name: {log: (c.offset, c.metadata) for log, c in g.commits.items()} for g in plan.groups}
    assert found == {"g": {A0: (8, "late"), A1: (3, "m")}, "only-there": {A1: (5, "")}}


def _row(log: TopicPartition, previous: int | None, offset: int | None, *, share: bool = False) -> RestoredGroup:
    return RestoredGroup(
        group="g", topic=log.topic, partition=log.partition, previous_offset=previous, offset=offset, share=share
    )  # fmt: skip


def test_a_rollback_puts_back_and_forgets() -> None:
    plan = plan_rollback([_row(A0, 2, 7), _row(A1, None, 8), _row(B0, None, None)], _standing("g", {A0: 7, A1: 9}))
    assert plan.groups == (GroupBack("g", False, {A0: CommittedOffset(2, -1, "")}, (A1,)),)
    assert plan.moved_on == (A1,)
    assert {(r.topic, r.partition): (r.previous_offset, r.offset) for r in plan.rows} == {A0: (7, 2), A1: (9, None)}


def test_a_group_of_which_nothing_would_be_left_is_removed() -> None:
    rows = [_row(A0, None, 7)]
    assert plan_rollback(rows, _standing("g", {A0: 7})).groups == (GroupBack("g", False, remove=True),)
    assert plan_rollback(rows, _standing("g", {A0: 7, B0: 1})).groups == (GroupBack("g", False, {}, (A0,)),)
    assert plan_rollback(rows, {}).groups == (GroupBack("g", False),), "it is gone already"


def test_starts_of_a_share_group_are_forgotten_by_topic_or_stay() -> None:
    now = _standing("g", {A0: 7, A1: 8, B0: 9}, kind="share")
    rows = [_row(A0, 1, 7, share=True), _row(A1, None, 8, share=True), _row(B0, None, 9, share=True)]
    plan = plan_rollback(rows, now)
    assert plan.groups == (GroupBack("g", True, {A0: CommittedOffset(1, -1, "")}, (B0,), kept=(A1,)),)
    assert [(r.offset, r.exact) for r in plan.rows] == [(1, True), (8, False), (None, True)]


def test_a_live_group_is_not_rolled_back() -> None:
    with pytest.raises(TargetUnsafe):
        plan_rollback([_row(A0, None, 7)], _standing("g", {A0: 7}, "Stable", members=1))


def test_a_rollback_of_a_rollback_is_the_restore_again() -> None:
    rows = [_row(A0, 2, 7), _row(A1, None, 8)]
    first = plan_rollback(rows, _standing("g", {A0: 7, A1: 8}))
    second = plan_rollback(first.rows, _standing("g", {A0: 2}))
    assert {log: c.offset for log, c in second.groups[0].put.items()} == {A0: 7, A1: 8}


def _restored(mode: str = "translate", end: int = 5, outcome: str = "done") -> RestoredPartition:
    return RestoredPartition(
        source_topic="a", source_partition=0, topic="b", partition=0, mode=mode, records=2, bytes=0, end=end,
        outcome=outcome,
    )  # fmt: skip


def test_routes_of_a_restore() -> None:
    builder = RunMapBuilder(0, 9, 3)
    builder.extend(np.array([[4, 2]], np.int64))
    runs, bounds = builder.finish(), {B0: LogBounds(1, 8, 8, 0)}
    maps = {Route("a", 0, "b", 0): runs}
    assert routes_by_map([_restored()], maps, bounds) == {A0: [MappedLog(B0, runs)]}
    assert routes_by_map([_restored("preserve")], {}, bounds) == {A0: [UnchangedLog(B0, 1, 5)]}
    assert routes_by_map([_restored()], maps, {}) == {A0: []}, "the target does not have it any more"
    assert routes_by_map([_restored(outcome="foreign-writer")], maps, bounds) == {}
    with pytest.raises(TargetUnsafe, match="recreated"):
        routes_by_map([_restored(end=9)], maps, bounds)
    with pytest.raises(Damaged, match="lacks this partition"):
        routes_by_map([_restored()], {}, bounds)
