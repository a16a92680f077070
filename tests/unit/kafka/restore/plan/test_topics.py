"""What topics are told while records come in and in the end, decided from values."""

from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from logkeep.errors import TargetUnsafe
from logkeep.kafka.admin.offsets import LogBounds
from logkeep.kafka.admin.topic_changes import change_between
from logkeep.kafka.logs.log_traits import LogTraits
from logkeep.kafka.record.documents import TopicRecord
from logkeep.kafka.restore.facts.target import TargetFacts, TargetTopic
from logkeep.kafka.restore.plan.topics import (
    DifferenceReason,
    TopicDifference,
    TopicOptions,
    TopicPlan,
    difference_findings,
    plan_topic,
    while_restoring,
)
from logkeep.model.findings import Severity

_DEFAULTS = {
    "cleanup.policy": "delete",
    "retention.ms": "604800000",
    "max.message.bytes": "1048588",
    "segment.bytes": "1073741824",
    "segment.ms": "604800000",
    "min.insync.replicas": "1",
    "message.timestamp.type": "CreateTime",
    "leader.replication.throttled.replicas": "",
}
_TARGET = TargetFacts("there", False, (1, 2, 3), frozenset(), defaults=_DEFAULTS, known_configs=frozenset(_DEFAULTS))
_OPTIONS = TopicOptions(preserve=True)
_FOREVER = "9223372036854775807"
_QUIET = {
    "cleanup.policy": "delete",
    "retention.ms": "-1",
    "retention.bytes": "-1",
    "message.timestamp.type": "CreateTime",
    "compression.type": "producer",
    "message.timestamp.before.max.ms": _FOREVER,
    "message.timestamp.after.max.ms": _FOREVER,
}


def _record(configs: dict[str, str] | None = None, *, replicas: int = 3, **inherited: str) -> TopicRecord:
    told = {name.replace("_", "."): value for name, value in inherited.items()}
    return TopicRecord("orders", "0" * 32, False, 4, replicas, configs or {}, told)


def _plan(
    record: TopicRecord,
    target: TargetFacts = _TARGET,
    wishes: TopicOptions = _OPTIONS,
    largest: int | None = 1000,
) -> TopicPlan:
    traits = None if largest is None else LogTraits(largest_batch_bytes=largest)
    return plan_topic(record, target, wishes, name="copy", partitions=4, traits=traits)


def test_a_topic_comes_back_as_it_was_and_is_quiet_meanwhile() -> None:
    own = {"cleanup.policy": "compact", "message.timestamp.type": "LogAppendTime", "retention.ms": "5"}
    plan = _plan(_record(own))
    assert (plan.source, plan.name, plan.partitions, plan.replication_factor) == ("orders", "copy", 4, 3)
    assert plan.final == own
    assert plan.while_restoring == {**_QUIET, "max.message.bytes": "2097152"}
    assert (plan.existing, plan.differences) == (False, ())


@pytest.mark.parametrize(
    ("own", "largest", "preserve", "limit"),
    [
        ({}, 1000, False, 1048588),
        ({}, 1000, True, 2097152),
        ({}, 10_000_000, True, 11_000_012),
        ({"max.message.bytes": "50000000"}, 1000, True, 50_000_000),
        ({}, None, False, 104857600),
        ({}, 2**31 - 1, True, 2**31 - 1),
    ],
)
def test_every_archived_batch_fits(own: dict[str, str], largest: int | None, preserve: bool, limit: int) -> None:
    quiet = while_restoring(own, _DEFAULTS, (), largest_batch_bytes=largest, preserve=preserve, replicas=1)
    assert int(quiet["max.message.bytes"]) == limit
    assert int({**_DEFAULTS, **quiet}["segment.bytes"]) >= limit, "a batch must fit into a segment"


def test_small_segments_grow_for_the_time_of_the_restore() -> None:
    plan = _plan(_record({"segment.bytes": "1048576", "segment.ms": "60000"}))
    assert (plan.while_restoring["segment.bytes"], plan.while_restoring["segment.ms"]) == ("2097152", "60000")
    assert plan.final["segment.bytes"] == "1048576"


def test_tiering_waits_and_throttles_stay_away() -> None:
    throttle = "leader.replication.throttled.replicas"
    own = {"remote.storage.enable": "true", "local.retention.ms": "5", throttle: "0:1"}
    target = replace(_TARGET, known_configs=_TARGET.known_configs | own.keys())
    plan = _plan(_record(own), target)
    assert not own.keys() & plan.while_restoring.keys()
    assert plan.final == {"remote.storage.enable": "true", "local.retention.ms": "5"}
    assert plan.differences == (TopicDifference(DifferenceReason.LEFT_OUT, throttle, "0:1", ""),)


def test_brokers_before_4_have_one_more_limit_of_times() -> None:
    old = "message.timestamp.difference.max.ms"
    target = replace(_TARGET, known_configs=_TARGET.known_configs | {old})
    plan = _plan(_record({old: "77"}), target)
    assert (plan.while_restoring[old], plan.final[old]) == (_FOREVER, "77")
    assert old not in _plan(_record()).while_restoring


def test_what_the_target_does_not_know_is_told() -> None:
    plan = _plan(_record({"message.format.version": "3.0", "retention.ms": "5"}))
    assert plan.final == {"retention.ms": "5"}
    assert "message.format.version" not in plan.while_restoring
    (finding,) = difference_findings([plan, plan])
    assert (finding.code, finding.severity, finding.where) == ("config-unknown", Severity.WARNING, "copy, copy")
    assert "message.format.version=3.0" in finding.what
    blind = _plan(_record({"message.format.version": "3.0"}), replace(_TARGET, known_configs=frozenset()))
    assert blind.final == {"message.format.version": "3.0"}, "not known to be unknown: the brokers will tell"


def test_too_few_brokers() -> None:
    with pytest.raises(TargetUnsafe, match="5 replicas") as caught:
        _plan(_record(replicas=5))
    assert caught.value.exit_code == 31
    assert "--replication-factor 3" in caught.value.remedy
    plan = _plan(_record(replicas=5), wishes=TopicOptions(preserve=True, replication_factor=2))
    assert plan.replication_factor == 2
    assert [d.why for d in plan.differences] == [DifferenceReason.REPLICAS]


def test_more_acknowledgements_than_replicas() -> None:
    one = TopicOptions(preserve=True, replication_factor=1)
    plan = _plan(_record({"min.insync.replicas": "2"}), wishes=one)
    assert plan.while_restoring["min.insync.replicas"] == "1"
    assert plan.final["min.insync.replicas"] == "2"
    assert {d.why for d in plan.differences} == {DifferenceReason.REPLICAS, DifferenceReason.UNWRITABLE}
    inherited = replace(_TARGET, defaults={**_DEFAULTS, "min.insync.replicas": "2"})
    assert _plan(_record(), inherited, one).while_restoring["min.insync.replicas"] == "1"


def test_defaults_of_brokers_that_differ_are_notes() -> None:
    target = replace(_TARGET, inherited={"retention.ms": "604800000", "min.insync.replicas": "1"})
    plan = _plan(_record({"segment.ms": "5"}, retention_ms="1000"), target)
    assert plan.differences == (TopicDifference(DifferenceReason.DEFAULT, "retention.ms", "1000", "604800000"),)
    assert _plan(_record({"retention.ms": "1"}, retention_ms="1000"), target).differences == (), "it has its own"
    assert _plan(_record(retention_ms="604800000"), target).differences == ()
    unsaid = _plan(_record(), target)
    assert unsaid.differences == (TopicDifference(DifferenceReason.DEFAULT, "retention.ms", "", "604800000"),)
    assert [f.severity for f in difference_findings([unsaid])] == [Severity.NOTE]


def test_archived_configs_can_be_left_out() -> None:
    plan = _plan(_record({"retention.ms": "5"}), wishes=TopicOptions(preserve=False, configs=False))
    assert (plan.final, plan.differences) == ({}, ())
    assert plan.while_restoring["retention.ms"] == "-1"


def test_a_topic_that_exists_keeps_its_configs() -> None:
    there = TargetTopic(
        "copy", "ab" * 16, False, (LogBounds(0, 0, 0, 0),) * 6, 2, {"retention.ms": "9", "flush.ms": "1"}
    )
    plan = _plan(_record({"retention.ms": "5", "cleanup.policy": "compact"}), replace(_TARGET, topics={"copy": there}))
    assert (plan.existing_id, plan.partitions, plan.replication_factor) == ("ab" * 16, 6, 2)
    assert plan.final == {"retention.ms": "9", "flush.ms": "1"}
    assert plan.while_restoring == {**_QUIET, "flush.ms": "1", "max.message.bytes": "2097152"}
    assert set(plan.differences) == {
        TopicDifference(DifferenceReason.KEPT, "retention.ms", "5", "9"),
        TopicDifference(DifferenceReason.KEPT, "cleanup.policy", "compact", ""),
    }


_configs = st.dictionaries(st.sampled_from("abcdef"), st.sampled_from("012"))


@given(_configs, _configs)
def test_a_change_leads_exactly_there(present: dict[str, str], wanted: dict[str, str]) -> None:
    change = change_between(present, wanted)
    after = {k: v for k, v in present.items() if k not in change.unset} | dict(change.set)
    assert after == wanted
    assert bool(change) == (present != wanted)
    assert all(present.get(k) != v for k, v in change.set.items()), "what is right is not touched"
