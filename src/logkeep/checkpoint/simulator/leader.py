"""A partition's leader: the shipped machine around a simulated log, state, transport and store.

Its state is dictionaries; a crash loses them or not, the log is the truth. Every `yield` is a point at which it may
crash, be deposed, or wait for others.
"""

from collections import deque
from collections.abc import Sequence
from typing import TYPE_CHECKING

import msgspec

from logkeep.checkpoint import machine, machine_state, records, state_digest
from logkeep.checkpoint.machine import Append, CallHandler, Instruction, Reply, SendMessages, TakeBackup
from logkeep.checkpoint.machine_state import MachineState
from logkeep.checkpoint.partition_state import CutFacts
from logkeep.checkpoint.records import INPUTS, Kind, Record
from logkeep.checkpoint.simulator.sim_log import Compacted, Deposed
from logkeep.checkpoint.snapshot_choice import KeptSnapshot, must_abort
from logkeep.checkpoint.steps import Steps, Wait

if TYPE_CHECKING:
    from logkeep.checkpoint.simulator.world import SimWorld

_KEPT = 2
_CUT, _CHECKPOINTS = "cut", "checkpoints"
_IDLE_STEPS, _IDLE_TICKS = 4, 12


class LocalSnapshot(msgspec.Struct, frozen=True):
    facts: KeptSnapshot
    user: dict[str, bytes]
    system: dict[str, bytes]


class PartitionLeader:
    """One term of one partition."""

    def __init__(self, world: "SimWorld", partition: int, saved: LocalSnapshot | None) -> None:
        self.world, self.partition = world, partition
        self.log, self.disk = world.logs[partition], world.disks[partition]
        self.term = self.log.take_over()
        self.user = dict(saved.user) if saved else {}
        self.system = dict(saved.system) if saved else {}
        empty = MachineState(world.application, "shop", world.history, partition, world.plan.partitions)
        self.state = machine_state.load(empty, self.system.items())
        self.pins: list[KeptSnapshot] = []
        self.cut = msgspec.msgpack.decode(self.system[_CUT], type=CutFacts) if _CUT in self.system else None
        self._idle = 0

    def run(self) -> Steps[None]:
        try:
            yield from self._replay()
            self.world.spawn(self.world.archive.resume(self), self)
            while True:
                yield from self._turn()
        except Deposed:
            return
        except Compacted:
            if self.term == self.log.term:
                raise
            # The next leader has taken a snapshot, and removed what this one had not read yet.

    def _replay(self) -> Steps[None]:
        position, waiting = self.state.processed + 1, deque[Record]()
        while position < self.log.end:
            record = self.log.read(position)
            if record is not None and record.kind == Kind.ACK:
                waiting.append(record)
            elif record is not None and record.kind not in INPUTS:
                for each in (*machine.due(waiting, record), record):
                    self._store(machine_state.apply(self.state, each))
            position += 1
        yield "replayed"

    def _turn(self) -> Steps[None]:
        """Process what waits, and take in the next message. Sometimes several wait."""
        if self.world.choose.random() < 0.7:
            yield from self._process_waiting()
        message = self.world.transport.receive(self.partition)
        if message is None:
            yield from self._process_waiting()
            yield from self._rest()
        else:
            yield from self._take_in(message)

    def _rest(self) -> Steps[None]:
        self._idle += 1
        if self._idle % _IDLE_STEPS == 0:
            self._do(machine.resend(self.state, self.log.end, 20))
        yield Wait(_IDLE_TICKS)

    def _take_in(self, message: Record) -> Steps[None]:
        reception = machine.receive(self.state, message)
        if any(found.kind == Kind.CREATE for found in reception.append) and not self._drained():
            yield from self._process_waiting()
            reception = machine.receive(self.state, message)
        for instruction in reception.instructions:
            self._do(instruction)
        for batch in records.in_batches(reception.append):
            yield from self._append(batch)

    def _drained(self) -> bool:
        waiting = (self.log.read(position) for position in range(self.state.processed + 1, self.log.end))
        last = max((record.position for record in waiting if record and record.kind in INPUTS), default=-1)
        return machine.drained(self.state, last)

    def _append(self, batch: Sequence[Record]) -> Steps[list[Record]]:
        yield "append"
        stored = self.log.append(self.term, batch, self.world.now_ms)
        yield "sync"
        self.log.sync(self.term)
        return stored

    def _process_waiting(self) -> Steps[None]:
        position = self.state.processed + 1
        while position < self.log.end:
            if self.term != self.log.term:
                raise Deposed
            record = self.log.read(position)
            if record is not None and record.kind in INPUTS:
                yield from self._process(record)
            position += 1

    def _process(self, record: Record) -> Steps[None]:
        demands = machine.process(self.state, record)
        if demands.applied is not None:
            self._store(demands.applied)
        for instruction in demands.instructions:
            if isinstance(instruction, Append):
                yield from self._result(record, instruction.records[0])
            elif isinstance(instruction, CallHandler):
                outcome = self.world.workload.call(record, self.user, self.world.now_ms)
                yield from self._result(record, machine.event(self.state, record, *outcome))
            else:
                self._do(instruction)
                yield "done"

    def _result(self, source: Record, result: Record) -> Steps[None]:
        [stored] = yield from self._append([result])
        self._store(machine_state.apply(self.state, stored))
        for instruction in machine.results(self.state, source, stored):
            yield "result"
            self._do(instruction)

    def _store(self, applied: machine_state.Applied) -> None:
        if applied.state.checkpoint_id != self.state.checkpoint_id:
            self.cut = self.cut_at(applied.state.checkpoint_id, applied.state.checkpoint_position)
            checkpoints = (*self.checkpoints, (self.cut.id, self.cut.position, self.cut.cut_end))
            self.system |= {_CUT: msgspec.msgpack.encode(self.cut), _CHECKPOINTS: msgspec.msgpack.encode(checkpoints)}
        self.state = applied.state
        for target, writes in ((self.user, applied.writes), (self.system, applied.system)):
            for key, value in writes:
                if value is None:
                    target.pop(key, None)
                else:
                    target[key] = value

    def _do(self, instruction: Instruction) -> None:
        if isinstance(instruction, SendMessages):
            known = max(self.state.written, self.state.processed) + 1
            for receiver, message in instruction.messages:
                self.world.transport.send(self.partition, known, receiver, message)
        elif isinstance(instruction, Reply):
            self.world.answered(self.partition, instruction)
        elif isinstance(instruction, TakeBackup):
            steps = self.world.archive.begin(self, instruction)
            if steps is not None:
                self.world.spawn(steps, self)

    @property
    def checkpoints(self) -> tuple[tuple[int, int, int], ...]:
        """Id, position and cut end of each, oldest first."""
        stored = self.system.get(_CHECKPOINTS, msgspec.msgpack.encode(()))
        return msgspec.msgpack.decode(stored, type=tuple[tuple[int, int, int], ...])

    def saved(self) -> LocalSnapshot:
        facts = KeptSnapshot(self.state.written, len(self.user), self.state.processed + 1)
        return LocalSnapshot(facts, dict(self.user), dict(self.system))

    def cut_at(self, checkpoint_id: int, position: int) -> CutFacts:
        """The facts of a checkpoint whose create is the next input."""
        digest = state_digest.as_text(state_digest.digest_of(self.user.items()))
        pending = sum(map(len, self.state.outbox.values()))
        return CutFacts(checkpoint_id, position, position + 1, digest, {}, self.state.checkpoint_id, pending)

    def snapshot(self) -> None:
        state = self.state
        if state.written >= 0 and not must_abort(state.processed, state.written, state.checkpoint_position):
            self.world.archive.snapshot(self)

    def keep_snapshot(self) -> None:
        """Keep the state of this moment, and of older snapshots the newest and the pinned ones."""
        new = self.saved()
        if all(found.facts.position != new.facts.position for found in self.disk):
            self.disk.append(new)
        newest = sorted(self.disk, key=lambda found: found.facts.position)[-_KEPT:]
        self.disk[:] = [found for found in self.disk if found in newest or found.facts in self.pins]

    def compact(self) -> None:
        self.world.archive.compact(self)

    def compact_unpinned(self) -> None:
        needed = [found.facts.log_from for found in self.disk] + [found.log_from for found in self.pins]
        if self.disk:
            self.log.compact(min(needed))

    def settled(self) -> bool:
        """Whether all inputs have results and all messages acknowledgements."""
        return self._drained() and not any(self.state.outbox.values())
