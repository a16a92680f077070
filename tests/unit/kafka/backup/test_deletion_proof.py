"""Whether a run has read every deletion of a log: by time, by density, or not at all."""

from dataclasses import replace

import pytest
from msgspec.structs import replace as changed

from logkeep.kafka.admin.topics import TopicConfigs
from logkeep.kafka.backup.assemble import Assembled
from logkeep.kafka.backup.deletion_proof import (
    JudgedLog,
    KnownLogs,
    judge_logs,
    proof_findings,
    with_later_cuts,
)
from logkeep.kafka.backup.plan import log_of
from logkeep.kafka.client.topology import TopicPartition
from logkeep.kafka.logs.read_times import ReadTimes, all_times, times_between
from logkeep.kafka.record.deletion_times import CleanupRule, DeletionTimes, cleanup_rule, least_left_s, margin_ms
from logkeep.kafka.record.documents import ArchivedReach, PartitionRecord
from logkeep.kafka.record.unproven_deletions import is_dense
from logkeep.model.clock_time import ClockName, ClockTime
from logkeep.model.ranges import Range
from logkeep.model.segments import Segment
from logkeep.repository.backups.manifest import KnownGap, LogCut
from tests.support.kafka.cluster_values import ID, bounds, facts, topic

ORDERS = topic("orders")
LOG, PARTITION = log_of(ORDERS, 0, ID.hex), TopicPartition("orders", 0)
DAY, HOUR = 86_400_000, 3_600_000
BROKER = ClockName.BROKER


def _segment(start: int, end: int, records: int, first: int | None = None) -> Segment:
    none = Segment.without_object(LOG, start, end, "0" * 16)
    return changed(none, first=start if first is None else first, has_object=True, records=records)


def _base(cut_ms: int = 0, *, clock: ClockName = BROKER, unproven: Range | None = None) -> ArchivedReach:
    hull = (-1, -1) if unproven is None else (unproven.start, unproven.end)
    times = DeletionTimes(cut_ms=cut_ms, clock=clock, retention_ms=DAY, unproven_from=hull[0], unproven_to=hull[1])
    return ArchivedReach(ID.hex, 10, 3, deletions=times)


def _judged(
    base: ArchivedReach | None,
    *segments: Segment,
    read: ReadTimes | None,
    gaps: tuple[KnownGap, ...] = (),
    start: int = 0,
    retention_ms: int = DAY,
    before: CleanupRule | None = None,
    policy: str = "compact",
    unproven: Range | None = None,
) -> JudgedLog:
    configs = {"cleanup.policy": policy, "delete.retention.ms": str(retention_ms)}
    now = replace(
        facts((ORDERS,), {PARTITION: bounds(start, 20)}, {}),
        configs={"orders": TopicConfigs(configs, {})},
        cut=ClockTime(1000 * HOUR, BROKER),
    )
    rules = {"orders": before} if before is not None else {}
    known = KnownLogs({PARTITION: base} if base else {}, rules, {PARTITION: unproven} if unproven else {})
    assembled = Assembled((LogCut(LOG, start, 20),), segments, gaps, (), {}, times={LOG: read})
    return judge_logs(known, now, assembled)[LOG]


def _read(end_ms: int, begin_ms: int = 0, clock: ClockName = BROKER) -> ReadTimes:
    return ReadTimes(begin_ms, end_ms, clock)


SPARSE = _segment(10, 20, 7)


@pytest.mark.parametrize(
    ("end_ms", "retention_ms", "good"),
    [
        (22 * HOUR, DAY, True),
        (DAY - margin_ms(DAY) - 1, DAY, True),
        (DAY - margin_ms(DAY), DAY, False),
        (DAY, DAY, False),
        (1, 0, False),
        (1, 60_000, False),
        (1, 61_002, True),
        (-1, DAY, False),
    ],
)
def test_new_offsets_are_proven_within_the_retention_since_the_last_cut(
    end_ms: int, retention_ms: int, good: bool
) -> None:
    found = _judged(_base(), SPARSE, read=_read(end_ms), retention_ms=retention_ms)
    assert (found.why == "", found.unproven) == (good, None if good else Range(10, 20))


def test_a_first_copy_counts_from_its_first_read() -> None:
    whole = _segment(0, 20, 11)
    assert _judged(None, whole, read=_read(30 * HOUR, 29 * HOUR)).unproven is None
    assert _judged(None, whole, read=_read(30 * HOUR, HOUR)).unproven == Range(0, 20)


def test_offsets_that_are_all_there_need_no_times() -> None:
    assert _judged(_base(), _segment(10, 15, 5), _segment(15, 20, 5), read=None).unproven is None
    assert _judged(_base(), _segment(10, 15, 5), _segment(15, 20, 4), read=None).unproven == Range(10, 20)


def test_a_row_is_dense_only_if_nothing_is_missing_between_its_first_record_and_its_end() -> None:
    assert is_dense(_segment(10, 20, 12, first=8)), "the log start lies inside a batch"
    assert not is_dense(_segment(10, 20, 10, first=8))
    assert not is_dense(_segment(10, 20, 8, first=12))
    assert not is_dense(Segment.without_object(LOG, 10, 20, "0" * 16))


@pytest.mark.parametrize(
    ("base", "read", "why"),
    [
        (_base(), None, "when they were read"),
        (_base(clock=ClockName.OWN), _read(1), "different clocks"),
        (replace(_base(), deletions=None), _read(1), "when the last backup"),
        (_base(), _read(2 * DAY), "delete.retention.ms"),
    ],
)
def test_what_is_missing_is_said(base: ArchivedReach, read: ReadTimes | None, why: str) -> None:
    found = _judged(base, SPARSE, read=read)
    assert why in found.why
    (finding,) = proof_findings([found], facts((ORDERS,), {}, {}))
    assert (finding.code, finding.where) == ("deletions-unproven", "orders/0")
    assert "[10, 20)" in finding.what


def test_the_smaller_retention_of_two_runs_counts() -> None:
    assert _judged(_base(), SPARSE, read=_read(HOUR), before=CleanupRule(True, HOUR)).unproven == Range(10, 20)
    assert _judged(_base(), SPARSE, read=_read(HOUR), before=CleanupRule(True, DAY)).unproven is None


def test_a_topic_that_was_compacted_at_either_end_is_judged() -> None:
    late = _read(2 * DAY)
    assert _judged(_base(), SPARSE, read=late, policy="delete", before=CleanupRule(False, DAY)).unproven is None
    assert _judged(_base(), SPARSE, read=late, policy="delete", before=CleanupRule(True, DAY)).unproven is not None
    assert _judged(_base(), SPARSE, read=late, policy="compact,delete", before=CleanupRule(False, DAY)).unproven


def test_a_gap_inside_the_cut_leaves_it_unproven() -> None:
    """Retention may remove a tombstone long before its time."""
    gap = (KnownGap(LOG, 12, 15, "retention"),)
    assert _judged(_base(), _segment(10, 12, 2), _segment(15, 20, 5), read=_read(1), gaps=gap).unproven is not None
    assert _judged(_base(), _segment(15, 20, 5), read=_read(1), gaps=gap, start=15).unproven is None


def test_what_an_earlier_backup_left_unproven_stays_until_it_is_below_the_log_start() -> None:
    base = _base(unproven=Range(3, 8))
    assert _judged(base, SPARSE, read=_read(1)).unproven == Range(3, 8)
    assert _judged(base, SPARSE, read=_read(2 * DAY)).unproven == Range(3, 20)
    assert _judged(base, SPARSE, read=_read(1), start=5).unproven == Range(5, 8)
    assert _judged(base, SPARSE, read=_read(1), start=8).unproven is None
    assert _judged(replace(base, deletions=None), SPARSE, read=None, unproven=Range(0, 10)).unproven == Range(0, 20)


def test_a_log_without_new_offsets_has_nothing_to_prove_and_a_later_cut() -> None:
    base = replace(_base(), end=20)
    found = _judged(base, read=None)
    assert found.times is not None
    assert (found.unproven, found.times.cut_ms) == (None, 1000 * HOUR)
    later = {PARTITION: replace(base, deletions=found.times)}
    assert with_later_cuts({PARTITION: base}, later)[PARTITION].deletions == found.times
    assert with_later_cuts({PARTITION: _base()}, later)[PARTITION].deletions == _base().deletions, "another end"


def test_kafkas_own_topics_are_no_finding_unless_the_user_names_them() -> None:
    own = topic("__consumer_offsets", internal=True)
    log = log_of(own, 0, ID.hex)
    times = _base(unproven=Range(3, 8)).deletions
    about = facts((own,), {}, {})
    assert proof_findings([JudgedLog(log, times, "why")], about) == []
    assert len(proof_findings([JudgedLog(log, times, "why")], replace(about, named=frozenset({own.name})))) == 1


def test_the_cleanup_rule_of_a_topic_is_its_own_config_or_that_of_its_brokers() -> None:
    assert cleanup_rule({}, {}) == CleanupRule(False, DAY)
    assert cleanup_rule({"cleanup.policy": "compact,delete"}, {"delete.retention.ms": "7"}) == CleanupRule(True, 7)
    assert cleanup_rule({"cleanup.policy": "delete"}, {"cleanup.policy": "compact"}) == CleanupRule(False, DAY)


def test_the_time_that_is_left_is_that_of_the_log_with_the_least() -> None:
    logs = [
        PartitionRecord(name, 0, "h", 0, 9, 9, 0, deletions=DeletionTimes(cut_ms=cut, clock=BROKER, retention_ms=DAY))
        for name, cut in (("orders", 0), ("carts", HOUR), ("plain", -DAY))
    ]
    bound_s = (DAY - margin_ms(DAY)) / 1000
    assert least_left_s(logs, {"orders", "carts"}, 2 * HOUR) == bound_s - 2 * 3600
    assert least_left_s(logs, {"carts"}, 2 * HOUR, seen_ms=2 * HOUR - 1000) == bound_s - 1
    assert least_left_s(logs, {"carts"}, 3 * DAY) < 0  # type: ignore[operator]  # it is a number here
    assert least_left_s(logs, {"other"}, 0) is None


def test_own_clocks_of_two_machines_prove_nothing() -> None:
    """They may differ by any time. Clocks of earlier releases do not say whose they are."""
    own = ClockName.OWN
    for base_host, host, good in (("a", "a", True), ("a", "b", False), ("", "", False), ("", "a", False)):
        base = _base(clock=own)
        assert base.deletions is not None
        base = replace(base, deletions=changed(base.deletions, host=base_host))
        found = _judged(base, SPARSE, read=ReadTimes(0, HOUR, own, host))
        assert (found.why == "") is good


def test_tasks_on_two_machines_have_no_common_times() -> None:
    here, there = ReadTimes(1, 5, ClockName.OWN, "a"), ReadTimes(2, 6, ClockName.OWN, "b")
    assert all_times([here, here]) == here
    assert all_times([here, there]) is None
    assert times_between(ClockTime(1, ClockName.OWN, "a"), ClockTime(2, ClockName.OWN, "b")) is None
    assert all_times([ReadTimes(1, 5, BROKER), ReadTimes(2, 6, BROKER)]) == ReadTimes(1, 6, BROKER)
