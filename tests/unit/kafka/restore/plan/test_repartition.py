"""The plan for a topic that gets another number of partitions: decided from values."""

import msgspec
import pytest

from logkeep.errors import TargetUnsafe, UsageError
from logkeep.kafka.admin.offsets import LogBounds
from logkeep.kafka.client.topology import TopicPartition
from logkeep.kafka.record.documents import ClusterRecord, TopicRecord
from logkeep.kafka.restore.facts.survey_task import LogSurvey
from logkeep.kafka.restore.facts.target import TargetFacts, TargetTopic
from logkeep.kafka.restore.facts.units import Offsets
from logkeep.kafka.restore.plan.plan import plan_restore
from logkeep.kafka.restore.plan.repartition import LARGEST_MADE_BYTES, MOST_RECORDS
from logkeep.kafka.restore.plan.selection import RestoreSelection, select_logs
from logkeep.kafka.restore.plan.values import CheckedPlan, PlanOptions, RestorePlan
from logkeep.model.segments import Collection, LogName
from logkeep.repository.backups.manifest import LogCut

DEFAULTS = {"max.message.bytes": "1000", "retention.ms": "-1"}
NAMES = ("orders", "audit")


def _log(topic: str, partition: int) -> LogName:
    return LogName(Collection.TOPICS, topic, "0" * 32, partition)


LOGS = [_log(topic, p) for topic in NAMES for p in range(2)]
RECORD = ClusterRecord(
    repository="r",
    source="s",
    id=1,
    cluster_id="from",
    topics=tuple(TopicRecord(name, "0" * 32, False, 2, 1, {}) for name in NAMES),
    logs=(),
    open_transactions=(),
    groups=(),
    acls=None,
    quotas=(),
)


def _planned(
    *repartition: str, wishes: PlanOptions | None = None, there: tuple[TargetTopic, ...] = (), records: int = 100
) -> CheckedPlan:
    chosen = select_logs(RECORD, [LogCut(log, 0, 200) for log in LOGS], RestoreSelection(repartition=repartition))
    surveys = {log: LogSurvey(log=log, start=0, end=200, records=records, bytes=9001) for log in LOGS}
    topics = {t.name: t for t in there}
    target = TargetFacts("to", False, (1,), frozenset(topics), topics, DEFAULTS)
    return plan_restore(RECORD, chosen, surveys, target, wishes or PlanOptions(), 2, 5, 0)


def _there(name: str, *ends: int) -> TargetTopic:
    return TargetTopic(name, "1" * 32, False, tuple(LogBounds(0, end, end, 0) for end in ends))


def test_every_partition_gets_a_share_of_every_log() -> None:
    plan = _planned("orders=3").plan
    spread = [(log.log.partition, log.partition, log.spread_over) for log in plan.logs if log.topic == "orders"]
    assert spread == [(source, partition, 3) for source in range(2) for partition in range(3)]
    assert [(log.log.partition, log.partition, log.spread_over) for log in plan.logs if log.topic == "audit"] == [
        (0, 0, 0),
        (1, 1, 0),
    ]
    assert plan.targets == tuple(TopicPartition(t, p) for t, n in (("orders", 3), ("audit", 2)) for p in range(n))
    assert (plan.records, plan.bytes) == (400, 4 * 9001)
    assert {t.name: t.partitions for t in plan.topics} == {"orders": 3, "audit": 2}
    assert plan == msgspec.json.decode(msgspec.json.encode(plan), type=RestorePlan)


def test_it_is_said_and_costs_time() -> None:
    plain, spread = _planned(), _planned("orders=3")
    assert spread.plan.offsets is Offsets.TRANSLATE
    assert "another number of partitions" in spread.plan.why
    (finding,) = spread.findings
    assert (finding.code, finding.where) == ("repartitioned", "orders")
    assert "records of 2 partitions are spread over 3" in finding.what
    assert spread.seconds > plain.seconds > 0


def test_batches_that_are_made_fit() -> None:
    limits = {t.name: int(t.while_restoring["max.message.bytes"]) for t in _planned("orders=3").plan.topics}
    assert limits["orders"] > LARGEST_MADE_BYTES > limits["audit"]


def test_offsets_cannot_be_kept() -> None:
    with pytest.raises(UsageError, match="cannot keep the offsets"):
        _planned("orders=3", wishes=PlanOptions(offsets=Offsets.PRESERVE))


def test_records_are_appended_where_they_are_looked_for() -> None:
    existing = PlanOptions(into_existing=True)
    fits = _planned("orders=3", wishes=existing, there=(_there("orders", 7, 8, 9),))
    assert fits.refusals == ()
    assert [log.base for log in fits.plan.logs if log.topic == "orders"] == [7, 8, 9, 7, 8, 9]
    for ends in ((7, 8), (7, 8, 9, 10)):
        (refusal,) = _planned("orders=3", wishes=existing, there=(_there("orders", *ends),)).refusals
        assert isinstance(refusal, TargetUnsafe)
        assert f"it has {len(ends)} partitions" in refusal.what


def test_a_log_that_is_too_long_for_its_map_is_refused() -> None:
    assert not _planned("orders=3", records=MOST_RECORDS).refusals
    refused = _planned("orders=3", records=MOST_RECORDS + 1).refusals
    assert [r.subject for r in refused] == ["orders/0", "orders/1"]
    assert not _planned(records=MOST_RECORDS + 1).refusals
    (told,) = [f.what for f in _planned("orders=3", records=10_000_000).findings if f.code == "repartitioned"]
    assert "457 MiB of memory" in told


@pytest.mark.parametrize(
    ("wrong", "told"),
    [
        (("nobody=3",), "nobody is not among the topics"),
        (("orders=0",), "not a number of partitions"),
        (("orders=100001",), "not a number of partitions"),
        (("orders",), "not a number of partitions"),
        (("orders=-3",), "not a number of partitions"),
        (("orders=3", "orders=4"), "two numbers"),
    ],
)
def test_what_cannot_be_meant(wrong: tuple[str, ...], told: str) -> None:
    with pytest.raises(UsageError, match=told):
        _planned(*wrong)
