"""A restore decided from values: offsets, topics, ends, what it costs, and what has to be said about it."""

import msgspec
import pytest

from logkeep.errors import Damaged, TargetUnsafe, UsageError
from logkeep.formats.kafka.restore.merge_batches import BatchMergeRule
from logkeep.kafka.admin.offsets import LogBounds
from logkeep.kafka.logs.log_traits import LogTraits
from logkeep.kafka.record.documents import ClusterRecord, PartitionRecord, TopicRecord
from logkeep.kafka.restore.facts.survey_task import Cut, LogSurvey
from logkeep.kafka.restore.facts.target import TargetFacts, TargetTopic
from logkeep.kafka.restore.facts.units import Offsets
from logkeep.kafka.restore.plan.plan import plan_restore
from logkeep.kafka.restore.plan.selection import RestoreSelection, SelectedLogs, select_logs
from logkeep.kafka.restore.plan.values import CheckedPlan, PlanOptions, RestorePlan
from logkeep.kafka.restore.topics import merge_configs
from logkeep.model.segments import Collection, LogName
from logkeep.repository.backups.manifest import LogCut

NOW_MS = 1_800_000_000_000
DAY_MS = 86_400_000
DEFAULTS = {
    "retention.ms": str(7 * DAY_MS),
    "retention.bytes": "-1",
    "cleanup.policy": "delete",
    "max.message.bytes": "1048588",
    "message.timestamp.after.max.ms": "3600000",
    "message.timestamp.before.max.ms": str(2**63 - 1),
    "message.timestamp.type": "CreateTime",
    "compression.type": "producer",
    "segment.bytes": "1073741824",
    "min.insync.replicas": "1",
}


def _log(partition: int) -> LogName:
    return LogName(Collection.TOPICS, "orders", "0" * 32, partition)


def _record(configs: dict[str, str] | None = None, replicas: int = 1) -> ClusterRecord:
    traits = LogTraits(5_000_000)
    return ClusterRecord(
        repository="r",
        source="s",
        id=1,
        cluster_id="from",
        topics=(TopicRecord("orders", "0" * 32, False, 2, replicas, configs or {}),),
        logs=tuple(PartitionRecord("orders", p, "0" * 32, 10, 100, 100, 0, traits=traits) for p in range(2)),
        open_transactions=(),
        groups=(),
        acls=None,
        quotas=(),
    )


def _survey(partition: int, **more: object) -> LogSurvey:
    counts = {"records": 90, "bytes": 9000, "first_time_ms": NOW_MS - DAY_MS, **more}
    return LogSurvey(log=_log(partition), start=10, **{"end": 100, **counts})  # type: ignore[arg-type]  # a test's own


def _target(**topics: tuple[int, int]) -> TargetFacts:
    """Topics by name with log start and end of their two partitions."""
    there = {
        name: TargetTopic(name, "1" * 32, False, (LogBounds(*bounds[:1], bounds[1], bounds[1], 0),) * 2)
        for name, bounds in topics.items()
    }
    return TargetFacts("to", False, (1, 2), frozenset(there), there, DEFAULTS)


def _planned(
    wishes: PlanOptions | None = None,
    *,
    record: ClusterRecord | None = None,
    target: TargetFacts | None = None,
    surveys: tuple[LogSurvey, ...] = (),
    mark: int = 5,
) -> CheckedPlan:
    source = record or _record()
    chosen: SelectedLogs = select_logs(source, [LogCut(_log(p), 10, 100) for p in range(2)], RestoreSelection())
    found = {s.log: s for s in surveys or (_survey(0), _survey(1))}
    return plan_restore(source, chosen, found, target or _target(), wishes or PlanOptions(), 2, mark, NOW_MS)


def test_offsets_are_kept_where_that_is_cheap() -> None:
    foreseen = _planned()
    assert (foreseen.refusals, foreseen.findings) == ((), ())
    assert foreseen.plan.offsets is Offsets.PRESERVE
    assert [(log.topic, log.partition, log.base, log.start, log.end) for log in foreseen.plan.logs] == [
        ("orders", 0, 0, 10, 100),
        ("orders", 1, 0, 10, 100),
    ]
    assert (foreseen.plan.records, foreseen.plan.bytes) == (180, 18_000)


def test_a_hundred_thousand_holes_are_too_many_unless_asked_for() -> None:
    holed = (_survey(0, holes=100_000, missing=100_000), _survey(1))
    foreseen = _planned(surveys=holed)
    assert foreseen.plan.offsets is Offsets.TRANSLATE
    assert "more than 10 min" in foreseen.plan.why
    asked = _planned(PlanOptions(offsets=Offsets.PRESERVE), surveys=holed)
    assert asked.plan.offsets is Offsets.PRESERVE
    assert [f.code for f in asked.findings] == ["offsets-cost"]


def test_records_are_appended_to_what_is_there_when_that_is_asked_for() -> None:
    filled = _target(orders=(0, 40))
    assert [type(e) for e in _planned(target=filled).refusals] == [TargetUnsafe]
    foreseen = _planned(PlanOptions(into_existing=True), target=filled)
    assert foreseen.refusals == ()
    assert foreseen.plan.offsets is Offsets.TRANSLATE
    assert [log.base for log in foreseen.plan.logs] == [40, 40]
    kept = _planned(PlanOptions(into_existing=True, offsets=Offsets.PRESERVE), target=filled)
    assert [type(e) for e in kept.refusals] == [TargetUnsafe]


def test_topics_are_large_enough_and_have_their_mark() -> None:
    (topic,) = _planned(record=_record({"retention.ms": "-1"})).plan.topics
    assert int(topic.while_restoring["max.message.bytes"]) >= 5_500_000
    assert topic.while_restoring["message.timestamp.after.max.ms"] == str(2**63 - 1 - 5)
    assert topic.final == {"retention.ms": "-1"}
    (other,) = _planned(record=_record({"retention.ms": "-1"}), mark=6).plan.topics
    assert other.while_restoring != topic.while_restoring


def test_topics_that_were_there_have_no_mark() -> None:
    (topic,) = _planned(PlanOptions(into_existing=True), target=_target(orders=(0, 0))).plan.topics
    assert topic.existing
    assert topic.while_restoring["message.timestamp.after.max.ms"] == str(2**63 - 1)


@pytest.mark.parametrize(
    ("configs", "told"),
    [
        ({"retention.ms": str(DAY_MS // 2)}, True),
        ({"retention.ms": str(DAY_MS * 2)}, False),
        ({"retention.ms": "-1"}, False),
        ({"retention.bytes": "1000"}, True),
        ({"retention.bytes": "100000"}, False),
        ({"retention.ms": str(DAY_MS // 2), "cleanup.policy": "compact"}, False),
    ],
)
def test_what_retention_would_delete_at_once_is_said(configs: dict[str, str], told: bool) -> None:
    found = [f.code for f in _planned(record=_record(configs)).findings]
    assert found == (["retention-deletes"] if told else [])
    kept = _planned(PlanOptions(keep_all=True), record=_record(configs))
    assert kept.findings == ()
    assert kept.plan.topics[0].final["retention.ms"] == "-1"


def test_a_default_retention_counts_too() -> None:
    old = (_survey(0, first_time_ms=NOW_MS - 30 * DAY_MS), _survey(1))
    (finding,) = _planned(surveys=old).findings
    assert (finding.code, finding.where) == ("retention-deletes", "orders")
    assert "1 partition" in finding.what


def test_parts_without_records() -> None:
    assert _planned(PlanOptions(parts=("acls",))).plan.topics == ()
    only_configs = _planned(PlanOptions(parts=("configs",))).plan
    assert (len(only_configs.topics), only_configs.logs) == (1, ())


def test_a_damaged_log_and_a_time_before_the_archive_are_refused() -> None:
    with pytest.raises(Damaged, match="half of it"):
        _planned(surveys=(_survey(0, damage="half of it is gone"), _survey(1)))
    before = tuple(_survey(p, cut=Cut.BEFORE, end=10, records=0) for p in range(2))
    with pytest.raises(UsageError, match="nothing would be restored"):
        _planned(PlanOptions(until_ms=1), surveys=before)


def test_too_few_brokers() -> None:
    with pytest.raises(TargetUnsafe, match="3 replicas are requested") as refused:
        _planned(record=_record(replicas=3))
    assert "--replication-factor 2" in refused.value.remedy
    assert (
        _planned(PlanOptions(replication_factor=1), record=_record(replicas=3)).plan.topics[0].replication_factor == 1
    )


def test_only_what_a_restore_changes_is_changed_back() -> None:
    (plan,) = _planned(record=_record({"flush.ms": "1000", "retention.ms": "-1"})).plan.topics
    now = {**plan.while_restoring, "flush.ms": "5", "segment.ms": "7"}
    back = merge_configs(plan, now, plan.final)
    assert back == {"flush.ms": "5", "segment.ms": "7", "retention.ms": "-1"}, "others were set meanwhile: they stay"
    assert merge_configs(plan, plan.final, plan.while_restoring) == plan.while_restoring


def _merging(**survey: object) -> CheckedPlan:
    return _planned(surveys=(_survey(0, **survey), _survey(1, **survey)))


def test_small_batches_are_merged_to_the_largest_archived_one() -> None:
    """The rule is part of the plan; the topic of the same plan limits it."""
    for largest, most in ((0, 64 << 10), (65_000, 64 << 10), (200_000, 200_000), (50_000_000, 1 << 20)):
        plan = _merging(largest_batch_bytes=largest).plan
        assert [plan.merge_rule(log) for log in plan.logs] == [
            BatchMergeRule(small_bytes=16 << 10, most_bytes=most),
        ] * 2
        assert plan.merges
        again = msgspec.json.decode(msgspec.json.encode(plan), type=RestorePlan)
        assert (again, again.merges) == (plan, True)


def test_a_merged_batch_is_never_above_the_limit_of_its_topic() -> None:
    plan = _merging().plan
    small = {**plan.topics[0].while_restoring, "max.message.bytes": "5000"}
    lowered = msgspec.structs.replace(plan, topics=(msgspec.structs.replace(plan.topics[0], while_restoring=small),))
    assert {rule.most_bytes for log in lowered.logs if (rule := lowered.merge_rule(log))} == {5000}
    del small["max.message.bytes"]
    unknown = msgspec.structs.replace(lowered, topics=(msgspec.structs.replace(plan.topics[0], while_restoring=small),))
    assert [unknown.merge_rule(log) for log in unknown.logs] == [None, None], (
        "a limit that is not known is none to fill"
    )


def test_a_plan_of_an_earlier_release_is_resumed_unmerged() -> None:
    """Its logs have no rule: the field is absent, and stays so when the plan is written again."""
    plan = _merging().plan
    stored = msgspec.json.decode(msgspec.json.encode(plan))
    for log in stored["logs"]:
        del log["merge"]
    early = msgspec.json.decode(msgspec.json.encode(stored), type=RestorePlan)
    assert ([early.merge_rule(log) for log in early.logs], early.merges) == ([None, None], False)
    assert b"merge" not in msgspec.json.encode(early)
