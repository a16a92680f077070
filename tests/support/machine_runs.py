"""One partition's log in a list, driven by the machine as a leader does it."""

from collections.abc import Callable
from dataclasses import dataclass, field

from logkeep.checkpoint import machine, records
from logkeep.checkpoint.machine import Append, CallHandler, Instruction, Reply, SendMessages, TakeBackup
from logkeep.checkpoint.machine_state import MachineState, apply, load
from logkeep.checkpoint.records import INPUTS, CheckpointDocument, Kind, Record, SentCommand
from logkeep.checkpoint.routing import partition_of

APPLICATION = bytes(range(16))
Outcome = tuple[tuple[tuple[str, bytes | None], ...], tuple[SentCommand, ...], object]
Handler = Callable[[Record], Outcome]


def nothing(_: Record) -> Outcome:
    return (), (), None


def start(partition: int = 0, partitions: int = 2, history: int = 1) -> MachineState:
    return MachineState(APPLICATION, "shop", history, partition, partitions)


def create(backup_id: int, *, nonce: str = "00000000000000aa", history: int = 1, marker: bool = False) -> Record:
    document = CheckpointDocument(
        repository="repo", application=APPLICATION.hex(), history=history, id=backup_id, nonce=nonce, marker=marker
    )
    return records.checkpoint(Kind.CREATE, document)


def key_of(partition: int, partitions: int = 2, start_at: int = 0) -> str:
    """A key that belongs to a partition."""
    names = (f"k{number}" for number in range(start_at, start_at + 10_000))
    return next(name for name in names if partition_of(name, partitions) == partition)


@dataclass
class Partition:
    """Its state, log, system keys, and everything it was instructed to do."""

    state: MachineState
    handler: Handler = nothing
    log: list[Record] = field(default_factory=list)
    system: dict[str, bytes] = field(default_factory=dict)
    done: list[Instruction] = field(default_factory=list)
    counted: list[str] = field(default_factory=list)

    def append(self, record: Record) -> Record:
        stored = record.at(len(self.log), 0)
        self.log.append(stored)
        return stored

    def receive(self, message: Record) -> None:
        reception = machine.receive(self.state, message)
        self.counted += [reception.counted] if reception.counted else []
        self.done += reception.instructions
        for record in reception.append:
            self.append(record)

    def process(self) -> None:
        """All inputs that wait."""
        position = self.state.processed + 1
        while position < len(self.log):
            if self.log[position].kind in INPUTS:
                self._process(self.log[position])
            position += 1

    def _process(self, record: Record) -> None:
        decision = machine.process(self.state, record)
        self.done += [found for found in decision.instructions if not isinstance(found, Append | CallHandler)]
        if decision.applied is not None:
            self.state = decision.applied.state
            self._store(decision.applied.system)
        for found in decision.instructions:
            if isinstance(found, Append):
                self._result(record, found.records[0])
            elif isinstance(found, CallHandler):
                self._result(record, machine.event(self.state, record, *self.handler(record)))

    def _result(self, source: Record, result: Record) -> None:
        stored = self.append(result)
        applied = apply(self.state, stored)
        self.state = applied.state
        self._store(applied.system)
        self.done += machine.results(self.state, source, stored)

    def _store(self, writes: list[tuple[str, bytes | None]]) -> None:
        for key, value in writes:
            if value is None:
                self.system.pop(key, None)
            else:
                self.system[key] = value

    def replayed(self, empty: MachineState, up_to: int | None = None) -> MachineState:
        state = empty
        for record in self.log[: up_to if up_to is not None else len(self.log)]:
            state = apply(state, record).state
        return state

    def loaded(self) -> MachineState:
        empty = start(self.state.partition, self.state.partitions, self.state.history)
        return load(empty, self.system.items())

    def backups(self) -> list[TakeBackup]:
        return [found for found in self.done if isinstance(found, TakeBackup)]

    def replies(self) -> list[Reply]:
        return [found for found in self.done if isinstance(found, Reply)]

    def sent(self) -> list[tuple[int, Record]]:
        return [message for found in self.done if isinstance(found, SendMessages) for message in found.messages]

    def kinds(self) -> list[str]:
        return [record.kind.name.lower() for record in self.log]
