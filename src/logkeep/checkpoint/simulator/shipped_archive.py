"""The archive of some schedules: shipped actor, snapshots, coordinator and restore, with a repository in memory.

What they left is collected into the simulated store, where the judge looks for it.
"""

from collections.abc import Iterator, Mapping
from datetime import timedelta
from itertools import count
from pathlib import Path
from typing import TYPE_CHECKING, TypeVar

import msgspec

from logkeep.checkpoint import records
from logkeep.checkpoint.archive.copies import copy_request
from logkeep.checkpoint.archive.running_application import ApplicationFacts
from logkeep.checkpoint.archive.settle import settle
from logkeep.checkpoint.archive.take import TakeOptions, take
from logkeep.checkpoint.backup_actor import FAILOVER, ActorIdentity, BackupActor
from logkeep.checkpoint.machine import TakeBackup
from logkeep.checkpoint.partition_copy import PartitionCopy
from logkeep.checkpoint.records import CheckpointDocument, Kind, Record
from logkeep.checkpoint.restore.run import prepare, stage_units
from logkeep.checkpoint.restore.stage_task import stage_partition
from logkeep.checkpoint.simulator.leader import LocalSnapshot, PartitionLeader
from logkeep.checkpoint.simulator.sim_log import FENCED, TermLog
from logkeep.checkpoint.simulator.sim_repository import SimRepository
from logkeep.checkpoint.simulator.sim_store import SimDecision, SimReceipt, SimRequest, StoredSnapshot
from logkeep.checkpoint.snapshot_choice import KeptSnapshot
from logkeep.checkpoint.snapshots import LogKeeping, SnapshotStore
from logkeep.checkpoint.state.backend import Write
from logkeep.checkpoint.state.memory_state import MemoryState
from logkeep.checkpoint.steps import Steps, Wait, run
from logkeep.errors import BackupFailed, IllegalTransition, Locked, LogkeepError, StoreError
from logkeep.formats.plain_batches import decode_batch, walk
from logkeep.model.ids import BackupId
from logkeep.repository.backups.journal import open_ids
from logkeep.repository.backups.states import StateName, decided
from logkeep.repository.chain.commits import read_chain

if TYPE_CHECKING:
    from logkeep.checkpoint.simulator.world import SimWorld

ValueT = TypeVar("ValueT")
_TIMEOUT = timedelta(seconds=600)
_TICKS_PER_SECOND = 10
_UNBOUNDED = 1 << 40
_EXPECTED = (FAILOVER, FENCED, "the simulated store did not answer", "jumped over", "superseded", "deadline")
"""What a fault of a schedule may be the reason of."""


class ShippedArchive:
    """See `Archive`."""

    def __init__(self, world: "SimWorld", repository: SimRepository) -> None:
        self._world, self._repository = world, repository
        self._processes: dict[PartitionLeader, _Process] = {}

    def begin(self, leader: PartitionLeader, take: TakeBackup) -> Steps[None] | None:
        steps = self._process(leader).actor.begin(take, leader.cut_at(take.id, take.position))
        return None if steps is None else _in_ticks(steps)

    def resume(self, leader: PartitionLeader) -> Steps[None]:
        return _in_ticks(self._process(leader).actor.resume(leader.cut))

    def coordinate(self, backup_id: int, nonce: str) -> Steps[None]:
        """A user who asks for a backup, hears that it is accepted, and follows it."""
        world, place = self._world, self._repository.place_with_faults(self._world.store.fail_by_chance)
        began, superseding = world.tick, nonce.endswith("1")
        on_failover = "retake" if world.plan.retake else "fail"
        options = TakeOptions(BackupId(backup_id), False, superseding, _TIMEOUT, on_failover)  # type: ignore[arg-type] # one of two
        try:
            port = _Port(world, place.repository)
            yield from _in_ticks(take(place, port, options, lambda: world.now, self._repository.token))
            world.began.setdefault(backup_id, began)
            world.acknowledge(backup_id)
        except (StoreError, Locked, BackupFailed, IllegalTransition):
            return

    def snapshot(self, leader: PartitionLeader) -> None:
        self._process(leader).snapshot(leader)

    def compact(self, leader: PartitionLeader) -> None:
        self._process(leader).compact()

    def pinned(self, leader: PartitionLeader) -> bool:
        return self._process(leader).snapshots.reserved_from is not None

    def settle_open(self) -> None:
        place, world = self._repository.place(), self._world
        for backup_id in open_ids(place, read_chain(place).last_id):
            request = copy_request(place, backup_id)
            if request is not None:
                world.pass_to(request.deadline + timedelta(minutes=5))
                run(settle(place, backup_id, lambda: world.now, self._repository.token), lambda _: False)

    def collect(self) -> list[tuple[str, str]]:
        """Requests, ends and restored partitions, as the judge wants them; what failed for a reason that no fault has.

        Each completed backup is staged by the task that restores it.
        """
        place, store = self._repository.place(), self._world.store
        folded = read_chain(place)
        ends, found = decided(folded), list[tuple[str, str]]()
        for backup_id in {*ends, *open_ids(place, folded.last_id)}:
            request = copy_request(place, backup_id)
            if request is not None:
                retake = request.on_failover == "retake"
                store.requests[backup_id] = SimRequest(backup_id, request.nonce, request.deadline, retake)
        for backup_id, end in ends.items():
            if end.name is StateName.COMPLETED and backup_id not in store.decisions:
                try:
                    store.decisions[backup_id] = self._restored(backup_id)
                except LogkeepError as error:
                    store.decisions[backup_id] = SimDecision(reason=str(error))
                    found.append(("unrestorable", f"backup {backup_id} is completed, and: {error}"))
            elif end.name is StateName.FAILED:
                reason = str(getattr(end, "reason", ""))
                store.decisions[backup_id] = SimDecision(reason=reason)
                if not any(known in reason for known in _EXPECTED):
                    found.append(("reason", f"backup {backup_id} failed: {reason}"))
        return found

    def _process(self, leader: PartitionLeader) -> "_Process":
        """The files and the actor of a leader. A new one begins with the snapshots of the one before."""
        if leader not in self._processes:
            self._processes[leader] = _Process(self._world, self._repository, leader)
        return self._processes[leader]

    def _restored(self, backup_id: int) -> SimDecision:
        place = self._repository.place()
        folded = read_chain(place)
        plan = prepare(place, folded, backup_id)
        receipts = []
        for unit in stage_units(place, folded, plan):
            root = self._repository.folder / f"restored-{backup_id}-{unit.partition}"
            stage_partition(msgspec.structs.replace(unit, directory=str(root)), lambda _: None)
            receipts.append(self._receipt(backup_id, unit.partition, unit.log_start, unit.cut_end, root))
        return SimDecision(tuple(receipts))

    def _receipt(self, backup_id: int, partition: int, log_start: int, cut_end: int, root: Path) -> SimReceipt:
        store, name = self._world.store, f"{backup_id}/{partition}"
        store.objects[name] = tuple(_staged_records(root))
        position, snapshot = -1, ""
        for path in (root / "snapshots").iterdir():
            position, snapshot = int(path.stem), f"{name}/state"
            state = MemoryState()
            state.load(path)
            store.objects[snapshot] = StoredSnapshot(dict(state.items()), dict(state.system_items()))
        copy = PartitionCopy(
            partition=partition, term=0, history=0, nonce="", outcome="completed",
            cut_end=cut_end, log_start=log_start, snapshot_position=position,
        )  # fmt: skip
        return SimReceipt(copy, snapshot, (name,))


class _Process:
    """Of one leader: its snapshots in files, what they keep of the log, and the actor."""

    _numbers = count()

    def __init__(self, world: "SimWorld", repository: SimRepository, leader: PartitionLeader) -> None:
        directory = repository.folder / f"leader-{next(self._numbers)}"
        self.snapshots = SnapshotStore(directory)
        for kept in leader.disk:
            path = self.snapshots.path(kept.facts.position)
            _state(kept.facts.position, kept.user, kept.system).snapshot(path)
        self._log = TermLog(leader.log, leader.term)
        self._keeping = LogKeeping(self.snapshots, 0, _UNBOUNDED)
        who = ActorIdentity(
            application=world.application.hex(),
            name="shop",
            history=world.history,
            partition=leader.partition,
            run=repository.token(),
            open_place=lambda: repository.place_with_faults(world.store.fail_by_chance),
            clock=lambda: world.now,
            tokens=repository.token,
            elapsed_s=lambda: world.tick,
        )
        self.actor = BackupActor(who, self._log, self._keeping)
        self.actor.checkpoints = lambda: leader.checkpoints

    def snapshot(self, leader: PartitionLeader) -> None:
        run(self.snapshots.take(_state_of(leader)), lambda _: False)
        leader.disk[:] = [_read(self.snapshots, kept) for kept in self.snapshots.list()]

    def compact(self) -> None:
        """The archive is not waited for, so that as much is removed as snapshots and pins allow."""
        self._keeping.archived_end = None
        self._keeping.compact(self._log)


class _Port:
    """A running application, reached by messages that may be lost."""

    def __init__(self, world: "SimWorld", repository: str) -> None:
        self._world, self._repository = world, repository

    def facts(self) -> ApplicationFacts:
        world = self._world
        return ApplicationFacts(
            application=world.application.hex(),
            name="shop",
            partitions=world.plan.partitions,
            history=world.history,
            repository=self._repository,
        )

    def create(self, partition: int, document: CheckpointDocument) -> None:
        if self._world.choose.random() < 0.5:
            self._world.transport.deliver(partition, records.checkpoint(Kind.CREATE, document))

    def answers(self, checkpoint_id: int) -> Mapping[int, CheckpointDocument]:
        every = (item for found in self._world.answers.values() for item in found.items())
        known = {partition: answer for partition, answer in every if answer.id == checkpoint_id}
        return {p: msgspec.structs.replace(a, repository=self._repository) for p, a in known.items()}


def _in_ticks(steps: Steps[ValueT]) -> Steps[ValueT]:
    """Pauses of a few ticks for each second."""
    while True:
        try:
            step = next(steps)
        except StopIteration as ended:
            result: ValueT = ended.value
            return result
        yield Wait(step.seconds * _TICKS_PER_SECOND) if isinstance(step, Wait) else step


def _state_of(leader: PartitionLeader) -> MemoryState:
    saved = leader.saved()
    return _state(leader.state.processed, saved.user, saved.system)


def _state(position: int, user: Mapping[str, bytes], system: Mapping[str, bytes]) -> MemoryState:
    state = MemoryState()
    state.apply(position, [Write(*each) for each in user.items()], [Write(*each) for each in system.items()])
    return state


def _read(snapshots: SnapshotStore, kept: KeptSnapshot) -> LocalSnapshot:
    state = MemoryState()
    state.load(snapshots.path(kept.position))
    return LocalSnapshot(kept, dict(state.items()), dict(state.system_items()))


def _staged_records(root: Path) -> Iterator[Record]:
    for path in sorted((root / "log").iterdir()):
        data = path.read_bytes()
        for at, header in walk(data):
            for position, one in enumerate(decode_batch(data[at : at + header.size_bytes])[1], header.base_offset):
                yield records.read(one.key, one.value or b"", one.headers, position, one.time_ms)
