"""Topics of a restore on a real broker, judged by another client: temporary configs first, in the end the archived."""

import uuid
from collections.abc import Mapping
from typing import Any

import msgspec
import pytest
from confluent_kafka import Producer

from logkeep.embedded.kafka import EmbeddedKafka
from logkeep.errors import ClusterError, RestoreFailed, TargetUnsafe
from logkeep.kafka.admin import topic_changes as new_topics_module
from logkeep.kafka.client.cluster import Cluster
from logkeep.kafka.client.settings import ClientSettings, endpoints
from logkeep.kafka.logs.log_traits import LogTraits
from logkeep.kafka.record.documents import TopicRecord
from logkeep.kafka.restore.facts.target import APIS, gather_target
from logkeep.kafka.restore.plan.topics import DifferenceReason, TopicOptions, TopicPlan, plan_topic
from logkeep.kafka.restore.topics import abort_topics, finish_topics, make_topics, validate_topics
from tests.support.kafka.client_view_of_configs import own_configs, topic_names
from tests.support.kafka.single_topic import create_topic, delete_topic
from tests.support.processes import wait_for

pytestmark = pytest.mark.xdist_group("kafka-secured")
_ARCHIVED = {
    "compacted": {"cleanup.policy": "compact", "min.cleanable.dirty.ratio": "0.01", "segment.ms": "1000"},
    "stamped": {"message.timestamp.type": "LogAppendTime", "compression.type": "zstd"},
    "short": {"retention.ms": "3600000", "max.message.bytes": "3000000", "message.timestamp.before.max.ms": "5000"},
    "plain": {},
}
_MONTH_MS = 30 * 24 * 3600 * 1000


def _planned(cluster: Cluster, archived: Mapping[str, Mapping[str, str]], partitions: int = 2) -> list[TopicPlan]:
    """Plans under names that nobody has yet; `stem` of a name is what it is archived as."""
    stem = uuid.uuid4().hex[:8]
    records = [TopicRecord(f"{name}-{stem}", "0" * 32, False, partitions, 1, dict(c)) for name, c in archived.items()]
    return _plans(cluster, records)


def _plans(cluster: Cluster, records: list[TopicRecord]) -> list[TopicPlan]:
    target = gather_target(cluster, [r.name for r in records], "another")
    wishes, traits = TopicOptions(preserve=True), LogTraits(largest_batch_bytes=5_000_000)
    return [plan_topic(r, target, wishes, name=r.name, partitions=r.partitions, traits=traits) for r in records]


def _write(kafka: EmbeddedKafka, topic: str, time_ms: int) -> None:
    failed: list[Any] = []
    producer = Producer({"bootstrap.servers": kafka.bootstrap, "message.max.bytes": 5_100_000})
    producer.produce(
        topic, b"x" * 4_000_000, b"k", 0, timestamp=time_ms, on_delivery=lambda error, _: failed.append(error)
    )
    producer.flush(30)
    assert failed == [None]


def test_temporary_configs_first_and_the_archived_ones_in_the_end(kafka: EmbeddedKafka, cluster: Cluster) -> None:
    plans = _planned(cluster, _ARCHIVED)
    accepted, errors = validate_topics(cluster, plans)
    assert (accepted, errors) == (plans, [])
    assert not topic_names(kafka) & {p.name for p in plans}, "a trial makes nothing"
    ids = make_topics(cluster, plans, {})
    for plan in plans:
        assert own_configs(kafka, plan.name) == plan.while_restoring
        found = cluster.metadata([plan.name]).topics[0]
        assert (found.id.hex, len(found.partitions)) == (ids[plan.name], 2)
        _write(kafka, plan.name, 1_600_000_000_000 - _MONTH_MS)
    assert make_topics(cluster, plans, ids) == ids, "what is there and ours is fine"
    assert finish_topics(cluster, plans, ids) == []
    for plan, configs in zip(plans, _ARCHIVED.values(), strict=True):
        assert own_configs(kafka, plan.name) == configs
    assert finish_topics(cluster, plans, ids) == [], "may be repeated"
    assert abort_topics(cluster, plans, ids)[1] == []
    wait_for(lambda: not topic_names(kafka) & {p.name for p in plans}, "the topics to go")


def test_the_target_is_described(kafka: EmbeddedKafka, cluster: Cluster) -> None:
    filled = create_topic(cluster, f"there-{uuid.uuid4().hex[:8]}", partitions=2, configs={"retention.ms": "-1"})
    producer = Producer({"bootstrap.servers": kafka.bootstrap})
    producer.produce(filled.name, b"v", partition=1)
    producer.flush(30)
    here = cluster.metadata().cluster_id
    for wanted in ([filled.name, "not-there"], [filled.name]):
        facts = gather_target(cluster, wanted, here)
        assert (facts.cluster_id, facts.is_source, facts.brokers) == (here, True, (1,))
        assert facts.names == topic_names(kafka)
        (topic,) = facts.topics.values()
        assert (topic.id, topic.records, topic.partitions, topic.untouched) == (filled.id.hex, 1, 2, False)
        assert (topic.replicas, topic.configs) == (1, {"retention.ms": "-1"})
        assert {"retention.ms", "segment.bytes"} <= facts.known_configs
        assert facts.defaults["segment.bytes"] == "1073741824"
        assert set(facts.versions) == set(APIS)
    assert gather_target(cluster, ["not-there"], here).defaults["retention.ms"] == "604800000"
    assert not gather_target(cluster, [], "another").is_source


def test_what_this_version_refuses_is_told_and_left_out(kafka: EmbeddedKafka, cluster: Cluster) -> None:
    """Configs that Kafka 3.9 takes: one is gone in 4, and segments must not be as small any more."""
    archived = {"old": {"message.downconversion.enable": "false", "segment.bytes": "1024", "retention.ms": "77"}}
    (plan,), errors = validate_topics(cluster, _planned(cluster, archived))
    assert errors == []
    told = {(d.why, d.config): d.detail for d in plan.differences}
    assert set(told) == {
        (DifferenceReason.UNKNOWN, "message.downconversion.enable"),
        (DifferenceReason.REFUSED, "segment.bytes"),
    }
    assert "at least 1048576" in told[DifferenceReason.REFUSED, "segment.bytes"]
    ids = make_topics(cluster, [plan], {})
    assert finish_topics(cluster, [plan], ids) == []
    assert own_configs(kafka, plan.name) == {"retention.ms": "77"}


def test_what_is_refused_in_the_end_does_not_keep_the_rest(kafka: EmbeddedKafka, cluster: Cluster) -> None:
    (plan,) = _planned(cluster, {"late": {"retention.ms": "77"}})
    ids = make_topics(cluster, [plan], {})
    bad = msgspec.structs.replace(plan, final={"retention.ms": "77", "segment.bytes": "5"})
    (finding,) = finish_topics(cluster, [bad], ids)
    assert (finding.code, finding.where) == ("config-differs", plan.name)
    assert "segment.bytes should be 5" in finding.what
    assert "at least 1048576" in finding.what
    wait_for(lambda: own_configs(kafka, plan.name).get("retention.ms") == "77", "the other config")
    wait_for(lambda: "cleanup.policy" not in own_configs(kafka, plan.name), "what was temporary to go")


def test_topics_whose_ids_were_never_stored_are_recognised(kafka: EmbeddedKafka, cluster: Cluster) -> None:
    plans = _planned(cluster, {"first": {}, "second": {"retention.ms": "5"}})
    ids = make_topics(cluster, plans, {})
    assert make_topics(cluster, plans, {}) == ids
    _write(kafka, plans[1].name, 1000)
    with pytest.raises(TargetUnsafe) as caught:
        make_topics(cluster, plans, {})
    assert caught.value.subject == plans[1].name
    assert abort_topics(cluster, plans, {})[1] == []
    wait_for(lambda: plans[0].name not in topic_names(kafka), "the topic to go")
    assert plans[1].name in topic_names(kafka), "there are records in it that nobody knows"


def test_topics_of_others_and_topics_that_are_gone(kafka: EmbeddedKafka, cluster: Cluster) -> None:
    mine, other = _planned(cluster, {"mine": {}, "other": {}})
    create_topic(cluster, other.name, partitions=2)
    with pytest.raises(TargetUnsafe) as caught:
        make_topics(cluster, [mine, other], {})
    assert (caught.value.exit_code, caught.value.subject) == (31, other.name)
    assert mine.name not in topic_names(kafka), "nothing is made when something is wrong"
    ids = make_topics(cluster, [mine], {})
    delete_topic(cluster, cluster.metadata([mine.name]).topics[0])
    wait_for(lambda: mine.name not in topic_names(kafka), "the topic to go")
    with pytest.raises(RestoreFailed, match="gone"):
        make_topics(cluster, [mine], ids)
    again = create_topic(cluster, mine.name, partitions=2, configs={"retention.ms": "1"})
    assert [f.code for f in finish_topics(cluster, [mine], ids)] == ["topic-gone"]
    assert abort_topics(cluster, [mine], ids)[1] == []
    assert cluster.metadata([mine.name]).topics[0].id == again.id, "a topic made again is not ours to delete"
    assert own_configs(kafka, mine.name) == {"retention.ms": "1"}


def test_topics_that_were_there_get_their_configs_back(kafka: EmbeddedKafka, cluster: Cluster) -> None:
    before = {"cleanup.policy": "compact", "retention.ms": "5", "flush.ms": "1000"}
    for end in (finish_topics, abort_topics):
        topic = create_topic(cluster, f"before-{uuid.uuid4().hex[:8]}", partitions=3, configs=before)
        record = TopicRecord(topic.name, "0" * 32, False, 2, 1, {"retention.ms": "9"})
        (plan,), errors = validate_topics(cluster, _plans(cluster, [record]))
        assert errors == []
        assert [d.why for d in plan.differences] == [DifferenceReason.KEPT]
        ids = make_topics(cluster, [plan], {})
        assert ids == {topic.name: topic.id.hex}
        assert own_configs(kafka, topic.name) == plan.while_restoring
        assert plan.while_restoring["cleanup.policy"] == "delete"
        assert end(cluster, [plan], ids) in ([], ([], []))
        assert own_configs(kafka, topic.name) == before


def test_when_one_topic_is_refused_none_is_left(kafka: EmbeddedKafka, cluster: Cluster) -> None:
    good, bad = _planned(cluster, {"good": {}, "bad": {}})
    bad = msgspec.structs.replace(bad, replication_factor=3)
    _, errors = validate_topics(cluster, [good, bad])
    assert {e.subject for e in errors} == {bad.name}
    with pytest.raises(ClusterError, match="replication factor of 3") as caught:
        make_topics(cluster, [good, bad], {})
    assert caught.value.subject == bad.name
    wait_for(lambda: not {good.name, bad.name} & topic_names(kafka), "the topic to go again")


class _LostReply(Cluster):
    """The reply to the first CreateTopics is lost on the way, so it is asked again."""

    lost = False

    def ask_any(self, api: str, fields: Mapping[str, Any], *, at_most: int | None = None) -> Any:
        if api == "CreateTopics" and not self.lost:
            self.lost = True
            super().ask_any(api, fields, at_most=at_most)
        return super().ask_any(api, fields, at_most=at_most)


def test_a_lost_reply_makes_no_stranger(
    kafka: EmbeddedKafka, cluster: Cluster, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(new_topics_module, "_TOPICS", 2)
    monkeypatch.setattr(new_topics_module, "_PARTITIONS", 5)
    plans = _planned(cluster, {f"many{n}": {} for n in range(5)}, partitions=3)
    with _LostReply(ClientSettings(endpoints(kafka.bootstrap))) as shaky:
        ids = make_topics(shaky, plans, {})
    assert shaky.lost
    assert ids == {t.name: t.id.hex for t in cluster.metadata().topics if t.name in ids}
    assert len(ids) == len(plans)
    assert abort_topics(cluster, plans, ids)[1] == []
