"""The archive of most schedules: the shipped rules of copies and of their end, around a store in dictionaries."""

from typing import TYPE_CHECKING

from logkeep.checkpoint.machine import TakeBackup
from logkeep.checkpoint.simulator import copy_job
from logkeep.checkpoint.simulator.coordination import coordinate
from logkeep.checkpoint.steps import Steps

if TYPE_CHECKING:
    from logkeep.checkpoint.simulator.leader import PartitionLeader
    from logkeep.checkpoint.simulator.world import SimWorld


class ModelledArchive:
    """See `Archive`."""

    def __init__(self, world: "SimWorld") -> None:
        self._world = world

    def begin(self, leader: "PartitionLeader", take: TakeBackup) -> Steps[None] | None:
        return copy_job.copy_partition(leader, take)

    def resume(self, leader: "PartitionLeader") -> Steps[None]:
        return copy_job.after_replay(leader)

    def coordinate(self, backup_id: int, nonce: str) -> Steps[None]:
        return coordinate(self._world, backup_id, nonce)

    def snapshot(self, leader: "PartitionLeader") -> None:
        leader.keep_snapshot()

    def compact(self, leader: "PartitionLeader") -> None:
        leader.compact_unpinned()

    def pinned(self, leader: "PartitionLeader") -> bool:
        return bool(leader.pins)

    def settle_open(self) -> None:
        """What any coordinator does that reads an open backup after its deadline."""
        world = self._world
        for request in world.store.requests.values():
            if request.id not in world.store.decisions:
                world.pass_to(request.deadline)
                for _ in copy_job.settle(world, request.id):
                    pass

    def collect(self) -> list[tuple[str, str]]:
        return []
