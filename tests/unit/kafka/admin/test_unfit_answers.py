"""A broker that answers about something else, with nothing, or with absurd numbers ends in one of our errors."""

from collections.abc import Callable, Iterator
from contextlib import suppress
from uuid import UUID

import pytest

from logkeep.errors import ClusterError, ClusterNotReady, InvalidAnswer
from logkeep.kafka.admin import offsets, permissions, producers, security, topic_changes, topics, transactions
from logkeep.kafka.admin.group_changes import commit_offsets, delete_groups, forget_offsets
from logkeep.kafka.admin.groups import CommittedOffset, Group, describe_groups, group_offsets, list_groups
from logkeep.kafka.admin.topics import ResourceKind, config_number, describe_configs
from logkeep.kafka.client.cluster import Cluster
from logkeep.kafka.client.retry import Backoff
from logkeep.kafka.client.settings import ClientSettings, endpoints
from logkeep.kafka.client.topology import TopicPartition
from logkeep.kafka.restore.facts.target import gather_target
from tests.support.hostile.broker import HostileBroker, Lie

LOG = TopicPartition("orders", 0)
QUOTA = security.Quota((("user", "alice"),), (("producer_byte_rate", 1.0),))
RULE = security.AclBinding("TOPIC", "orders", "LITERAL", "User:alice", "*", "READ", "ALLOW")
OWNED = producers.ProducerId(7, 0)
ASKED: dict[str, tuple[tuple[str, ...], Callable[[Cluster], object]]] = {
    "metadata": (("Metadata",), lambda c: (c.metadata(), c.metadata(["orders"]))),
    "target": (("Metadata", "CreateTopics", "DescribeConfigs"), lambda c: gather_target(c, ["orders", "new"], "id")),
    "configs": (("DescribeConfigs",), lambda c: describe_configs(c, ResourceKind.TOPIC, ["orders"])),
    "broker": (("DescribeConfigs",), lambda c: describe_configs(c, ResourceKind.BROKER, ["1"])),
    "sizes": (("DescribeLogDirs",), topics.replica_sizes),
    "create": (("CreateTopics",), lambda c: topic_changes.create_topics(c, [topic_changes.NewTopic("new", 1, 1)])),
    "delete": (("DeleteTopics",), lambda c: topic_changes.delete_topics(c, {"orders": UUID(int=7)})),
    "alter": (("IncrementalAlterConfigs",), lambda c: topic_changes.alter_topic_configs(
        c, {"orders": topic_changes.ConfigChange({"retention.ms": "1"})})),
    "records": (("DeleteRecords",), lambda c: topic_changes.delete_records(c, {LOG: 1})),
    "offsets": (("ListOffsets",), lambda c: offsets.log_bounds(c, [LOG])),
    "epochs": (("OffsetForLeaderEpoch",), lambda c: offsets.offset_for_leader_epoch(c, {LOG: 0})),
    "producers": (("DescribeProducers",), lambda c: offsets.describe_producers(c, [LOG])),
    "groups": (("ListGroups",), list_groups),
    "described": (("FindCoordinator", "DescribeGroups"), lambda c: describe_groups(c, [Group("g", "classic", "", "")])),
    "positions": (("FindCoordinator", "OffsetFetch"), lambda c: group_offsets(c, ["g"])),
    "commit": (("FindCoordinator",), lambda c: commit_offsets(c, {"g": {LOG: CommittedOffset(1, 0, "")}})),
    "forget": (("FindCoordinator", "OffsetDelete"), lambda c: forget_offsets(c, {"g": [LOG]})),
    "drop": (("FindCoordinator", "DeleteGroups"), lambda c: delete_groups(c, ["g"])),
    "acls": (("DescribeAcls",), security.list_acls),
    "quotas": (("DescribeClientQuotas",), security.list_quotas),
    "users": (("DescribeUserScramCredentials",), security.scram_users),
    "new acls": (("CreateAcls",), lambda c: security.create_acls(c, [RULE])),
    "new quotas": (("AlterClientQuotas",), lambda c: security.alter_quotas(c, [QUOTA])),
    "rights": (("Metadata",), lambda c: permissions.topic_operations(c, ["orders"])),
    "cluster rights": (("DescribeCluster",), permissions.cluster_operations),
    "id rights": (("DescribeTransactions",), lambda c: permissions.transactional_describe_code(c, "t")),
    "write rights": (("EndTxn",), lambda c: permissions.transactional_write_code(c, "t")),
    "producer": (("InitProducerId",), producers.new_producer_id),
    "claimed": (("FindCoordinator", "InitProducerId"), lambda c: producers.begin_producer(c, "t", 1000)),
    "added": (("AddPartitionsToTxn",), lambda c: producers.add_partitions(c, "t", OWNED, [LOG])),
    "transactions": (("ListTransactions",), transactions.list_transactions),
    "transaction": (("FindCoordinator",), lambda c: transactions.describe_transactions(c, ["t"])),
}  # fmt: skip


@pytest.fixture(scope="module")
def broker() -> Iterator[HostileBroker]:
    with HostileBroker(topic="orders", permissive=True) as running:
        yield running


@pytest.fixture
def cluster(broker: HostileBroker) -> Iterator[Cluster]:
    broker.lies = {}
    backoff = Backoff(attempts=2, sleep=lambda _: None)
    with Cluster(ClientSettings(endpoints(broker.address)), backoff=backoff) as made:
        yield made


@pytest.mark.parametrize("lie", Lie)
@pytest.mark.parametrize("asked", ASKED)
def test_every_question_survives_every_lie(broker: HostileBroker, cluster: Cluster, asked: str, lie: Lie) -> None:
    apis, ask = ASKED[asked]
    for api in apis:
        broker.lies = {api: lie}
        with suppress(ClusterError):
            ask(cluster)


@pytest.mark.parametrize(
    ("asked", "lie", "kind"),
    (
        ("configs", Lie.OTHER_NAME, InvalidAnswer),
        ("delete", Lie.OTHER_NAME, InvalidAnswer),
        ("new acls", Lie.EMPTY, InvalidAnswer),
        ("new quotas", Lie.OTHER_NAME, InvalidAnswer),
        ("id rights", Lie.EMPTY, InvalidAnswer),
        ("commit", Lie.OTHER_NAME, ClusterNotReady),
    ),
)
def test_what_does_not_fit_is_not_used(
    broker: HostileBroker, cluster: Cluster, asked: str, lie: Lie, kind: type[ClusterError]
) -> None:
    apis, ask = ASKED[asked]
    broker.lies = {apis[-1]: lie}
    with pytest.raises(kind):
        ask(cluster)


def test_configs_that_are_no_numbers() -> None:
    texts = {"a": "12", "b": "-1", "c": "many", "d": "", "e": "9" * 5000, "f": "٣", "g": "1e3"}
    assert [config_number(texts, name) for name in (*texts, "missing")] == [12, -1, -1, -1, -1, -1, -1, -1]
