"""The last archived offset of a group in one partition, also one that the cluster has deleted since.

When a topic or a group is deleted or expires, the broker writes a tombstone for the group's offset, and the cluster no
longer has it. The archived log of `__consumer_offsets` still has the record before the tombstone.
"""

from dataclasses import dataclass


@dataclass(frozen=True)
class GroupPosition:
    offset: int
    leader_epoch: int
    metadata: str
    committed_ms: int
    erased_ms: int | None = None
    """When the cluster deleted it, if it did."""
