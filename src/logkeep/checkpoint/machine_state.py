"""What one partition knows besides the user's keys, and how records of its log change it.

State changes only by `apply`, which gets results and acknowledgements in the order of the log: while a leader processes
and while another one replays. All of it is in the state backend's system keys, in the transaction of the user's writes,
so every snapshot has it: without outbox and memory a restored application loses messages, or processes them twice.

`processed` is the position of the last input whose result is known, `written` that of the last result. A result may be
after later inputs: replay begins at `processed + 1`, which is what a snapshot needs of the log.
"""

from collections.abc import Iterable, Mapping
from typing import Any

import msgspec

from logkeep.checkpoint.records import (
    INPUT,
    EventValue,
    Kind,
    MessageSource,
    Record,
    SentCommand,
    Stamp,
    acknowledged,
    document_of,
    event_value,
    low_of,
    request_of,
    source_of,
)
from logkeep.checkpoint.routing import partition_of

REQUESTS_PER_GENERATION, GENERATIONS_KEPT = 256, 16
"""How many answered requests are remembered: the newest 3,840 at least."""

SystemWrites = list[tuple[str, bytes | None]]
MessageKey = tuple[int, int]
"""Position and index: which message of one sender."""
Answered = tuple[int, Any]
_pack = msgspec.msgpack.encode
_unpack = msgspec.msgpack.decode


class MachineState(msgspec.Struct, frozen=True):
    """Maps are never changed in place; a new state shares those that stayed equal."""

    application: bytes
    name: str
    history: int
    partition: int
    partitions: int
    checkpoint_id: int = 0
    checkpoint_position: int = -1
    processed: int = -1
    written: int = -1
    outbox: Mapping[int, Mapping[MessageKey, SentCommand]] = {}
    """For each receiver what it has not acknowledged."""
    received: Mapping[int, Mapping[MessageKey, int]] = {}
    """For each sender the messages at or above its low-water mark, and the position at which each was processed."""
    lows: Mapping[int, int] = {}
    requests: Mapping[int, Mapping[str, Answered]] = {}
    request_count: int = 0

    @property
    def topic(self) -> str:
        return f"{self.name}.log"

    @property
    def stamp(self) -> Stamp:
        return Stamp(self.application, self.history, self.checkpoint_id)

    def source(self, position: int, index: int) -> MessageSource:
        return MessageSource(self.topic, self.partition, position, index)

    def low_water_mark(self, receiver: int) -> int:
        """Messages to this receiver below it are acknowledged."""
        waiting = self.outbox.get(receiver)
        return min(waiting)[0] if waiting else self.processed + 1

    def processed_at(self, source: MessageSource) -> int | None:
        """Where a message was processed; -1 if the sender itself said that it has the acknowledgement."""
        if source.position < self.lows.get(source.partition, 0):
            return -1
        return self.received.get(source.partition, {}).get((source.position, source.index))

    def answered(self, request: str) -> Answered | None:
        for generation in self.requests.values():
            if request in generation:
                return generation[request]
        return None


class Applied(msgspec.Struct, frozen=True):
    """The next state, and what to store for it in one transaction."""

    state: MachineState
    writes: tuple[tuple[str, bytes | None], ...] = ()
    system: SystemWrites = []


def apply(state: MachineState, record: Record) -> Applied:
    """The state after a result or an acknowledgement. Other inputs, and results known already, change nothing."""
    if record.kind == Kind.ACK:
        return _acknowledge(state, record)
    if record.kind == Kind.EVENT:
        value = event_value(record)
        return _event(state, record, value) if value.source_position > state.processed else Applied(state)
    if record.kind in (Kind.CREATED, Kind.IGNORED):
        return _checkpoint(state, record)
    return Applied(state)


def passed(state: MachineState, position: int) -> Applied:
    """The state after an input that has no result: an acknowledgement, or a message that came again."""
    return _stored(msgspec.structs.replace(state, processed=position), (), [])


def _checkpoint(state: MachineState, record: Record) -> Applied:
    document = document_of(record)
    if document.source_position <= state.processed:
        return Applied(state)
    position = document.source_position
    changed = msgspec.structs.replace(state, processed=position, written=record.position)
    if record.kind == Kind.CREATED:
        changed = msgspec.structs.replace(changed, checkpoint_id=document.id, checkpoint_position=position)
    return _stored(changed, (), [])


def _acknowledge(state: MachineState, record: Record) -> Applied:
    source = source_of(record)
    waiting = state.outbox.get(source.partition) if source else None
    known = [key for key in acknowledged(record) if waiting and key in waiting]
    if source is None or waiting is None or not known:
        return Applied(state)
    left = {key: sent for key, sent in waiting.items() if key not in known}
    system: SystemWrites = [(_outbox_key(source.partition, key), None) for key in known]
    others = {receiver: found for receiver, found in state.outbox.items() if receiver != source.partition}
    outbox = {**others, source.partition: left} if left else others
    return _stored(msgspec.structs.replace(state, outbox=outbox), (), system)


def _event(state: MachineState, record: Record, value: EventValue) -> Applied:
    system: SystemWrites = []
    outbox = _with_sends(state, value, system)
    received, lows = _with_message(state, record, value.source_position, system)
    requests, count = _with_request(state, record, value, system)
    changed = msgspec.structs.replace(
        state, processed=value.source_position, written=record.position, outbox=outbox, received=received, lows=lows,
        requests=requests, request_count=count,
    )  # fmt: skip
    return _stored(changed, value.writes, system)


def _with_sends(
    state: MachineState, value: EventValue, system: SystemWrites
) -> Mapping[int, Mapping[MessageKey, SentCommand]]:
    outbox = dict(state.outbox) if value.sends else state.outbox
    for index, sent in enumerate(value.sends):
        receiver, key = partition_of(sent.key, state.partitions), (value.source_position, index)
        outbox = {**outbox, receiver: {**outbox.get(receiver, {}), key: sent}}
        system.append((_outbox_key(receiver, key), _pack(sent)))
    return outbox


def _with_message(
    state: MachineState, record: Record, position: int, system: SystemWrites
) -> tuple[Mapping[int, Mapping[MessageKey, int]], Mapping[int, int]]:
    source = source_of(record, INPUT)
    if source is None:
        return state.received, state.lows
    low = max(state.lows.get(source.partition, 0), low_of(record) or 0)
    known, key = state.received.get(source.partition, {}), (source.position, source.index)
    system.extend((_received_key(source.partition, each), None) for each in known if each[0] < low)
    system.append((_received_key(source.partition, key), _pack(position)))
    kept = {each: at for each, at in known.items() if each[0] >= low} | {key: position}
    return {**state.received, source.partition: kept}, {**state.lows, source.partition: low}


def _with_request(
    state: MachineState, record: Record, value: EventValue, system: SystemWrites
) -> tuple[Mapping[int, Mapping[str, Answered]], int]:
    request = request_of(record)
    if request is None:
        return state.requests, state.request_count
    newest = state.request_count // REQUESTS_PER_GENERATION
    kept = {number: found for number, found in state.requests.items() if number > newest - GENERATIONS_KEPT}
    for number in state.requests.keys() - kept.keys():
        system.extend((f"request/{number}/{old}", None) for old in state.requests[number])
    kept[newest] = {**kept.get(newest, {}), request: (value.source_position, value.reply)}
    system.append((f"request/{newest}/{request}", _pack((value.source_position, value.reply))))
    return kept, state.request_count + 1


def _stored(state: MachineState, writes: tuple[tuple[str, bytes | None], ...], system: SystemWrites) -> Applied:
    ids = (state.checkpoint_id, state.checkpoint_position, state.processed, state.written)
    small = (*ids, state.request_count, dict(state.lows))
    return Applied(state, writes, [*system, ("machine", _pack(small))])


def load(empty: MachineState, system: Iterable[tuple[str, bytes]]) -> MachineState:
    """The state whose system keys these are; `empty` says of which application, history and partition."""
    found: dict[str, Any] = {}
    maps: dict[str, dict[int, dict[Any, Any]]] = {"outbox": {}, "received": {}, "request": {}}
    for key, data in system:
        if key == "machine":
            names = ("checkpoint_id", "checkpoint_position", "processed", "written", "request_count", "lows")
            found = dict(zip(names, msgspec.msgpack.decode(data, strict=False), strict=True))
            found["lows"] = {int(sender): low for sender, low in found["lows"].items()}
            continue
        kind, _, rest = key.partition("/")
        if kind in maps:
            number, _, rest = rest.partition("/")
            maps[kind].setdefault(int(number), {})[_map_key(kind, rest)] = _map_value(kind, data)
    return msgspec.structs.replace(
        empty, outbox=maps["outbox"], received=maps["received"], requests=maps["request"], **found
    )


def _map_key(kind: str, text: str) -> str | MessageKey:
    if kind == "request":
        return text
    position, _, index = text.partition("/")
    return int(position), int(index)


def _map_value(kind: str, data: bytes) -> Any:
    if kind == "outbox":
        return msgspec.msgpack.decode(data, type=SentCommand)
    return _unpack(data) if kind == "received" else tuple(_unpack(data))


def _outbox_key(receiver: int, key: MessageKey) -> str:
    return f"outbox/{receiver}/{key[0]}/{key[1]}"


def _received_key(sender: int, key: MessageKey) -> str:
    return f"received/{sender}/{key[0]}/{key[1]}"
