"""The result of a drill: a restore to a scratch target, its proof, and how long it took."""

import msgspec

from logkeep.model.findings import Finding
from logkeep.repository.restores import ReceiptDocument

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


class DrilledApplication(msgspec.Struct, frozen=True, kw_only=True):
    partitions: int
    partitions_proven: int
    """Opened, and their state was the one that the backup recorded."""
    positions: int
    """Of the restored logs."""


class DrilledZeebe(msgspec.Struct, frozen=True, kw_only=True):
    partitions: int
    records: int
    """Read back from the exported logs."""
    commands_proven: int
    """Commands of other partitions whose cause is inside the backup."""
    orphans: int


class DrillReport(msgspec.Struct, frozen=True, kw_only=True):
    source: str
    backup: int
    restore: int
    """The id for `logkeep receipts show`, which lists every partition."""
    where: str
    """An embedded server, the id of the cluster, or a temporary directory or store."""
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
    application: DrilledApplication | None = None
    """Of a backup of an application."""
    zeebe: DrilledZeebe | None = None
    """Of a backup of Zeebe."""


def drill_report(
    source: str,
    receipt: ReceiptDocument,
    where: str,
    size_bytes: int,
    *,
    tree: DrilledTree | None = None,
    application: DrilledApplication | None = None,
    zeebe: DrilledZeebe | None = None,
) -> DrillReport:
    """The report of a drill of another source than Kafka: what its receipt says, and what was restored."""
    return DrillReport(
        source=source,
        backup=receipt.backup,
        restore=receipt.restore,
        where=where,
        verdict=receipt.verdict,
        topics=0,
        partitions=0,
        records=0,
        bytes=size_bytes,
        seconds=round(receipt.duration_s, 3),
        findings=receipt.findings,
        tree=tree,
        application=application,
        zeebe=zeebe,
    )
