"""What this user may do, asked of the brokers. No question here changes anything, nor makes an internal topic.

Coordinators are not looked for: that alone makes `__consumer_offsets` or `__transaction_state` on a new cluster. Any
broker checks the right before it finds that it is not the coordinator, so its answer tells what we want to know.
"""

from collections.abc import Collection, Sequence
from uuid import UUID

from logkeep.kafka.admin.security import OPERATIONS
from logkeep.kafka.client.cluster import Cluster
from logkeep.kafka.client.error_codes import check

_CHUNK = 500
_NOT_TOLD = 31
_NOBODY = 2**62
"""A producer id that no cluster has handed out."""


def topic_operations(cluster: Cluster, topics: Sequence[str]) -> dict[str, tuple[int, frozenset[str] | None]]:
    """The code and the allowed operations for each; None = not told. Topics that do not exist are answered for too."""
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
    """What is allowed on the cluster itself; None = not told, which takes DESCRIBE."""
    fields = {"include_cluster_authorized_operations": True}
    reply = cluster.ask_any("DescribeCluster", fields)
    check(reply.error_code, subject="cluster", doing="DescribeCluster", message=reply.error_message)
    return _operations(reply.authorized_operations)


def _operations(bits: Collection[int] | None) -> frozenset[str] | None:
    """A user who may not ask is told that nothing is allowed; the highest bit says that nobody asked."""
    if not bits or _NOT_TOLD in bits:
        return None
    return frozenset(OPERATIONS[each] for each in bits if each in OPERATIONS)


def group_read_code(cluster: Cluster, group: str) -> int:
    """The code of a heartbeat by a member that nobody knows: 30 without READ, else that it is not known."""
    fields = {"group_id": group, "generation_id": -1, "member_id": "logkeep-asks", "group_instance_id": None}
    return int(cluster.ask_any("Heartbeat", fields).error_code)


def transactional_describe_code(cluster: Cluster, transactional_id: str) -> int:
    """53 without DESCRIBE, else that it is not found or not here."""
    (found,) = cluster.ask_any("DescribeTransactions", {"transactional_ids": [transactional_id]}).transaction_states
    return int(found.error_code)


def transactional_write_code(cluster: Cluster, transactional_id: str) -> int:
    """53 without WRITE, else that this producer never had such an id: there is nothing that could be ended."""
    fields = {
        "transactional_id": transactional_id,
        "producer_id": _NOBODY,
        "producer_epoch": 0,
        "committed": False,
    }
    return int(cluster.ask_any("EndTxn", fields, at_most=3).error_code)
