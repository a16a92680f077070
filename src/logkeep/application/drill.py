"""Opens restored partitions as a process of the application does, and compares the state that its replay gives.

No handler is called and nothing is sent: opening replays the log on top of the newest snapshot, and that is all.
"""

import secrets
from collections.abc import Mapping
from pathlib import Path

import msgspec

from logkeep.application.context import UserHandler
from logkeep.application.data_directory import DataDirectory
from logkeep.application.partition_worker import PartitionWorker
from logkeep.application.runtime import Runtime
from logkeep.application.worker_factory import RuntimeOptions
from logkeep.checkpoint.restore.plan import ApplicationRestorePlan
from logkeep.checkpoint.restore.state_proof import staged_digest


class DrilledPartition(msgspec.Struct, frozen=True, kw_only=True):
    partition: int
    replayed_to: int
    """The last position in the state."""
    proven: bool
    """The state is the one that the backup recorded."""
    compared: bool
    """False for a state backend whose snapshots have a format of its own."""


class _WithoutHandlers:
    """What a runtime needs of an application that handles nothing."""

    def __init__(self, name: str, partitions: int) -> None:
        self.name, self.partitions = name, partitions
        self.handlers: dict[str, UserHandler] = {}


def open_partitions(directory: DataDirectory, plan: ApplicationRestorePlan, scratch: Path) -> list[DrilledPartition]:
    """Open all partitions of a restored directory. Raises Damaged if one does not start."""
    known = directory.document
    runtime = Runtime(_WithoutHandlers(known.name, known.partitions), directory, RuntimeOptions())
    try:
        expected = {each.partition: each.state_digest for each in plan.partitions}
        return [_compared(worker, expected, scratch) for worker in runtime.workers]
    finally:
        runtime.stop()


def _compared(worker: PartitionWorker, expected: Mapping[int, str], scratch: Path) -> DrilledPartition:
    number = worker.processor.partition
    root = scratch / f"p{number}"
    snapshots = root / "snapshots"
    snapshots.mkdir(parents=True, mode=0o700)
    part = snapshots / "opened"
    position = worker.backend.snapshot(part).position
    part.rename(snapshots / f"{max(position, 0):020}.sqlite")
    found = staged_digest(root, max(position, 0), secrets.randbits(63))
    return DrilledPartition(
        partition=number,
        replayed_to=position,
        proven=found is not None and found == expected[number],
        compared=found is not None,
    )
