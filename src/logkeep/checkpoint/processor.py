"""Processes one partition: moves messages into the log, calls handlers, appends their events, sends what they send.

One step appends inputs durably, calls the handler of each one on the changes of those before it, appends all results
durably as one batch, stores the state in one transaction, and then replies and sends. A step that fails in between
changes nothing: its inputs are processed again. A replay applies results and calls no handler. A create is appended
alone, once every input before it has its result, so every stored state is that of a whole batch.
"""

from collections import Counter, deque
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

import msgspec

from logkeep.checkpoint import machine
from logkeep.checkpoint.log import PartitionLog, Transport
from logkeep.checkpoint.machine_state import MachineState, apply
from logkeep.checkpoint.partition_state import CutFacts, PartitionState
from logkeep.checkpoint.records import INPUTS, CheckpointDocument, Kind, Record, SentCommand, document_of
from logkeep.checkpoint.state.backend import StateBackend
from logkeep.errors import Damaged, PartitionFenced, StoreFull

MOST_MESSAGES = 512
"""Inputs of one append at most."""
_REPLAY_BYTES = 4 << 20
_APPEND_BYTES = 16 << 20
"""An append ends with the first record that reaches this size: one result has 7 MiB at most, one message 8 MiB."""
_ANSWERS_KEPT = 64


class Handled(NamedTuple):
    """What a handler did with one command."""

    writes: tuple[tuple[str, bytes | None], ...] = ()
    sends: tuple[SentCommand, ...] = ()
    reply: Any = None


Handler = Callable[[Record, PartitionState], Handled]
"""Calls the user's code. Never raises: a handler that fails gives a reply with the error, and nothing else."""


@dataclass(frozen=True)
class Surroundings:
    """What a processor is given: how it acts on the world, and the clocks."""

    transport: Transport
    handler: Handler
    begin_backup: Callable[[machine.TakeBackup, CutFacts], None]
    """Pins what a copy needs and returns at once; asked again for the same id, it does nothing."""
    reply: Callable[[str, object], None]
    now_ms: Callable[[], int]
    elapsed_s: Callable[[], float]
    """A clock that is never set."""
    resend_after_s: float = 1.0
    watch: Callable[[str], None] = lambda _: None
    """Gets a label between the parts of a step."""


class Processor:
    """The leader of one partition. One thread calls `recover` once, then `step`."""

    def __init__(
        self,
        empty: MachineState,
        log: PartitionLog,
        backend: StateBackend,
        around: Surroundings,
        waiting: Sequence[Record] = (),
    ) -> None:
        """`waiting` are messages that another processor of this partition received and did not append."""
        self.partition, self._log, self._around = empty.partition, log, around
        self.state = PartitionState(empty, backend)
        self._inputs: deque[Record] = deque()
        """Records in the log that have no result yet."""
        self._inbox: deque[Record] = deque(waiting)
        self._latest_ms = 0
        self._resend_below, self._resent_at = 0, around.elapsed_s()
        self.answers: dict[int, CheckpointDocument] = {}
        """By checkpoint id, what this partition answered to the last creates."""
        self.counted: Counter[str] = Counter()
        """Messages that were treated as special, by reason."""

    def recover(self) -> None:
        """Apply the records of the log that the state lacks. Raises Damaged if they do not fit together."""
        applied, end = self.state.backend.position, self._log.end
        if applied >= end:
            raise Damaged(f"the state is ahead of the log, which ends at {end}", subject=f"partition {self.partition}")
        if applied + 1 < self._log.start:
            what = f"the state ends at {applied}, but the log begins at {self._log.start}"
            raise Damaged(what, subject=f"partition {self.partition}")
        # An input is before its result: a log that was compacted up to the state begins after both.
        position, acknowledgements = max(self.state.machine.processed + 1, self._log.start), deque[Record]()
        while position < end:
            records = self._log.read(position, _REPLAY_BYTES)
            if not records:
                break  # positions without records end the log
            self._replay(records, acknowledgements)
            position = records[-1].position + 1
        self._inputs = deque(one for one in self._inputs if one.position > self.state.machine.processed)
        self._resend_below, self._resent_at = self.state.machine.processed + 1, float("-inf")

    @property
    def waiting(self) -> tuple[Record, ...]:
        """Messages that were received and are not in the log."""
        return tuple(self._inbox)

    def step(self) -> bool:
        """One bounded piece of work; whether there was any. After an error the same work is tried again."""
        if not self._inputs:
            self._accept()
        worked = bool(self._inputs)
        if worked:
            self._process()
        return self._resend() or worked or bool(self._inbox)

    def _replay(self, records: Sequence[Record], acknowledgements: deque[Record]) -> None:
        """`acknowledgements` are those that wait for a result after them."""
        for record in records:
            self._latest_ms = max(self._latest_ms, record.timestamp_ms)
            if record.kind in INPUTS:
                self._inputs.append(record)
                if record.kind == Kind.ACK:
                    acknowledgements.append(record)
                continue
            for acknowledgement in machine.due(acknowledgements, record):
                self._add(acknowledgement)
            self._add(record)
        while self._inputs and self._inputs[0].position <= self.state.machine.processed:
            self._inputs.popleft()
        done = self._inputs[0].position - 1 if self._inputs else records[-1].position
        self.state.commit(max(done, self.state.backend.position))  # the log after it is needed: inputs wait there

    def _add(self, record: Record) -> None:
        """Apply one result, or an acknowledgement, whose position is known."""
        cut_end = -1
        if record.kind == Kind.CREATED:
            cut_end = self._log.cut_end(document_of(record).source_position)
        self.state.add(apply(self.state.machine, record), cut_end)

    def _accept(self) -> None:
        """Append messages that wait, up to the first one that a create precedes."""
        self._inbox.extend(self._around.transport.receive(self.partition, MOST_MESSAGES - len(self._inbox)))
        batch: list[Record] = []
        taken: list[Record] = []
        instructions: list[machine.Instruction] = []
        size = 0
        for message in self._inbox:
            reception = machine.receive(self.state.machine, message)
            if reception.append and reception.append[0].kind == Kind.CREATE:
                if not batch:
                    batch = [reception.append[0]]
                    taken += [message] * (message.kind == Kind.CREATE)  # another message is received again after it
                break
            batch += reception.append
            taken.append(message)
            instructions += reception.instructions
            self.counted[reception.counted] += bool(reception.counted)
            size += len(message.value or b"")
            if size >= _APPEND_BYTES:
                break
        self._append_inputs(batch, taken)
        for _ in taken:
            self._inbox.popleft()
        self._execute(instructions)

    def _append_inputs(self, batch: Sequence[Record], taken: Sequence[Record]) -> None:
        self._around.transport.consumed(self.partition, taken)
        if not batch:
            return
        now_ms = self._time_ms()
        stamped = [one.at(-1, now_ms) for one in batch]
        first = self._log.append(stamped)
        self._inputs.extend(one.at(first + number, now_ms) for number, one in enumerate(stamped))
        self._around.watch(f"appended {batch[-1].kind.name.lower()}")

    def _process(self) -> None:
        """Give inputs their results, as one batch: all of them, unless the results are large."""
        base, now_ms = self._log.end, self._time_ms()
        results: list[tuple[Record, Record]] = []
        count = size = 0
        instructions: list[machine.Instruction] = []
        try:
            for record in self._inputs:
                demands = machine.process(self.state.machine, record)
                for result in self._results(demands.instructions, instructions):
                    placed = result.at(base + len(results), now_ms)
                    self._add(placed)
                    results.append((record, placed))
                    size += len(placed.value or b"")
                if demands.applied is not None:
                    self.state.add(demands.applied)
                count += 1
                if size >= _APPEND_BYTES:
                    break
            self._append_results([result for _, result in results], base)
        except BaseException:
            self.state.rollback()
            raise
        for _ in range(count):
            self._inputs.popleft()
        done = self._inputs[0].position if self._inputs else self._log.end
        try:
            self.state.commit(max(done - 1, self.state.backend.position))  # inputs that wait are after it
        except StoreFull:
            self._answer(results, instructions)  # the results are durable: replay does not answer them
            raise
        self._around.watch("state stored")
        self._answer(results, instructions)

    def _answer(self, results: Sequence[tuple[Record, Record]], instructions: list[machine.Instruction]) -> None:
        for source, result in results:
            instructions += self._follow_up(source, result)
        self._execute(instructions)

    def _results(self, instructions: Sequence[machine.Instruction], later: list[machine.Instruction]) -> list[Record]:
        """The records to append; what must wait until they are durable is added to `later`."""
        results: list[Record] = []
        for instruction in instructions:
            match instruction:
                case machine.CallHandler(command):
                    done = self._around.handler(command, self.state)
                    results.append(machine.event(self.state.machine, command, done.writes, done.sends, done.reply))
                case machine.Append(records):
                    results += records
                case machine.TakeBackup(checkpoint_id, position):
                    cut = self.state.cut_at(checkpoint_id, position, self._log.cut_end(position))
                    self._around.begin_backup(instruction, cut)
                    self._around.watch("backup begun")
                case _:
                    later.append(instruction)
        return results

    def _append_results(self, results: Sequence[Record], base: int) -> None:
        if not results:
            return
        kind = results[-1].kind.name.lower()
        self._around.watch(f"before {kind}")
        if self._log.append(results) != base:
            raise PartitionFenced("results are not where they were planned", subject=f"partition {self.partition}")
        self._around.watch(f"appended {kind}")

    def _follow_up(self, source: Record, result: Record) -> Sequence[machine.Instruction]:
        found = machine.results(self.state.machine, source, result)
        if result.kind == Kind.EVENT:
            return found
        answer = self._noted(document_of(result))
        return [msgspec.structs.replace(each, value=answer) for each in found if isinstance(each, machine.Reply)]

    def _noted(self, document: CheckpointDocument) -> CheckpointDocument:
        """Remember the answer to creates with this id. The first nonce is kept: it names the coordinator."""
        known = self.answers.get(document.id)
        answer = known if known is not None and known.nonce else document
        self.answers[document.id] = answer
        while len(self.answers) > _ANSWERS_KEPT:
            del self.answers[min(self.answers)]
        return answer

    def _resend(self) -> bool:
        """Send again what was sent before the last time and has no acknowledgement."""
        now = self._around.elapsed_s()
        if now - self._resent_at < self._around.resend_after_s:
            return False
        due = machine.resend(self.state.machine, self._resend_below, MOST_MESSAGES)
        self._resend_below, self._resent_at = self.state.machine.processed + 1, now
        self._execute([due])
        return bool(due.messages)

    def _execute(self, instructions: Sequence[machine.Instruction]) -> None:
        for instruction in instructions:
            if isinstance(instruction, machine.SendMessages):
                for receiver, message in instruction.messages:
                    self._around.transport.send(receiver, [message])
            elif isinstance(instruction, machine.Reply):
                self._around.reply(instruction.to, instruction.value)

    def _time_ms(self) -> int:
        """Times of records never go back, also if the clock was set back."""
        self._latest_ms = max(self._latest_ms, self._around.now_ms())
        return self._latest_ms
