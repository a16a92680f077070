"""A coordinator of one backup: request first, then creates until every partition answers, then wait for the end.

It keeps nothing: another one with the same id joins, after a crash too.
"""

from datetime import timedelta
from typing import TYPE_CHECKING

from logkeep.checkpoint import records
from logkeep.checkpoint.records import CheckpointDocument, Kind
from logkeep.checkpoint.simulator.copy_job import settle_quietly
from logkeep.checkpoint.simulator.sim_store import SimDecision, SimRequest
from logkeep.checkpoint.steps import Steps, Wait
from logkeep.errors import StoreUnreachable

if TYPE_CHECKING:
    from logkeep.checkpoint.simulator.world import SimWorld

_AGAIN_TICKS = 40
_SENT_IN_A_ROUND = 0.5
"""Rounds leave out partitions, so that messages carry an id before the create arrives."""
_DEADLINE = timedelta(seconds=2_000)


def coordinate(world: "SimWorld", backup_id: int, nonce: str) -> Steps[None]:
    try:
        request = yield from _request(world, backup_id, nonce)
        if request is None:
            return
        if (yield from world.store.call_again(lambda: backup_id in world.store.decisions)):
            return
        yield from _create_everywhere(world, request)
        while world.now < request.deadline + timedelta(seconds=1):
            yield from settle_quietly(world, backup_id)
            if backup_id in world.store.decisions:
                return
            yield Wait(_AGAIN_TICKS)
    except StoreUnreachable:
        return


def _request(world: "SimWorld", backup_id: int, nonce: str) -> Steps[SimRequest | None]:
    """The request of this id: made now, or found. None if the id is not larger than all others."""
    store, began = world.store, world.tick
    known = yield from store.call_again(lambda: store.requests.get(backup_id))
    if known is not None:
        return known
    largest = yield from store.call_again(lambda: max(store.requests, default=0))
    if backup_id <= largest:
        return None
    made = SimRequest(backup_id, nonce, world.now + _DEADLINE, world.plan.retake)
    stored = yield from store.call_again(lambda: store.requests.setdefault(backup_id, made))
    world.began.setdefault(backup_id, began)
    return stored


def _create_everywhere(world: "SimWorld", request: SimRequest) -> Steps[None]:
    document = CheckpointDocument(
        repository="sim",
        application=world.application.hex(),
        history=world.history,
        id=request.id,
        nonce=request.nonce,
        reason="asked",
    )
    create = records.checkpoint(Kind.CREATE, document)
    answers = world.answers.setdefault(request.nonce, {})
    while len(answers) < world.plan.partitions and world.now < request.deadline:
        for partition in range(world.plan.partitions):
            if partition not in answers and world.choose.random() < _SENT_IN_A_ROUND:
                world.transport.deliver(partition, create)
        yield Wait(_AGAIN_TICKS)
    yield "answered"
    if any(answer.latest > request.id for answer in answers.values()):
        failed = SimDecision(reason="a partition has gone past this id")
        yield from world.store.call_again(lambda: world.store.decisions.setdefault(request.id, failed))
    elif len(answers) == world.plan.partitions:
        world.acknowledge(request.id)
