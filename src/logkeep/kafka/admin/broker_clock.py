"""The time by the cluster's own clock: the leading controller reports it with the state of its quorum.

The clock of this machine is used instead if the cluster has no quorum or no leading controller, if an answer cannot be
used, or if this user may not describe the cluster: brokers may serve records while controllers are lost, and a backup
matters most then. The result says which clock was read; for that of this machine it also names the machine.
"""

import time

from logkeep.errors import AuthenticationFailed, ClusterError, ClusterUnreachable, ProtocolMismatch, TlsFailed
from logkeep.kafka.client.cluster import Cluster
from logkeep.kafka.client.error_codes import check, the_only
from logkeep.model.clock_time import ClockName, ClockTime
from logkeep.repository.chain.owner import this_process

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
    return ClockTime(reported, ClockName.BROKER) if reported >= 0 else own_time()


def own_time() -> ClockTime:
    """The time by the clock of this machine. All containers on it have the same one."""
    here = this_process("")
    return ClockTime(int(time.time() * 1000), ClockName.OWN, here.boot or here.host)


def _controller_ms(cluster: Cluster) -> int:
    """The time that the leading controller reports; -1 if it reports none, as in the first version of this request."""
    reply = cluster.ask_any("DescribeQuorum", _QUORUM)
    check(reply.error_code, subject=_METADATA_LOG, doing="DescribeQuorum")
    topic = the_only(reply.topics, doing="DescribeQuorum", subject=_METADATA_LOG)
    found = the_only(topic.partitions, doing="DescribeQuorum", subject=_METADATA_LOG)
    check(found.error_code, subject=_METADATA_LOG, doing="DescribeQuorum")
    times = [int(v.last_fetch_timestamp) for v in found.current_voters if v.replica_id == found.leader_id]
    return max(times, default=-1)
