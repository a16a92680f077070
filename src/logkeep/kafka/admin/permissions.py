"""What this user may do in the cluster. No request here changes anything or creates an internal topic.

Coordinators are not looked up: that alone creates `__consumer_offsets` or `__transaction_state` on a new cluster. Any
broker checks the permission before it finds that it is not the coordinator, so its answer shows the permission.
"""

from collections.abc import Collection, Sequence
from uuid import UUID

from logkeep.kafka.admin.security import OPERATIONS
from logkeep.kafka.client.cluster import Cluster
from logkeep.kafka.client.error_codes import check, the_only

_CHUNK = 500
_NOT_REQUESTED = 31
_UNUSED_PRODUCER = 2**62
"""A producer id that no cluster has given to a producer."""


def topic_operations(cluster: Cluster, topics: Sequence[str]) -> dict[str, tuple[int, frozenset[str] | None]]:
    """The error code and the allowed operations of each topic; None = unknown. Also for topics that do not exist."""
    found: dict[str, tuple[int, frozenset[str] | None]] = {}
    for at in range(0, len(topics), _CHUNK):
        asked = [{"name": each, "topic_id": UUID(int=0)} for each in topics[at : at + _CHUNK]]
        fields = {
            "topics": asked,
            "allow_auto_topic_creation": False,
            "include_topic_authorized_operations": True,
        }
        for each in cluster.ask_any("Metadata", fields).topics:
            found[each.name] = each.error_code, _operations(each.authorized_operations)
    return found


def cluster_operations(cluster: Cluster) -> frozenset[str] | None:
    """The operations allowed on the cluster itself; None = unknown, without DESCRIBE."""
    fields = {"include_cluster_authorized_operations": True}
    reply = cluster.ask_any("DescribeCluster", fields)
    check(reply.error_code, subject="cluster", doing="DescribeCluster", message=reply.error_message)
    return _operations(reply.authorized_operations)


def _operations(bits: Collection[int] | None) -> frozenset[str] | None:
    """The names of operations; None = unknown. Brokers report no bits to a user without DESCRIBE, and the highest bit
    if the request did not ask for operations."""
    if not bits or _NOT_REQUESTED in bits:
        return None
    return frozenset(OPERATIONS[each] for each in bits if each in OPERATIONS)


def group_read_codes(cluster: Cluster, groups: Sequence[str]) -> dict[str, int]:
    """The error codes of heartbeats by an unknown member: 30 without READ, otherwise that of an unknown member."""
    asked = {"generation_id": -1, "member_id": "logkeep-asks", "group_instance_id": None}
    replies = cluster.ask_any_all("Heartbeat", [{"group_id": group, **asked} for group in groups])
    return {group: int(reply.error_code) for group, reply in zip(groups, replies, strict=True)}


def transactional_describe_code(cluster: Cluster, transactional_id: str) -> int:
    """53 without DESCRIBE, otherwise the error code of a missing id or of another coordinator."""
    reply = cluster.ask_any("DescribeTransactions", {"transactional_ids": [transactional_id]})
    found = the_only(reply.transaction_states, doing="DescribeTransactions", subject=transactional_id)
    return int(found.error_code)


def transactional_write_code(cluster: Cluster, transactional_id: str) -> int:
    """53 without WRITE, otherwise the error code of an unknown producer: there is no transaction to end."""
    fields = {
        "transactional_id": transactional_id,
        "producer_id": _UNUSED_PRODUCER,
        "producer_epoch": 0,
        "committed": False,
    }
    return int(cluster.ask_any("EndTxn", fields, at_most=3).error_code)
