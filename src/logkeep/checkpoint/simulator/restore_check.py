"""A completed backup restored into an empty world, and run until all its messages have arrived."""

from logkeep.checkpoint.records import Record
from logkeep.checkpoint.simulator.leader import LocalSnapshot
from logkeep.checkpoint.simulator.sim_store import SimDecision, SimReceipt, SimStore, StoredSnapshot
from logkeep.checkpoint.simulator.world import SimWorld
from logkeep.checkpoint.snapshot_choice import KeptSnapshot

import msgspec  # isort: skip


def restored_log(store: SimStore, receipt: SimReceipt) -> list[Record]:
    """The copied log up to its cut; what comes after it is left out."""
    pieces = [store.objects[name] for name in receipt.log]
    records = [record for piece in pieces if isinstance(piece, tuple) for record in piece]
    return [record for record in records if record.position < receipt.copy.cut_end]


def restored_world(taken: SimWorld, decision: SimDecision) -> SimWorld:
    """The application with the log and the state of a backup, in the next history; no leader runs yet."""
    store, change = taken.store, msgspec.structs.replace
    calm = change(taken.plan, commands=0, backups=0, loss=0.0, doubles=0.0, store_errors=0.0, faults=())
    world = SimWorld(calm, taken.workload, taken.history + 1, store, taken.repository)
    world.tick = taken.tick
    for receipt in decision.receipts:
        partition, log = receipt.copy.partition, restored_log(store, receipt)
        world.logs[partition].fill(log, receipt.copy.log_start)
        if receipt.snapshot:
            kept = store.objects[receipt.snapshot]
            assert isinstance(kept, StoredSnapshot)  # noqa: S101 - written by the copy
            facts = KeptSnapshot(receipt.copy.snapshot_position, len(kept.user), receipt.copy.log_start)
            world.disks[partition].append(LocalSnapshot(facts, kept.user, kept.system))
    return world


def drained(world: SimWorld) -> bool:
    """Run a restored world until nothing is under way. False if messages keep waiting."""
    world.start()
    world.calm()
    return world.quiet()
