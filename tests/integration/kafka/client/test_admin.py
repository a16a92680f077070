"""What the admin calls say is what another client, Apache's tools or the broker's own disk say."""

import base64
import contextlib
import uuid
from collections.abc import Iterator
from pathlib import Path

import pytest
from confluent_kafka import Consumer, Producer
from confluent_kafka import TopicPartition as Position
from confluent_kafka.admin import AdminClient, OffsetSpec

from logkeep.embedded.kafka import EmbeddedKafka
from logkeep.errors import TopicMissing
from logkeep.kafka.admin import coordinators as coordinators_module
from logkeep.kafka.admin.groups import (
    CommittedOffset,
    Group,
    describe_groups,
    group_offsets,
    list_groups,
    share_group_offsets,
)
from logkeep.kafka.admin.offsets import (
    At,
    EpochEnd,
    IsolationLevel,
    LogBounds,
    describe_producers,
    list_offsets,
    log_bounds,
    offset_for_leader_epoch,
)
from logkeep.kafka.admin.security import Quota, list_acls, list_quotas
from logkeep.kafka.admin.topics import (
    ResourceKind,
    describe_configs,
    replica_sizes,
    topic_configs,
)
from logkeep.kafka.admin.transactions import describe_transactions, list_transactions
from logkeep.kafka.client import cluster as cluster_module
from logkeep.kafka.client.cluster import Cluster
from logkeep.kafka.client.topology import TopicPartition
from tests.support.kafka.single_topic import create_topic, delete_topic
from tests.support.processes import wait_for

pytestmark = pytest.mark.xdist_group("kafka-secured")


def _name(stem: str) -> str:
    return f"{stem}-{uuid.uuid4().hex[:8]}"


def _write(kafka: EmbeddedKafka, topic: str, times_ms: list[int], partition: int = 0) -> None:
    producer = Producer({"bootstrap.servers": kafka.bootstrap, "linger.ms": 0})
    for number, time_ms in enumerate(times_ms):
        producer.produce(topic, f"value {number}", partition=partition, timestamp=time_ms)
        producer.flush()


@contextlib.contextmanager
def _open_transaction(kafka: EmbeddedKafka, topic: str, transactional_id: str) -> Iterator[None]:
    producer = Producer({"bootstrap.servers": kafka.bootstrap, "transactional.id": transactional_id})
    producer.init_transactions(30)
    producer.begin_transaction()
    producer.produce(topic, b"undecided", partition=0)
    producer.flush(30)
    try:
        yield
    finally:
        producer.abort_transaction(30)


def test_metadata_is_what_another_client_sees(kafka: EmbeddedKafka, cluster: Cluster) -> None:
    topic = create_topic(cluster, _name("seen"), partitions=3)
    found = cluster.metadata()
    other = AdminClient({"bootstrap.servers": kafka.bootstrap}).list_topics(timeout=20)
    assert found.cluster_id == other.cluster_id
    assert [(b.node, str(b.endpoint)) for b in found.brokers] == [(1, kafka.bootstrap)]
    assert {t.name: len(t.partitions) for t in found.topics} == {n: len(t.partitions) for n, t in other.topics.items()}
    mine = found.topic(topic.name)
    assert mine == topic == cluster.metadata([topic.name]).topics[0]
    assert [(p.leader, p.leader_epoch, p.replicas) for p in topic.partitions] == [(1, 0, (1,))] * 3
    written = kafka.directory / "data" / f"{topic.name}-0" / "partition.metadata"
    wait_for(written.exists, "the broker to write down what it has told already")
    ids = written.read_text()
    assert uuid.UUID(bytes=_kafka_id(ids.split("topic_id:")[1].strip())) == topic.id


def _kafka_id(text: str) -> bytes:
    return base64.urlsafe_b64decode(text + "==")


def test_a_topic_made_again_has_another_id(cluster: Cluster) -> None:
    first = create_topic(cluster, _name("again"))
    delete_topic(cluster, first)
    wait_for(lambda: cluster.metadata().topic(first.name) is None, "the broker to hear of it")
    with pytest.raises(TopicMissing) as caught:
        cluster.metadata([first.name])
    assert caught.value.exit_code == 40
    second = create_topic(cluster, first.name)
    assert second.id != first.id
    delete_topic(cluster, first)
    assert cluster.metadata([first.name]).topics[0].id == second.id


def test_bounds_with_a_deleted_head_and_an_open_transaction(kafka: EmbeddedKafka, cluster: Cluster) -> None:
    topic = create_topic(cluster, _name("bounds"), partitions=2).name
    log, empty = TopicPartition(topic, 0), TopicPartition(topic, 1)
    _write(kafka, topic, [1000, 5000, 3000, 4000])
    admin = AdminClient({"bootstrap.servers": kafka.bootstrap})
    for each in admin.delete_records([Position(topic, 0, 1)]).values():
        each.result(30)
    with _open_transaction(kafka, topic, topic):
        found = log_bounds(cluster, [log, empty])
        assert found == {log: LogBounds(1, 4, 5, 0), empty: LogBounds(0, 0, 0, 0)}
        (state,) = [each for each in describe_producers(cluster, [log])[log] if each.open_since >= 0]
        assert (state.open_since, state.last_sequence) == (4, 0)
        assert list_transactions(cluster, states=["Ongoing"])[0].transactional_id == topic
        told = describe_transactions(cluster, [topic, "no such id"])
        assert list(told) == [topic]
        assert (told[topic].state, told[topic].producer_id) == ("Ongoing", state.producer_id)
        assert told[topic].partitions == (log,)
    wait_for(lambda: log_bounds(cluster, [log])[log] == LogBounds(1, 6, 6, 0), "the abort marker")
    assert list_transactions(cluster, states=["Ongoing"]) == ()


def test_times_are_looked_up_as_another_client_does(kafka: EmbeddedKafka, cluster: Cluster) -> None:
    topic = create_topic(cluster, _name("times")).name
    log = TopicPartition(topic, 0)
    _write(kafka, topic, [1000, 5000, 3000, 4000])
    admin = AdminClient({"bootstrap.servers": kafka.bootstrap})
    specs = {
        At.EARLIEST: OffsetSpec.earliest(),
        At.LATEST: OffsetSpec.latest(),
        At.MAX_TIMESTAMP: OffsetSpec.max_timestamp(),
        2000: OffsetSpec.for_timestamp(2000),
        5001: OffsetSpec.for_timestamp(5001),
    }
    for at, spec in specs.items():
        (expected,) = [each.result(30) for each in admin.list_offsets({Position(topic, 0): spec}).values()]
        found = list_offsets(cluster, [log], at, isolation=IsolationLevel.UNCOMMITTED)[log]
        assert (found.offset, found.timestamp_ms) == (expected.offset, expected.timestamp), at
    assert list_offsets(cluster, {log: 3500})[log].offset == 1
    assert list_offsets(cluster, [log], 9999)[log].offset == -1


def test_epochs_end_where_the_log_ends(kafka: EmbeddedKafka, cluster: Cluster) -> None:
    topic = create_topic(cluster, _name("epochs")).name
    _write(kafka, topic, [1, 2, 3])
    log = TopicPartition(topic, 0)
    assert offset_for_leader_epoch(cluster, {log: 0}) == {log: EpochEnd(0, 3)}
    assert offset_for_leader_epoch(cluster, {log: 7}) == {log: EpochEnd(-1, -1)}


def test_sizes_are_those_of_the_files(kafka: EmbeddedKafka, cluster: Cluster) -> None:
    topic = create_topic(cluster, _name("sizes"), partitions=2).name
    _write(kafka, topic, [1, 2, 3])
    logs = [TopicPartition(topic, 0), TopicPartition(topic, 1)]
    found = {each.log: each for each in replica_sizes(cluster)}
    for log in logs:
        directory = kafka.directory / "data" / str(log)
        assert found[log].size_bytes == sum(path.stat().st_size for path in directory.glob("*.log"))
        assert Path(found[log].directory) == directory.parent
    assert found[logs[0]].size_bytes > 0
    assert found.keys() >= set(logs)


def test_only_configs_that_were_set(cluster: Cluster) -> None:
    chosen = {"retention.ms": "123456789", "cleanup.policy": "compact,delete"}
    first = create_topic(cluster, _name("set"), configs=chosen).name
    second = create_topic(cluster, _name("unset")).name
    found = topic_configs(cluster, [first, second])
    assert {name: dict(configs.own) for name, configs in found.items()} == {first: chosen, second: {}}
    assert "retention.ms" not in found[second].inherited, "a default of Kafka is nobody's choice"
    every = {each.name: each for each in describe_configs(cluster, ResourceKind.TOPIC, [second])[second]}
    assert every["retention.ms"].value == "604800000"
    (rack,) = describe_configs(cluster, ResourceKind.BROKER, ["1"], keys=["node.id"])["1"]
    assert (rack.value, rack.read_only) == ("1", True)
    with pytest.raises(TopicMissing):
        topic_configs(cluster, ["no-such-topic"])


def test_classic_and_consumer_groups(kafka: EmbeddedKafka, cluster: Cluster) -> None:
    topic = create_topic(cluster, _name("read"), partitions=2).name
    _write(kafka, topic, [1, 2, 3])
    for protocol in ("classic", "consumer"):
        name = _name(protocol)
        config = {"bootstrap.servers": kafka.bootstrap, "group.id": name, "group.protocol": protocol}
        consumer = Consumer({**config, "auto.offset.reset": "earliest", "enable.auto.commit": False, "client.id": "me"})
        with contextlib.closing(consumer):
            consumer.subscribe([topic])
            while not consumer.consume(1, 60.0):
                pass
            position = Position(topic, 0, 2, "naïve ✓", 0)
            consumer.commit(offsets=[position], asynchronous=False)
            group = Group(name, protocol, "Stable", "consumer")
            wait_for(lambda wanted=group: wanted in list_groups(cluster), "a group that is done with its partitions")  # type: ignore[misc]  # bound now
            details = describe_groups(cluster, [group])[name]
            assert details.state == "Stable"
            (member,) = details.members
            assert member.client_id == "me"
            if protocol == "consumer":
                assert member.topics == (topic,)
                assert sorted(member.assigned) == [TopicPartition(topic, 0), TopicPartition(topic, 1)]
        # This client sends the terminating zero of C along; what was committed is told exactly.
        expected = {name: {TopicPartition(topic, 0): CommittedOffset(2, 0, "naïve ✓\0")}}
        assert group_offsets(cluster, [name, "no such group"]) == {**expected, "no such group": {}}
        assert group_offsets(cluster, [name], require_stable=True) == expected
    gone = Group("never was", "consumer", "Stable", "consumer")
    assert describe_groups(cluster, [gone]) == {}


def test_share_groups(kafka: EmbeddedKafka, cluster: Cluster) -> None:
    topic = create_topic(cluster, _name("shared")).name
    _write(kafka, topic, [1, 2, 3])
    name = _name("share")
    server = ["--bootstrap-server", kafka.bootstrap]
    command = "org.apache.kafka.tools.consumer.group.ShareGroupCommand"
    where = ["--group", name, "--topic", topic, "--reset-offsets", "--to-latest", "--execute"]
    kafka.java_tool(command, [*server, *where])
    group = next(each for each in list_groups(cluster) if each.name == name)
    assert (group.kind, group.state) == ("share", "Empty")
    assert describe_groups(cluster, [group])[name].members == ()
    found = share_group_offsets(cluster, [name])
    assert {log: commit.offset for log, commit in found[name].items()} == {TopicPartition(topic, 0): 3}


def test_quotas_and_no_authorizer(cluster: Cluster) -> None:
    assert list_acls(cluster) is None
    entity = [{"entity_type": "user", "entity_name": None}, {"entity_type": "client-id", "entity_name": "slow"}]
    ops = [{"key": "consumer_byte_rate", "value": 1024.0, "remove": False}]
    reply = cluster.ask_any("AlterClientQuotas", {"entries": [{"entity": entity, "ops": ops}], "validate_only": False})
    assert [each.error_code for each in reply.entries] == [0]
    made = Quota((("user", None), ("client-id", "slow")), (("consumer_byte_rate", 1024.0),))
    wait_for(lambda: [_sorted(each) for each in list_quotas(cluster)] == [_sorted(made)], "the quota")


def _sorted(quota: Quota) -> tuple[object, ...]:
    return sorted(quota.entity, key=repr), quota.limits


def test_many_partitions_and_groups_are_asked_in_chunks(
    kafka: EmbeddedKafka, cluster: Cluster, monkeypatch: pytest.MonkeyPatch
) -> None:
    topic = create_topic(cluster, _name("many"), partitions=7).name
    monkeypatch.setattr(cluster_module, "_CHUNK", 3)
    monkeypatch.setattr(coordinators_module, "_CHUNK", 2)
    for partition in range(7):
        _write(kafka, topic, [1] * partition, partition)
    logs = [TopicPartition(topic, p) for p in range(7)]
    assert {each.partition: found.offset for each, found in list_offsets(cluster, logs).items()} == {
        p: p for p in range(7)
    }
    assert set(group_offsets(cluster, [f"g{n}" for n in range(5)])) == {f"g{n}" for n in range(5)}
