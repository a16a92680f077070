"""What a backup copies, and in which units."""

from collections.abc import Mapping

import msgspec
import pytest

from logkeep.errors import BackupFailed
from logkeep.kafka.backup.plan import (
    BUNDLE_BYTES,
    BUNDLE_RANGES,
    Plan,
    PlannedUnit,
    expected_bytes,
    history_of,
    plan_backup,
    refuse_no_topics,
    split,
    used_numbers,
)
from logkeep.kafka.backup.units import CopyRange
from logkeep.kafka.client.topology import TopicPartition
from logkeep.kafka.record.documents import ArchivedReach
from logkeep.model.ranges import Range
from logkeep.model.segments import Collection, LogName
from logkeep.repository.backups.manifest import KnownGap, LogCut
from logkeep.repository.chain.actions import GenerationStart, ObjectRef
from logkeep.repository.chain.fold import Burial, Folded, FoldedLog
from tests.support.kafka.cluster_values import ID, OTHER_ID, bounds, topic

LOG = TopicPartition("orders", 0)
HISTORY = ID.hex
OLD_HISTORY = OTHER_ID.hex
MIB = 1 << 20


def name(history: str = HISTORY, partition: int = 0) -> LogName:
    return LogName(Collection.TOPICS, "orders", history, partition)


def planned(start: int, end: int, reached: ArchivedReach | None = None, size_bytes: int = 0) -> Plan:
    """The plan of one partition."""
    known = {LOG: reached} if reached else {}
    return plan_backup([topic("orders")], {LOG: bounds(start, end)}, {LOG: size_bytes}, known)


def only_range(plan: Plan) -> CopyRange:
    (unit,) = plan.units
    (found,) = unit.ranges
    return found


def test_the_first_backup_begins_at_the_log_start() -> None:
    plan = planned(5, 20)
    found = only_range(plan)
    assert (found.lo, found.hi, found.first, found.last_epoch) == (5, 20, True, -1)
    assert (found.topic_id, found.history, found.leader_epoch) == (ID, HISTORY, 3)
    assert plan.cut == (LogCut(name(), 5, 20),)
    assert (plan.gaps, plan.new_histories, plan.records) == ((), (), 15)


def test_the_next_one_goes_on_where_the_last_one_ended() -> None:
    found = only_range(planned(5, 20, ArchivedReach(HISTORY, 12, 7)))
    assert (found.lo, found.hi, found.first, found.last_epoch) == (12, 20, False, 7)


def test_a_cut_covers_what_earlier_backups_archived() -> None:
    assert planned(5, 20, ArchivedReach(HISTORY, 12, 7)).cut == (LogCut(name(), 5, 20),)


def test_nothing_new_makes_no_unit() -> None:
    plan = planned(5, 20, ArchivedReach(HISTORY, 20, 7))
    assert plan.units == ()
    assert plan.cut == (LogCut(name(), 5, 20),)


@pytest.mark.parametrize("at", [0, 100])
def test_an_empty_log_is_cut_and_not_copied(at: int) -> None:
    plan = planned(at, at)
    assert plan.units == ()
    assert plan.cut == (LogCut(name(), at, at),)


def test_what_retention_removed_before_we_came_is_a_gap() -> None:
    plan = planned(30, 50, ArchivedReach(HISTORY, 12, 7))
    (gap,) = plan.gaps
    assert (gap.log, gap.start, gap.end) == (name(), 12, 30)
    assert "retention" in gap.reason
    found = only_range(plan)
    assert (found.lo, found.hi, found.first) == (30, 50, True)
    assert found.last_epoch == -1, "epoch 7 may have ended inside the gap, and the broker would speak of another log"


def test_retention_up_to_exactly_what_is_archived_is_no_gap() -> None:
    plan = planned(12, 50, ArchivedReach(HISTORY, 12, 7))
    assert plan.gaps == ()
    assert only_range(plan).lo == 12


def test_a_log_that_retention_emptied_is_a_gap_without_a_unit() -> None:
    plan = planned(50, 50, ArchivedReach(HISTORY, 12, 7))
    assert [(g.start, g.end) for g in plan.gaps] == [(12, 50)]
    assert plan.units == ()


def test_a_topic_made_again_begins_a_history_of_its_own() -> None:
    plan = planned(0, 9, ArchivedReach(OLD_HISTORY, 500, 7))
    found = only_range(plan)
    assert (found.lo, found.history, found.last_epoch, found.first) == (0, HISTORY, -1, True)
    assert plan.new_histories == (name(),)
    assert plan.gaps == ()


def test_a_history_after_a_lost_end_keeps_its_name() -> None:
    plan = planned(0, 20, ArchivedReach(f"{HISTORY}-2", 12, 7))
    found = only_range(plan)
    assert (found.lo, found.history, found.last_epoch) == (12, f"{HISTORY}-2", 7)
    assert plan.new_histories == ()


@pytest.mark.parametrize(("before", "after"), [(HISTORY, f"{HISTORY}-1"), (f"{HISTORY}-1", f"{HISTORY}-2")])
def test_a_log_shorter_than_its_archive_begins_the_next_history(before: str, after: str) -> None:
    plan = planned(3, 11, ArchivedReach(before, 12, 7))
    found = only_range(plan)
    assert (found.lo, found.hi, found.history, found.last_epoch) == (3, 11, after, -1)
    assert plan.cut == (LogCut(name(after), 3, 11),)
    assert plan.new_histories == (name(after),)


def test_no_new_history_has_the_name_of_one_with_buried_or_folded_offsets() -> None:
    """Another record may be at the same offset after an unclean truncation."""
    buried = Burial(log=name(f"{HISTORY}-2"), first=3, object=ObjectRef("0" * 32, 1, "0" * 64), offsets=1)
    first = msgspec.structs.replace(buried, log=name(HISTORY))
    fold = FoldedLog(
        log=name(f"{HISTORY}-4"), start=0, end=9, last_id=3, generation=9, committed="", dense_to=0, cuts=()
    )
    ended = GenerationStart("orders", HISTORY, "2026-01-01T00:00:00Z", 6)
    cases = [
        ((Folded(), None), HISTORY),
        ((Folded(generation_starts=(msgspec.structs.replace(ended, number=0),)), None), HISTORY),
        ((Folded(buried=(first,)), None), f"{HISTORY}-1"),
        ((Folded(buried=(buried, first)), None), f"{HISTORY}-3"),
        ((Folded(buried=(buried,)), HISTORY), f"{HISTORY}-3"),
        ((Folded(folds=(fold,)), HISTORY), f"{HISTORY}-5"),
        ((Folded(generation_starts=(ended,)), HISTORY), f"{HISTORY}-7"),
        ((Folded(buried=(buried,)), f"{HISTORY}-8"), f"{HISTORY}-9"),
    ]
    for (folded, before), after in cases:
        reached = {LOG: ArchivedReach(before, 12, 7)} if before else {}
        used = used_numbers(folded)
        plan = plan_backup([topic("orders")], {LOG: bounds(3, 11)}, {}, reached, used=used)
        assert only_range(plan).history == after, "left out of the last backup, or shorter than in it"


def test_a_topic_made_again_after_a_lost_end_is_a_new_topic() -> None:
    assert only_range(planned(0, 9, ArchivedReach(f"{OLD_HISTORY}-3", 5, 7))).history == HISTORY


def test_a_first_history_is_named_by_the_topic_id() -> None:
    assert history_of(topic("orders")) == HISTORY


@pytest.mark.parametrize(
    ("done", "left"),
    [
        ([], [(12, 50)]),
        ([Range(12, 50)], []),
        ([Range(20, 30)], [(12, 20), (30, 50)]),
        ([Range(40, 60), Range(12, 20)], [(20, 40)]),
        ([Range(0, 15), Range(14, 16)], [(16, 50)]),
        ([Range(60, 70)], [(12, 50)]),
    ],
)
def test_what_an_interrupted_run_has_copied_is_not_copied_again(done: list[Range], left: list[tuple[int, int]]) -> None:
    plan = plan_backup(
        [topic("orders")], {LOG: bounds(0, 50)}, {}, {LOG: ArchivedReach(HISTORY, 12, 7)}, {name(): done}
    )
    assert [(r.lo, r.hi) for u in plan.units for r in u.ranges] == left
    assert plan.cut == (LogCut(name(), 0, 50),)


def test_the_epoch_behind_an_interrupted_run_is_the_one_it_reached() -> None:
    known, tip = ArchivedReach(HISTORY, 12, 7), ArchivedReach(HISTORY, 30, 9)
    plan = plan_backup([topic("orders")], {LOG: bounds(0, 50)}, {}, {LOG: known}, {name(): [Range(20, 30)]}, {LOG: tip})
    assert [(r.lo, r.last_epoch) for u in plan.units for r in u.ranges] == [(12, 7), (30, 9)]


def test_a_new_partition_is_copied_from_its_start() -> None:
    logs = {LOG: bounds(0, 10), TopicPartition("orders", 1): bounds(0, 4)}
    plan = plan_backup([topic("orders", (1, 1))], logs, {}, {LOG: ArchivedReach(HISTORY, 10, 0)})
    found = only_range(plan)
    assert (found.partition, found.lo, found.hi) == (1, 0, 4)
    assert plan.new_histories == ()


def test_only_the_share_that_is_new_counts() -> None:
    assert only_range(planned(0, 100, ArchivedReach(HISTORY, 75, 0), size_bytes=4000)).size_bytes == 1000


def wanted(lo: int, hi: int, size_bytes: int) -> CopyRange:
    return CopyRange("orders", ID, 0, lo, hi, HISTORY, 3, last_epoch=7, first=True, size_bytes=size_bytes)


def test_a_large_range_is_cut_into_equal_pieces() -> None:
    pieces = split(wanted(1_000, 11_000, 10 * MIB), 3 * MIB)
    assert [(p.lo, p.hi) for p in pieces] == [(1_000, 3_500), (3_500, 6_000), (6_000, 8_500), (8_500, 11_000)]
    assert [p.first for p in pieces] == [True, False, False, False]
    assert [p.last_epoch for p in pieces] == [7, -1, -1, -1]
    assert all(p.size_bytes <= 3 * MIB for p in pieces)


def test_few_large_records_are_not_cut_finer_than_they_are() -> None:
    assert split(wanted(0, 999, 1000 * MIB), MIB) == [wanted(0, 999, 1000 * MIB)]
    assert len(split(wanted(0, 2_999, 1000 * MIB), MIB)) == 2


def test_one_piece_is_the_range_itself() -> None:
    assert split(wanted(0, 10_000, MIB), MIB) == [wanted(0, 10_000, MIB)]
    assert split(wanted(0, 10_000, 0), MIB) == [wanted(0, 10_000, 0)]


def many(leaders: tuple[int, ...], size_bytes: int, unit_bytes: int = BUNDLE_BYTES) -> Plan:
    logs: Mapping[TopicPartition, object] = {TopicPartition("t", p): p for p in range(len(leaders))}
    return plan_backup(
        [topic("t", leaders)], dict.fromkeys(logs, bounds(0, 10)), dict.fromkeys(logs, size_bytes), {},
        unit_bytes=unit_bytes,
    )  # fmt: skip


def test_small_ranges_of_one_leader_share_a_unit() -> None:
    plan = many((1, 2, 1, 2, 2), 100)
    shared = {u.broker: [r.partition for r in u.ranges] for u in plan.units}
    assert shared == {1: [0, 2], 2: [1, 3, 4]}
    assert len(plan.units) == 2


def test_a_bundle_holds_no_more_than_its_share() -> None:
    assert [len(u.ranges) for u in many((1,) * (BUNDLE_RANGES + 1), 0).units] == [BUNDLE_RANGES, 1]
    assert [len(u.ranges) for u in many((1,) * 5, 40, unit_bytes=100).units] == [2, 2, 1]


def test_a_log_that_is_not_small_has_a_unit_of_its_own() -> None:
    assert [len(u.ranges) for u in many((1, 1), BUNDLE_BYTES).units] == [1, 1]
    assert [len(u.ranges) for u in many((1, 1), BUNDLE_BYTES - 1, unit_bytes=2 * BUNDLE_BYTES).units] == [2]


def test_a_unit_is_named_by_what_it_copies() -> None:
    """Receipts of a run that died are found by these names: this one must never change."""
    unit = PlannedUnit(1, (wanted(0, 10, 5),))
    assert unit.name == "4542bceb360c3f56c8738dbfe54f4b1c"
    assert PlannedUnit(2, (wanted(0, 10, 99),)).name == unit.name
    assert PlannedUnit(1, (wanted(0, 11, 5),)).name != unit.name


def test_the_gap_of_a_plan_is_a_value_that_manifests_take() -> None:
    assert planned(30, 50, ArchivedReach(HISTORY, 12, 7)).gaps == (
        KnownGap(name(), 12, 30, "retention removed it before it was copied"),
    )


def test_a_log_start_that_goes_back_stays_where_it_was() -> None:
    """A new leader had not yet deleted what is gone already."""
    plan = planned(40, 120, ArchivedReach(HISTORY, 100, 7, 100, 50))
    assert plan.cut == (LogCut(name(), 50, 120),)
    assert (only_range(plan).lo, only_range(plan).hi) == (100, 120)


def test_a_log_of_unknown_size_is_not_taken_for_a_small_one() -> None:
    plan = plan_backup([topic("orders")], {LOG: bounds(0, 50_000_000)}, {}, {})
    assert len(plan.units) > 10


def test_a_backup_of_nothing_after_one_of_something_is_refused() -> None:
    refuse_no_topics([], [])
    refuse_no_topics([topic("orders")], [LOG])
    with pytest.raises(BackupFailed, match="no topic is left"):
        refuse_no_topics([], [LOG])


@pytest.mark.parametrize(("start", "lost"), [(150, []), (200, []), (300, [(200, 300)])])
def test_what_an_interrupted_run_has_copied_is_not_lost(start: int, lost: list[tuple[int, int]]) -> None:
    done = {name(): [Range(100, 200)]}
    plan = plan_backup([topic("orders")], {LOG: bounds(start, 400)}, {}, {LOG: ArchivedReach(HISTORY, 100, 7)}, done)
    assert [(gap.start, gap.end) for gap in plan.gaps] == lost


@pytest.mark.parametrize(
    ("reached", "size_bytes"),
    (
        (None, 1500),
        (ArchivedReach(HISTORY, 12, 7), 800),
        (ArchivedReach(HISTORY, 20, 7), 0),
        (ArchivedReach(HISTORY, 2, 7), 1500),
        (ArchivedReach(HISTORY, 30, 7), 1500),
    ),
    ids=("first", "goes on", "nothing new", "a gap", "lost its end"),
)
def test_the_expected_bytes_are_those_of_the_plan(reached: ArchivedReach | None, size_bytes: int) -> None:
    known = {LOG: reached} if reached else {}
    assert expected_bytes({LOG: 1500}, {LOG: bounds(5, 20)}, known) == size_bytes
    assert planned(5, 20, reached, 1500).size_bytes == size_bytes
