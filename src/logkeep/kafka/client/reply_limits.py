"""How large a broker's reply may be, for each API. Pure.

A reply begins with its length, which the server chooses. Until a connection is authenticated, any server can be at the
other end: nothing it answers then is larger than `BEFORE_AUTHENTICATION`. Later the cap depends on the request. A reply
that names every topic, group or rule of a cluster may be large; one about what a request named is limited by the size
of the requests that logkeep sends (2,000 partitions at most). A fetch is limited by what was asked for and one batch,
because a broker sends the first batch whole, however large it is.

Memory is not allocated by these numbers: a buffer grows with the bytes that arrive (`frames.ReceiveBuffer`).
"""

from types import MappingProxyType
from typing import Final

_MIB: Final = 1 << 20
BEFORE_AUTHENTICATION: Final = _MIB
LARGEST_BATCH: Final = 1 << 30
"""The same limit as for batches in an archive."""
_HEADS: Final = 16 * _MIB
"""How much of a fetch reply may surround the records of its partitions."""
_LARGEST_FRAME: Final = (1 << 31) - 1

_ONE_ANSWER: Final = _MIB
_NAMED_THINGS: Final = 32 * _MIB
_WHOLE_CLUSTER: Final = 512 * _MIB

REPLY_LIMITS: Final = MappingProxyType(
    {
        "ApiVersions": BEFORE_AUTHENTICATION,
        "SaslHandshake": BEFORE_AUTHENTICATION,
        "SaslAuthenticate": BEFORE_AUTHENTICATION,
        "DescribeCluster": _ONE_ANSWER,
        "DescribeQuorum": _ONE_ANSWER,
        "EndTxn": _ONE_ANSWER,
        "FindCoordinator": _ONE_ANSWER,
        "Heartbeat": _ONE_ANSWER,
        "InitProducerId": _ONE_ANSWER,
        "AddPartitionsToTxn": _NAMED_THINGS,
        "AlterClientQuotas": _NAMED_THINGS,
        "AlterShareGroupOffsets": _NAMED_THINGS,
        "CreateAcls": _NAMED_THINGS,
        "CreateTopics": _NAMED_THINGS,
        "DeleteGroups": _NAMED_THINGS,
        "DeleteRecords": _NAMED_THINGS,
        "DeleteShareGroupOffsets": _NAMED_THINGS,
        "DeleteTopics": _NAMED_THINGS,
        "IncrementalAlterConfigs": _NAMED_THINGS,
        "ListOffsets": _NAMED_THINGS,
        "OffsetCommit": _NAMED_THINGS,
        "OffsetDelete": _NAMED_THINGS,
        "OffsetForLeaderEpoch": _NAMED_THINGS,
        "Produce": _NAMED_THINGS,
        "FetchSnapshot": _NAMED_THINGS,
        "ConsumerGroupDescribe": _WHOLE_CLUSTER,
        "DescribeAcls": _WHOLE_CLUSTER,
        "DescribeClientQuotas": _WHOLE_CLUSTER,
        "DescribeConfigs": _WHOLE_CLUSTER,
        "DescribeGroups": _WHOLE_CLUSTER,
        "DescribeLogDirs": _WHOLE_CLUSTER,
        "DescribeProducers": _WHOLE_CLUSTER,
        "DescribeShareGroupOffsets": _WHOLE_CLUSTER,
        "DescribeTransactions": _WHOLE_CLUSTER,
        "DescribeUserScramCredentials": _WHOLE_CLUSTER,
        "ListGroups": _WHOLE_CLUSTER,
        "ListTransactions": _WHOLE_CLUSTER,
        "Metadata": _WHOLE_CLUSTER,
        "OffsetFetch": _WHOLE_CLUSTER,
        "ShareGroupDescribe": _WHOLE_CLUSTER,
    }
)


def reply_limit(api: str) -> int:
    """The limit for a decoded reply. An API without a line above answers about what its request named."""
    return REPLY_LIMITS.get(api, _NAMED_THINGS)


def fetch_limit(asked_bytes: int) -> int:
    """The limit for the reply to a fetch of at most `asked_bytes`."""
    return min(asked_bytes + LARGEST_BATCH + _HEADS, _LARGEST_FRAME)
