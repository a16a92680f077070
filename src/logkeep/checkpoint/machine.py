"""Decides for the leader of a partition: what to append for a message, and what to do for a record. No I/O.

A leader works in this order: it calls `receive` for each message and appends what that returns; it calls `process` for
each input of the log in order, appends the result, and applies it with `machine_state.apply`; then it does what
`results` says. A replay only applies: it takes no backup, calls no user code and sends nothing.

A leader appends a create only when every input has its result (`drained`). Otherwise a command could be inside the cut
and its event outside: a restored application would call the handler a second time, although receivers inside the cut
already have what the first call sent.
"""

from collections import deque
from collections.abc import Iterator, Mapping

import msgspec

from logkeep.checkpoint import records
from logkeep.checkpoint.machine_state import Applied, MachineState, MessageKey, apply, passed
from logkeep.checkpoint.records import (
    ACK_INDEX,
    INPUTS,
    CheckpointDocument,
    Kind,
    MessageSource,
    Record,
    SentCommand,
    Stamp,
    document_of,
    event_value,
)
from logkeep.checkpoint.routing import partition_of
from logkeep.errors import Damaged, FormatTooNew

FORCED = "a message carried this id"
Addressed = tuple[int, Record]
"""A message with the number of the partition to which it is sent."""


class Append(msgspec.Struct, frozen=True):
    """Append these results."""

    records: tuple[Record, ...]


class TakeBackup(msgspec.Struct, frozen=True):
    """Copy this partition up to and including the create at `position`. A forced one has no nonce and no repository."""

    id: int
    position: int
    nonce: str
    repository: str


class Reply(msgspec.Struct, frozen=True):
    """Answer a client's request, or the coordinator that sent a create with this nonce."""

    to: str
    value: object


class SendMessages(msgspec.Struct, frozen=True):
    messages: tuple[Addressed, ...]


class CallHandler(msgspec.Struct, frozen=True):
    """Call the user's handler, and append `event` of what it did."""

    command: Record


Instruction = Append | TakeBackup | Reply | SendMessages | CallHandler


class Reception(msgspec.Struct, frozen=True):
    """What a leader does with one record of its inbox. `counted` says why it was treated as special."""

    append: tuple[Record, ...] = ()
    instructions: tuple[Instruction, ...] = ()
    counted: str = ""


class Demands(msgspec.Struct, frozen=True):
    """What to do with one input. `applied` is set if the input has no result."""

    instructions: tuple[Instruction, ...] = ()
    applied: Applied | None = None


def receive(state: MachineState, message: Record) -> Reception:
    """A create is appended before the first message that carries its id; what came before is not logged again."""
    if message.kind not in INPUTS:
        return Reception(counted="no input")
    if message.kind == Kind.CREATE:
        return _receive_create(state, message)
    counted = _foreign(state, message)
    if counted:
        return Reception(() if message.kind == Kind.ACK else (message,), counted=counted)
    if message.kind == Kind.ACK and not _acknowledges(state, message):
        return Reception(counted="unreadable")
    return _receive_own(state, message, records.stamp_of(message))


def _receive_own(state: MachineState, message: Record, stamp: Stamp | None) -> Reception:
    if stamp is not None and stamp.history != state.history:
        return Reception(counted="old history")
    known = _answer_again(state, message)
    if known is not None:
        return Reception((), known, "double")
    if stamp is not None and stamp.checkpoint_id > state.checkpoint_id:
        return Reception((_forced(state, stamp.checkpoint_id), message))
    return Reception((message,))


def drained(state: MachineState, last_input: int) -> bool:
    """Whether every input of the log up to `last_input` has its result, so that a create may follow."""
    return state.processed >= last_input


def process(state: MachineState, record: Record) -> Demands:
    """What the next input of the log demands."""
    if record.kind == Kind.CREATE:
        return Demands(_checkpoint(state, record))
    if record.kind == Kind.ACK:
        acknowledged = apply(state, record)
        after = passed(acknowledged.state, record.position)
        return Demands((), Applied(after.state, (), acknowledged.system + after.system))
    known = _answer_again(state, record)
    if known is not None:
        return Demands(known, passed(state, record.position))
    return Demands((CallHandler(record),))


def event(state: MachineState, command: Record, writes: object, sends: object, reply: object) -> Record:
    """The event of a command. The source in a message of another application is not stored."""
    return records.event(command, writes, sends, reply, identified=_source(state, command) is not None)


def due(waiting: deque[Record], result: Record) -> list[Record]:
    """Replay: the acknowledgements of `waiting` inputs that the last leader had applied before this result.

    Those after the last result stay: an input before them may have no result, and a create among such inputs is taken
    again by the new leader. A state with an acknowledgement from after that create would lose the message.
    """
    if not waiting:
        return []
    source = event_value(result).source_position if result.kind == Kind.EVENT else document_of(result).source_position
    found = []
    while waiting and waiting[0].position < source:
        found.append(waiting.popleft())
    return found


def results(state: MachineState, source: Record, result: Record) -> tuple[Instruction, ...]:
    """What follows once a result is durable and applied to `state`: messages carry the id of this moment."""
    if result.kind == Kind.EVENT:
        return tuple(_event_results(state, source, result))
    document = document_of(source)
    return (Reply(document.nonce, document_of(result)),) if document.nonce else ()


def resend(state: MachineState, below: int, most: int) -> SendMessages:
    """Messages of commands below a position that have no acknowledgement yet, stamped with the present checkpoint id.

    The receivers take turns: one that does not answer must not keep the others from what they lost.
    """
    found: list[Addressed] = []
    turns = deque((receiver, _due(waiting, below)) for receiver, waiting in state.outbox.items())
    while turns and len(found) < most:
        receiver, left = turns.popleft()
        message = next(left, None)
        if message is not None:
            (position, index), sent = message
            found.append(_addressed(state, receiver, state.source(position, index), sent))
            turns.append((receiver, left))
    return SendMessages(tuple(found))


def _due(waiting: Mapping[MessageKey, SentCommand], below: int) -> Iterator[tuple[MessageKey, SentCommand]]:
    return (each for each in waiting.items() if each[0][0] < below)


def _receive_create(state: MachineState, message: Record) -> Reception:
    try:
        document = document_of(message)
    except (Damaged, FormatTooNew):
        return Reception(counted="unreadable")
    if document.application != state.application.hex():
        return Reception(counted="other application")
    if document.history != state.history:
        return Reception(counted="old history")
    return Reception((message,))


def _foreign(state: MachineState, message: Record) -> str:
    """Why the stamp of a message is not this application's; empty if it is, or if there is none."""
    if message.header(records.STAMP) is None:
        return ""
    stamp = records.stamp_of(message)
    if stamp is None:
        return "unreadable"
    return "" if stamp.application == state.application else "other application"


def _source(state: MachineState, message: Record) -> MessageSource | None:
    """Which message of this application it is; an earlier history's, too, if it is in the log already."""
    source = records.source_of(message)
    if source is None or source.topic != state.topic or not 0 <= source.partition < state.partitions:
        return None
    return None if _foreign(state, message) else source


def _acknowledges(state: MachineState, message: Record) -> bool:
    """Whether an acknowledgement can be read: in the log, an unreadable one would end every leader."""
    try:
        records.acknowledged(message)
    except Damaged:
        return False
    return _source(state, message) is not None


def _answer_again(state: MachineState, message: Record) -> tuple[Instruction, ...] | None:
    """Whether a command was processed before: then the answer is given again, and nothing else happens."""
    if message.kind != Kind.COMMAND:
        return None
    source = _source(state, message)
    if source is not None:
        position = state.processed_at(source)
        if position is None:
            return None
        return (SendMessages((_acknowledgement(state, source, position),)),) if position >= 0 else ()
    request = records.request_of(message)
    answered = state.answered(request) if request is not None else None
    return (Reply(request or "", answered[1]),) if answered is not None else None


def _forced(state: MachineState, checkpoint_id: int) -> Record:
    document = CheckpointDocument(
        repository="", application=state.application.hex(), history=state.history, id=checkpoint_id, reason=FORCED
    )
    return records.checkpoint(Kind.CREATE, document)


def _checkpoint(state: MachineState, create: Record) -> tuple[Instruction, ...]:
    document = document_of(create)
    if document.id <= state.checkpoint_id:
        answer = msgspec.structs.replace(document, source_position=create.position, latest=state.checkpoint_id)
        return (Append((records.checkpoint(Kind.IGNORED, answer),)),)
    answer = msgspec.structs.replace(document, source_position=create.position, latest=document.id)
    created = Append((records.checkpoint(Kind.CREATED, answer),))
    if document.marker:
        return (created,)
    return TakeBackup(document.id, create.position, document.nonce, document.repository), created


def _event_results(state: MachineState, command: Record, result: Record) -> Iterator[Instruction]:
    value = event_value(result)
    messages = [
        _addressed(state, partition_of(sent.key, state.partitions), state.source(value.source_position, index), sent)
        for index, sent in enumerate(value.sends)
    ]
    source = records.source_of(result, records.INPUT)
    if source is not None:
        messages.append(_acknowledgement(state, source, value.source_position))
    if messages:
        yield SendMessages(tuple(messages))
    request = records.request_of(command)
    if request is not None:
        yield Reply(request, value.reply)


def _addressed(state: MachineState, receiver: int, source: MessageSource, sent: SentCommand) -> Addressed:
    return receiver, records.message(sent, state.stamp, source, state.low_water_mark(receiver))


def _acknowledgement(state: MachineState, source: MessageSource, position: int) -> Addressed:
    own = state.source(position, ACK_INDEX)
    return source.partition, records.acknowledgement([(source.position, source.index)], state.stamp, own)
