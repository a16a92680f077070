"""Which topics are trimmed, and the reason that is printed for each."""

from datetime import UTC, datetime, timedelta

import pytest

from logkeep.config.topic_retention import TopicRetentions
from logkeep.kafka.retention.guarantee import Guarantee
from logkeep.kafka.retention.log_trim import ArchivedRow
from logkeep.kafka.retention.plan import ArchiveFacts, BackupFacts, TopicTrim, TrimPlan, plan_trim
from logkeep.kafka.retention.rules import AS_THE_SOURCE, NO_LIMIT, SourceRetention
from logkeep.model.ranges import Range
from logkeep.model.segments import Collection, LogName

NOW = datetime(2026, 11, 18, tzinfo=UTC)
HOUR_MS, DAY_MS = 3_600_000, 86_400_000
NOW_MS = int(NOW.timestamp() * 1000)
ORDERS, AGAIN = ("orders", "a" * 32), ("orders", "b" * 32)
DAY = Guarantee(DAY_MS, NO_LIMIT)
SOURCE = SourceRetention((AS_THE_SOURCE,))


def log_of(topic: tuple[str, str] = ORDERS, history: str = "", partition: int = 0) -> LogName:
    return LogName(Collection.TOPICS, topic[0], topic[1] + history, partition)


LOG = log_of()


def backup(days_ago: float, start: int, end: int, guarantee: Guarantee = DAY, **more: object) -> BackupFacts:
    given: dict[str, object] = {"cuts": {LOG: Range(start, end)}, "guarantees": {ORDERS: guarantee}, **more}
    return BackupFacts(int(100 - days_ago), NOW - timedelta(days=days_ago), **given)  # type: ignore[arg-type]


def decide(
    *backups: BackupFacts, newest: int = -1, wanted: SourceRetention = SOURCE, times: tuple[int, ...] | None = None
) -> TrimPlan:
    """Segments of 10 offsets and 100 bytes, one a day; the last one is of yesterday."""
    times = times if times is not None else tuple(NOW_MS - d * DAY_MS - HOUR_MS for d in range(9, 0, -1))
    rows = [ArchivedRow(10 * i, 10 * i + 10, 10, 100, each, each) for i, each in enumerate(times)]
    return plan_trim(ArchiveFacts(backups, backups[newest], {LOG: rows}, {LOG: 100}), wanted, NOW)


def verdict(plan: TrimPlan) -> TopicTrim:
    (found,) = plan.topics
    return found


OLD, NEW = backup(20, 0, 50), backup(1, 60, 90)


def rules(*texts: str, less: bool = False, grace: timedelta = timedelta(days=7)) -> SourceRetention:
    return SourceRetention(TopicRetentions().from_flags(texts), grace, less)


def test_a_one_day_topic_is_trimmed_to_its_log_start() -> None:
    plan = decide(OLD, NEW)
    assert plan.floors == {LOG: 60}
    assert plan.before == NEW.id
    found = verdict(plan)
    assert (found.trimmed, found.partitions, found.segments, found.plain_bytes) == (True, 1, 6, 600)
    assert found.reason == f"1 partition: beyond 1d and below the log start of backup {NEW.id}"


@pytest.mark.parametrize(
    ("why", "plan", "floor", "reason"),
    [
        (
            "retention.ms was set to one second by mistake yesterday, and the brokers deleted all",
            decide(backup(20, 0, 50, Guarantee(7 * DAY_MS)), backup(1, 90, 90, Guarantee(1000))),
            30,
            "the new one counts from 2026-11-24T00:00:00.000Z on",
        ),
        (
            "the same eight days ago",
            decide(backup(20, 0, 50, Guarantee(7 * DAY_MS)), backup(8, 90, 90, Guarantee(1000)), backup(1, 90, 90)),
            90,
            "1 partition",
        ),
        (
            "the topic was emptied, it guarantees a week",
            decide(backup(20, 0, 50, Guarantee(7 * DAY_MS)), backup(1, 90, 90, Guarantee(7 * DAY_MS))),
            30,
            "too young",
        ),
        (
            "emptied, and it keeps everything",
            decide(backup(20, 0, 50, Guarantee()), backup(1, 90, 90, Guarantee())),
            0,
            "kept forever",
        ),
        ("deleted", decide(OLD, backup(1, 0, 0, cuts={}, guarantees={})), 0, "the topic was deleted, or not chosen"),
        (
            "deleted and created again",
            decide(OLD, backup(1, 0, 0, cuts={log_of(AGAIN): Range(0, 9)}, guarantees={AGAIN: DAY})),
            0,
            "an earlier topic of this name",
        ),
        (
            "an earlier history: another generation is active, or the log lost its end",
            decide(OLD, backup(1, 0, 0, cuts={log_of(history="-1"): Range(90, 99)})),
            90,
            "1 partition",
        ),
        (
            "an earlier history, as far as the log start has come",
            decide(OLD, backup(1, 0, 0, cuts={log_of(history="-1"): Range(35, 99)})),
            30,
            "1 partition",
        ),
        (
            "an earlier history of a partition that the newest good one has no more",
            decide(OLD, backup(1, 0, 0, cuts={log_of(history="-1", partition=1): Range(90, 99)})),
            0,
            "nothing is beyond 1d",
        ),
        ("compact", decide(OLD, backup(1, 60, 90, Guarantee(deletes=False))), 0, "cleanup.policy is without delete"),
        (
            "compact until yesterday",
            decide(backup(20, 0, 50, Guarantee(deletes=False)), NEW),
            0,
            "its retention was lowered",
        ),
        (
            "the record of the newest good one is damaged",
            decide(OLD, backup(1, 60, 90, guarantees=None)),
            0,
            "cannot be read",
        ),
        ("an older record is damaged", decide(backup(20, 0, 50, guarantees=None), NEW), 0, "is not known before"),
        ("an older record was damaged long ago", decide(backup(30, 0, 50, guarantees=None), OLD, NEW), 60, ""),
        (
            "the newest backup is damaged: its log start does not count",
            decide(OLD, backup(9, 30, 60), NEW, newest=1),
            30,
            "",
        ),
        ("a hold", decide(backup(20, 0, 50, kept_by="backup 80 is held"), NEW), 0, "backup 80 is held"),
        (
            "a hold on a later backup",
            decide(OLD, backup(9, 30, 60, kept_by="tag gold of backup 91"), NEW),
            30,
            "tag gold",
        ),
        ("a hold on an empty log", decide(OLD, backup(9, 30, 30, kept_by="held"), NEW), 60, ""),
        (
            "known for three days only",
            decide(backup(3, 0, 50), NEW),
            0,
            "its retention is known since 2026-11-15T00:00:00.000Z only",
        ),
        ("no rule", decide(OLD, NEW, wanted=rules("payments=30d")), 0, "no rule names it"),
        ("first match", decide(OLD, NEW, wanted=rules("orders=forever", ".*=source")), 0, "kept forever"),
        ("longer than the topic", decide(OLD, NEW, wanted=rules("ord.*=5d")), 50, ""),
        (
            "shorter than the topic",
            decide(OLD, NEW, wanted=rules("ord.*=12h")),
            0,
            "12h is less than the topic guarantees, 1d; pass --less-than-source",
        ),
        ("shorter, and that is wanted", decide(OLD, NEW, wanted=rules("ord.*=12h", less=True)), 60, ""),
        (
            "a size, and the topic has none",
            decide(OLD, NEW, wanted=rules("ord.*=forever,150")),
            0,
            "is less than the topic guarantees",
        ),
        ("a size, and that is wanted", decide(OLD, NEW, wanted=rules("ord.*=forever,150", less=True)), 50, ""),
        (
            "a size of the topic, none archived beyond",
            decide(backup(20, 0, 50, Guarantee(NO_LIMIT, 9999)), backup(1, 60, 90, Guarantee(NO_LIMIT, 9999))),
            0,
            "too young",
        ),
        (
            "a size of the topic",
            decide(backup(20, 0, 50, Guarantee(NO_LIMIT, 300)), backup(1, 60, 90, Guarantee(NO_LIMIT, 300))),
            40,
            "",
        ),
        (
            "no grace",
            decide(
                backup(20, 0, 50, Guarantee(7 * DAY_MS)),
                backup(1, 90, 90, Guarantee(1000)),
                wanted=SourceRetention((AS_THE_SOURCE,), timedelta(0)),
            ),
            90,
            "",
        ),
        (
            "no grace, and less than the guarantee before",
            decide(backup(20, 0, 50, Guarantee()), NEW, wanted=rules("orders=5d", grace=timedelta(0))),
            50,
            "",
        ),
        ("no times: the last one came with the newest", decide(OLD, NEW, times=(-1,) * 6), 50, "too young"),
        ("no times, first archived yesterday", decide(backup(20, 0, 0), NEW, times=(-1,) * 6), 0, ""),
    ],
)
def test_the_reason_for_each_topic(why: str, plan: TrimPlan, floor: int, reason: str) -> None:
    first = next(t for t in plan.topics if t.topic_id == ORDERS[1])
    assert plan.floors.get(LOG, 0) == floor, (why, first)
    assert reason.replace("1 partition", "1 partition") in first.reason, why
    assert first.trimmed == bool(floor)


def test_partitions_are_trimmed_each_on_its_own() -> None:
    other = log_of(partition=1)
    cuts = {LOG: Range(0, 50), other: Range(0, 50)}
    old = BackupFacts(1, NOW - timedelta(days=20), cuts, {ORDERS: DAY})
    new = BackupFacts(2, NOW - timedelta(days=1), {LOG: Range(50, 60), other: Range(10, 60)}, {ORDERS: DAY})
    row = ArchivedRow(0, 10, 1, 100, 5, 5)
    plan = plan_trim(ArchiveFacts((old, new), new, {LOG: [row], other: [row]}), SOURCE, NOW)
    assert plan.floors == {LOG: 10, other: 10}
    assert verdict(plan).partitions == 2


@pytest.mark.parametrize(
    ("text", "wrong"),
    [
        ("orders", "must be RE=TIME"),
        ("=7d", "must be RE=TIME"),
        ("orders=", "must be a duration"),
        ("orders=7", "must be a duration"),
        ("orders=7d,", "must be a size"),
        ("orders=7d,big", "must be a size"),
        ("ord(ers=7d", "is not a pattern"),
    ],
)  # fmt: skip
def test_a_wrong_rule_is_refused(text: str, wrong: str) -> None:
    with pytest.raises(ValueError, match=wrong):
        TopicRetentions().from_flags((text,))


def test_rules_from_a_file_and_a_variable_are_the_same() -> None:
    kind = TopicRetentions()
    expected = kind.from_flags(("a=source", "b.*=30d,1GiB", "c=forever"))
    assert [(r.time_ms, r.size_bytes) for r in expected] == [
        ("source", "source"),
        (30 * DAY_MS, 1 << 30),
        (NO_LIMIT, NO_LIMIT),
    ]
    assert kind.from_yaml({"a": "source", "b.*": "30d,1GiB", "c": "forever"}) == expected
    assert kind.from_yaml(["a=source", "b.*=30d,1GiB", "c=forever"]) == expected
    assert kind.parse(kind.show(expected)) == expected
