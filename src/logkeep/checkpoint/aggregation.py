"""What the copies of the partitions say about one backup: ongoing, complete, or failed with its reason. Pure.

Copies are kept for each partition and term, so no leader overwrites another one's. The best copy of a partition counts.
Two whole copies of one partition must be equal, otherwise one leader was not alone.
"""

from collections.abc import Iterable, Sequence
from datetime import datetime

import msgspec

from logkeep.checkpoint.partition_copy import PartitionCopy

COMPLETED = "completed"


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
    chosen: list[PartitionCopy] = []
    missing: list[int] = []
    for partition in range(partitions):
        of_it = [copy for copy in own if copy.partition == partition]
        whole = [copy for copy in of_it if copy.outcome == COMPLETED]
        found = _failure(partition, whole, of_it)
        if found is not None:
            return found
        if whole:
            chosen.append(min(whole, key=lambda copy: (copy.bytes, copy.term)))
        else:
            missing.append(partition)
    if not missing:
        return CanComplete(tuple(chosen))
    if now >= deadline:
        return MustFail(f"partition {missing[0]} has no copy at the deadline {deadline.isoformat()}", missing[0])
    return StillOngoing(tuple(missing))


def _failure(partition: int, whole: Sequence[PartitionCopy], of_it: Iterable[PartitionCopy]) -> MustFail | None:
    if len({(copy.position, copy.cut_end, copy.state_digest) for copy in whole}) > 1:
        return MustFail(f"two copies of partition {partition} differ: two leaders wrote its log", partition)
    failed = [copy for copy in of_it if copy.outcome != COMPLETED]
    if whole or not failed:
        return None
    last = max(failed, key=lambda copy: copy.term)
    return MustFail(last.reason, partition)
