"""The time by the cluster's own clock: the leading controller reports it with the state of its quorum.

A cluster without a quorum or without a leading controller, an odd answer, or a user who may not describe the cluster,
leave only the clock of this machine: brokers may serve records while controllers are lost, and a backup matters most
then. The result says which clock it was read from.
"""

import time

from logkeep.errors import AuthenticationFailed, ClusterError, ClusterUnreachable, ProtocolMismatch, TlsFailed
from logkeep.kafka.client.cluster import Cluster
from logkeep.kafka.client.error_codes import check, the_only
from logkeep.model.clock_time import ClockName, ClockTime

_METADATA_LOG = "__cluster_metadata"
_QUORUM = {"topics": [{"topic_name": _METADATA_LOG, "partitions": [{"partition_index": 0}]}]}


def cluster_time(cluster: Cluster) -> ClockTime:
    """The time now. Raises ClusterUnreachable if no broker answers, and errors of credentials and TLS."""
    try:
        reported = _controller_ms(cluster)
    except (AuthenticationFailed, ClusterUnreachable, ProtocolMismatch, TlsFailed):
        raise
    except ClusterError:
        reported = -1
    return ClockTime(reported, ClockName.BROKER) if reported >= 0 else ClockTime(int(time.time() * 1000), ClockName.OWN)


def _controller_ms(cluster: Cluster) -> int:
    """-1 if the controllers do not report times: their first version of this request had none."""
    reply = cluster.ask_any("DescribeQuorum", _QUORUM)
    check(reply.error_code, subject=_METADATA_LOG, doing="DescribeQuorum")
    topic = the_only(reply.topics, doing="DescribeQuorum", subject=_METADATA_LOG)
    found = the_only(topic.partitions, doing="DescribeQuorum", subject=_METADATA_LOG)
    check(found.error_code, subject=_METADATA_LOG, doing="DescribeQuorum")
    times = [int(v.last_fetch_timestamp) for v in found.current_voters if v.replica_id == found.leader_id]
    return max(times, default=-1)
