"""What a handler can do: change state, send commands, reply; and how one is called.

Everything a handler does is collected and becomes one event. A handler that raises changes nothing: its command is
answered with the error, and logged as processed. Values are what msgpack knows: None, booleans, numbers, text, bytes,
lists and dictionaries. A value that is read is a copy: assign it again to change the state.
"""

import logging
from collections.abc import Callable, Iterator, Mapping, MutableMapping
from dataclasses import dataclass
from datetime import UTC, datetime
from types import TracebackType
from typing import Any, Protocol

import msgspec

from logkeep.checkpoint.partition_state import EXTERNAL, PartitionState
from logkeep.checkpoint.processor import Handled
from logkeep.checkpoint.records import NAME, RESERVED_PREFIX, Record, SentCommand
from logkeep.errors import LogkeepError, UsageError

MOST_VALUE_BYTES = 1 << 20
MOST_EVENT_BYTES = 7 << 20
"""Of what one command writes, sends and replies: its event is one record, and on Kafka a record has 8 MiB at most."""
MOST_KEY_BYTES = 1024
_MOST_LOGGED = 100


@dataclass(frozen=True)
class Command:
    """What a handler gets."""

    name: str
    key: str
    """It chooses the partition."""
    value: Any
    position: int
    """In the log of its partition."""
    time: datetime
    """When the partition logged it; never before that of an earlier command."""


UserHandler = Callable[[Command, "StateMapping", "Context"], object]


class KeyedState(Protocol):
    """The keys of one partition, as they are before a command."""

    def get(self, key: str) -> bytes | None: ...

    def each_key(self) -> Iterator[str]: ...


class HandledApplication(Protocol):
    """What a program needs of an application."""

    name: str
    partitions: int
    handlers: dict[str, UserHandler]


_log = logging.getLogger("logkeep.application")
_pack, _unpack = msgspec.msgpack.encode, msgspec.msgpack.decode


def encode_value(value: object) -> bytes:
    """Raises UsageError for a value that cannot be stored, or is larger than a mebibyte."""
    try:
        data = _pack(value)
    except (TypeError, ValueError, OverflowError, RecursionError) as error:
        remedy = "use None, booleans, numbers, text, bytes, lists and dictionaries"
        raise UsageError(f"the value cannot be stored ({error})", remedy=remedy) from error
    if len(data) > MOST_VALUE_BYTES:
        what = f"the value has {len(data)} bytes; the limit is {MOST_VALUE_BYTES}"
        raise UsageError(what, remedy="store large values elsewhere, and their names here")
    return data


def check_key(key: object) -> str:
    if not isinstance(key, str) or not 0 < len(key.encode("utf-8", "surrogatepass")) <= MOST_KEY_BYTES:
        raise UsageError(f"{str(key)[:40]!r} is not a key", remedy=f"use text of 1 to {MOST_KEY_BYTES} bytes")
    if key.startswith(RESERVED_PREFIX) or not key.isprintable():
        raise UsageError(f"the key {key[:40]!r} is reserved or not printable", remedy="choose another key")
    return key


class StateMapping(MutableMapping[str, Any]):
    """The keys of the command's partition."""

    def __init__(self, state: KeyedState) -> None:
        self._state = state
        self.writes: dict[str, bytes | None] = {}

    def __getitem__(self, key: str) -> Any:
        data = self.writes[key] if key in self.writes else self._state.get(check_key(key))
        if data is None:
            raise KeyError(key)
        return _unpack(data)

    def __setitem__(self, key: str, value: Any) -> None:
        self.writes[check_key(key)] = encode_value(value)

    def __delitem__(self, key: str) -> None:
        self[key]
        self.writes[key] = None

    def __iter__(self) -> Iterator[str]:
        yield from (key for key in self._state.each_key() if key not in self.writes)
        yield from (key for key, value in self.writes.items() if value is not None)

    def __len__(self) -> int:
        return sum(1 for _ in self)


class Context:
    """What a handler does besides changing state."""

    def __init__(self, now_ms: int) -> None:
        self.now = datetime.fromtimestamp(now_ms / 1000, UTC)
        """The time of the command in its log, in UTC."""
        self.sends: list[SentCommand] = []
        self.positions: dict[str, bytes] = {}
        self.answer: Any = None

    def send(self, name: str, *, key: str, value: Any = None) -> None:
        """Send a command to the partition of a key. It is processed there once, whatever fails."""
        if not isinstance(name, str) or not name:
            raise UsageError(f"{name!r} is not the name of a command")
        self.sends.append(SentCommand(name, check_key(key), encode_value(value)))

    def reply(self, value: Any) -> None:
        """What the client gets that sent this command."""
        encode_value(value)
        self.answer = value

    def external(self, name: str, position: int) -> None:
        """Report the position in another system up to which it has this partition's changes; it only grows."""
        if isinstance(position, bool) or not isinstance(position, int) or not 0 <= position < 1 << 63:
            raise UsageError(f"{position!r} is not a position")
        self.positions[EXTERNAL + check_key(name)] = encode_value(position)


def handler_caller(handlers: Mapping[str, UserHandler]) -> Callable[[Record, PartitionState], Handled]:
    """Calls the handler of a command. Never raises."""

    def call(record: Record, state: PartitionState) -> Handled:
        try:
            return handled(handlers, record, state)
        except Exception as error:  # noqa: BLE001 - any error of the user's code rejects its command, and only that
            text, shown = rejection(error), (record.text(NAME) or "", _key_of(record))
            called = _users_calls(error)
            _log.warning(
                "rejected command %r of key %r at %d: %s", *(each[:_MOST_LOGGED] for each in shown), record.position,
                text, exc_info=error.with_traceback(called) if called else None,
            )  # fmt: skip
            return Handled(reply={"error": text[:1000]})

    return call


def rejection(error: Exception) -> str:
    """What the client of a rejected command gets."""
    return error.what if isinstance(error, LogkeepError) else f"{type(error).__name__}: {error}"


def _users_calls(error: Exception) -> TracebackType | None:
    """From the user's handler on; None if it was not called."""
    found = error.__traceback__
    while found is not None and found.tb_frame.f_code.co_filename == __file__:
        found = found.tb_next
    return found


def handled(handlers: Mapping[str, UserHandler], record: Record, state: KeyedState) -> Handled:
    """What the handler of a command does. Raises what it raises, and UsageError if there is none."""
    command, mapping, context = _command(record), StateMapping(state), Context(record.timestamp_ms)
    if command.name not in handlers:
        known = ", ".join(sorted(handlers)) or "no command"
        raise UsageError(f"no handler for the command {command.name!r}, but for {known}")
    handlers[command.name](command, mapping, context)
    done = Handled((*mapping.writes.items(), *context.positions.items()), tuple(context.sends), context.answer)
    size = len(_pack(done))
    if size > MOST_EVENT_BYTES:
        what = f"what the command writes, sends and replies has {size} bytes; the limit is {MOST_EVENT_BYTES}"
        raise UsageError(what, remedy="divide it among several commands")
    return done


def _key_of(record: Record) -> str:
    return (record.key or b"").decode("utf-8", "replace")


def _command(record: Record) -> Command:
    time = datetime.fromtimestamp(record.timestamp_ms / 1000, UTC)
    try:
        value = _unpack(record.value)
    except (msgspec.MsgspecError, RecursionError, UnicodeDecodeError) as error:
        raise UsageError("the value of the command is not msgpack") from error
    return Command(record.text(NAME) or "", _key_of(record), value, record.position, time)
