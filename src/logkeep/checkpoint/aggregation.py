"""What the copies of the partitions say about one backup: ongoing, complete, or failed with its reason. Pure.

Copies are kept for each partition and term, so no leader overwrites another one's. One failed copy fails the backup,
also if another leader of its partition has a whole one: failed is final. Two whole copies of one partition must be
equal, otherwise one leader was not alone.
"""

from collections.abc import Sequence
from datetime import datetime

import msgspec

from logkeep.checkpoint.partition_copy import PartitionCopy
from logkeep.repository.backups.detached_backup import first_failure


class StillOngoing(msgspec.Struct, frozen=True):
    """Partitions that have no whole copy yet."""

    missing: tuple[int, ...]


class CanComplete(msgspec.Struct, frozen=True):
    """One whole copy of each partition, in order."""

    copies: tuple[PartitionCopy, ...]


class MustFail(msgspec.Struct, frozen=True):
    """Why a backup can never complete. The partition is -1 if it is not one partition's fault."""

    reason: str
    partition: int


def aggregate(
    partitions: int, nonce: str, deadline: datetime, copies: Sequence[PartitionCopy], now: datetime
) -> StillOngoing | CanComplete | MustFail:
    """What is known at `now`. Copies for another request with this id do not count."""
    own = [copy for copy in copies if copy.nonce == nonce and 0 <= copy.partition < partitions]
    failed = first_failure(own)
    if failed is not None:
        return MustFail(failed.reason, failed.partition)
    chosen: list[PartitionCopy] = []
    missing: list[int] = []
    for partition in range(partitions):
        whole = [copy for copy in own if copy.partition == partition]
        if len({(copy.position, copy.cut_end, copy.state_digest) for copy in whole}) > 1:
            return MustFail(f"two copies of partition {partition} differ: two leaders wrote its log", partition)
        if whole:
            chosen.append(min(whole, key=lambda copy: (copy.bytes, copy.term)))
        else:
            missing.append(partition)
    if not missing:
        return CanComplete(tuple(chosen))
    if now >= deadline:
        return MustFail(f"partition {missing[0]} has no copy at the deadline {deadline.isoformat()}", missing[0])
    return StillOngoing(tuple(missing))
