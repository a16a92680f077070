"""The result of a drill: a restore to a scratch target, its proof, and how long it took."""

import msgspec

from logkeep.model.findings import Finding

SCRATCH = "logkeep-drill-"
"""How the names of scratch topics and directories begin."""


class DrilledTree(msgspec.Struct, frozen=True, kw_only=True):
    zxid: str
    """The last transaction in the tree."""
    proof: str
    nodes: int
    nodes_compared: int
    """Nodes of the server that were compared: data, ACL and every field of the stat."""
    transactions: int
    digests_compared: int


class DrillReport(msgspec.Struct, frozen=True, kw_only=True):
    source: str
    backup: int
    restore: int
    """The id for `logkeep receipts show`, which lists every partition."""
    where: str
    """An embedded server, or the id of the cluster."""
    verdict: str
    topics: int
    """Of a backup of Kafka, as the next two; 0 for others."""
    partitions: int
    records: int
    bytes: int
    seconds: float
    """The recovery time: all read, written, read back from the server and compared."""
    findings: tuple[Finding, ...]
    tree: DrilledTree | None = None
    """Of a backup of ZooKeeper."""
