"""A leader's copy of its partition for one backup: reserve a snapshot, copy up to the create, leave a receipt, release.

Nothing remote happens before the reservation, and the reservation ends in every case.
"""

from typing import TYPE_CHECKING

from logkeep.checkpoint import aggregation, snapshot_choice
from logkeep.checkpoint.machine import TakeBackup
from logkeep.checkpoint.partition_copy import PartitionCopy
from logkeep.checkpoint.records import Record
from logkeep.checkpoint.simulator.sim_log import Compacted
from logkeep.checkpoint.simulator.sim_store import SimDecision, SimReceipt, SimRequest, StoredSnapshot
from logkeep.checkpoint.snapshot_choice import KeptSnapshot, NoSnapshotFits, UseSnapshot
from logkeep.checkpoint.steps import Steps, Wait
from logkeep.errors import StoreUnreachable
from logkeep.repository.backups.detached_backup import COMPLETED

if TYPE_CHECKING:
    from logkeep.checkpoint.simulator.leader import PartitionLeader
    from logkeep.checkpoint.simulator.world import SimWorld

_PIECE = 6
WHOLE_LOG = KeptSnapshot(-1, 0, 0)


def copy_partition(leader: "PartitionLeader", take: TakeBackup) -> Steps[None]:
    """TakeBackup, from the reservation to the receipt."""
    choice = reserve(leader, take.position)
    pinned = leader.pins[-1:] if isinstance(choice, UseSnapshot) else []
    try:
        yield "reserved"
        yield from _copy(leader, take, choice)
    except StoreUnreachable:
        yield from _fail(leader, take.id, "the store did not answer")
    except Compacted as error:
        yield from _fail(leader, take.id, str(error))
    finally:
        for pin in pinned:
            leader.pins.remove(pin)
    yield from settle_quietly(leader.world, take.id)


def reserve(leader: "PartitionLeader", create: int) -> UseSnapshot | NoSnapshotFits:
    """Choose and pin: the snapshot, or the log from its beginning."""

    def pin(snapshot: KeptSnapshot) -> bool:
        leader.pins.append(snapshot)
        return True

    found = snapshot_choice.choose([kept.facts for kept in leader.disk], create, leader.log.start, pin)
    if isinstance(found, UseSnapshot) and found.snapshot is None:
        leader.pins.append(WHOLE_LOG)
    return found


def _copy(leader: "PartitionLeader", take: TakeBackup, choice: UseSnapshot | NoSnapshotFits) -> Steps[None]:
    store = leader.world.store
    request = yield from store.call_again(lambda: store.requests.get(take.id))
    decided = yield from store.call_again(lambda: take.id in store.decisions)
    if request is None or decided:
        return
    if isinstance(choice, NoSnapshotFits):
        yield from _fail(leader, take.id, choice.reason)
        return
    if take.nonce and take.nonce != request.nonce:
        yield from _fail(leader, take.id, "the create belongs to another request")
        return
    receipt = yield from _files(leader, take, request, choice)
    yield from store.call_again(lambda: _put(leader, take.id, receipt))


def _files(leader: "PartitionLeader", take: TakeBackup, request: SimRequest, choice: UseSnapshot) -> Steps[SimReceipt]:
    store, prefix = leader.world.store, f"{take.id}/{leader.partition}.{leader.term}"
    snapshot = ""
    if choice.snapshot is not None:
        kept = next(found for found in leader.disk if found.facts == choice.snapshot)
        snapshot, stored = f"{prefix}/state", StoredSnapshot(kept.user, kept.system)
        yield from store.call_again(lambda: store.objects.__setitem__(snapshot, stored))
    names: list[str] = []
    for start in range(choice.log_from, take.position + 1, _PIECE):
        name, piece = f"{prefix}/{start}", _read(leader, start, min(start + _PIECE, take.position + 1))
        yield from store.call_again(lambda name=name, piece=piece: store.objects.__setitem__(name, piece))  # type: ignore[misc] # bound now
        names.append(name)
    copy = PartitionCopy(
        partition=leader.partition,
        term=leader.term,
        history=leader.world.history,
        nonce=request.nonce,
        outcome="completed",
        position=take.position,
        cut_end=take.position + 1,
        log_start=choice.log_from,
        snapshot_position=choice.snapshot.position if choice.snapshot else -1,
    )
    return SimReceipt(copy, snapshot, tuple(names))


def _read(leader: "PartitionLeader", start: int, end: int) -> tuple[Record, ...]:
    found = [leader.log.read(position) for position in range(start, end)]
    return tuple(record for record in found if record is not None)


def _put(leader: "PartitionLeader", backup_id: int, receipt: SimReceipt) -> None:
    key = (backup_id, leader.partition, leader.term)
    known = leader.world.store.receipts.get(key)
    if known is None or known.copy.outcome != COMPLETED:
        leader.world.store.receipts[key] = receipt


def _fail(leader: "PartitionLeader", backup_id: int, reason: str) -> Steps[None]:
    """Record a failure. If the store does not answer, the deadline of the request does it."""
    store = leader.world.store
    try:
        request = yield from store.call_again(lambda: store.requests.get(backup_id))
        if request is None:
            return
        copy = PartitionCopy(
            partition=leader.partition,
            term=leader.term,
            history=leader.world.history,
            nonce=request.nonce,
            outcome="failed",
            reason=reason,
        )
        yield from store.call_again(lambda: _put(leader, backup_id, SimReceipt(copy)))
    except StoreUnreachable:
        return


def after_replay(leader: "PartitionLeader") -> Steps[None]:
    """The last checkpoint of the replayed log: without a whole copy it is failed, or copied by this leader."""
    backup_id, position = leader.state.checkpoint_id, leader.state.checkpoint_position
    store = leader.world.store
    while backup_id:
        try:
            request = yield from store.call(lambda: store.requests.get(backup_id))
            receipts = yield from store.call(lambda: store.receipts_of(backup_id))
            break
        except StoreUnreachable:
            yield Wait(10)
    else:
        return
    whole = any(r.copy.partition == leader.partition and r.copy.outcome == COMPLETED for r in receipts)
    if request is None or whole:
        return
    if request.retake:
        yield from copy_partition(leader, TakeBackup(backup_id, position, request.nonce, ""))
    else:
        yield from _fail(leader, backup_id, "the leader was lost while it copied")


def settle_quietly(world: "SimWorld", backup_id: int) -> Steps[None]:
    try:
        yield from settle(world, backup_id)
    except StoreUnreachable:
        return


def settle(world: "SimWorld", backup_id: int) -> Steps[SimDecision | None]:
    """Decide what the stored copies decide. The first decision is final."""
    store = world.store
    request = yield from store.call(lambda: store.requests.get(backup_id))
    if request is None:
        return None
    receipts = yield from store.call(lambda: store.receipts_of(backup_id))
    copies = [found.copy for found in receipts]
    verdict = aggregation.aggregate(world.plan.partitions, request.nonce, request.deadline, copies, world.now)
    if isinstance(verdict, aggregation.StillOngoing):
        return None
    if isinstance(verdict, aggregation.MustFail):
        decision = SimDecision(reason=f"partition {verdict.partition}: {verdict.reason}")
    else:
        decision = SimDecision(tuple(next(r for r in receipts if r.copy == copy) for copy in verdict.copies))
    return (yield from store.call(lambda: store.decisions.setdefault(backup_id, decision)))
