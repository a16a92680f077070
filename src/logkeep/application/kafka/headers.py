"""The headers and offset metadata of a consume-process-produce application. Pure functions over lists of headers.

They work with every client library: a header is a pair of name and bytes. An application stamps what it produces, asks
before each record whether the record forces a checkpoint, and keeps the id of its last checkpoint with its offsets.
"""

import hashlib
import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from logkeep.checkpoint.records import (
    SOURCE,
    STAMP,
    MessageSource,
    Stamp,
    pack_stamp,
    source_head,
    source_tail,
    unpack_source,
    unpack_stamp,
)

Header = tuple[str, bytes | str | None]
_METADATA = re.compile(r"lk1:(?P<id>[0-9]{1,18})(;|\Z)", re.ASCII)
_FIRST_HISTORY = 1
_OWN = (STAMP, SOURCE)


@dataclass(frozen=True)
class Stamps:
    """What one application writes and reads. Two applications with different names do not force each other."""

    application: bytes
    history: int = _FIRST_HISTORY

    @classmethod
    def of(cls, name: str) -> "Stamps":
        return cls(hashlib.sha256(b"logkeep application\0" + name.encode()).digest()[:16])

    def stamped(self, headers: Iterable[Header], checkpoint_id: int, source: MessageSource) -> list[Header]:
        """Headers for an output: the user's, the id of the task's last checkpoint, and the record that caused it."""
        return OutputStamps(self, source.topic, source.partition).stamped(
            headers, checkpoint_id, source.position, source.index
        )

    def checkpoint_of(self, headers: Sequence[Header] | None) -> int:
        """The checkpoint id that this application stamped on a record; 0 if there is no stamp, or a foreign one."""
        stamp = self._own_stamp(headers)
        return stamp.checkpoint_id if stamp is not None else 0

    def is_own(self, headers: Sequence[Header] | None) -> bool:
        """Whether this application stamped the record, in this history."""
        return self._own_stamp(headers) is not None

    def forced_by(self, headers: Sequence[Header] | None, last: int) -> int | None:
        """The checkpoint that a task must take before it processes a record; None if it need not. `last`: its last."""
        found = self.checkpoint_of(headers) if headers else 0
        return found if found > last else None

    def _own_stamp(self, headers: Sequence[Header] | None) -> Stamp | None:
        stamp = unpack_stamp(_value(headers, STAMP))
        ours = stamp is not None and (stamp.application, stamp.history) == (self.application, self.history)
        return stamp if ours else None

    def source_of(self, headers: Sequence[Header] | None) -> MessageSource | None:
        """The record that caused this one; None if it was not produced by an application with checkpoints."""
        return unpack_source(_value(headers, SOURCE))


class OutputStamps:
    """Headers for the outputs that records of one partition cause: what is equal for all of them is packed once."""

    __slots__ = ("_checkpoint_id", "_head", "_stamp", "_stamps")

    def __init__(self, stamps: Stamps, topic: str, partition: int) -> None:
        self._stamps, self._head = stamps, source_head(topic, partition)
        self._checkpoint_id, self._stamp = -1, b""

    def stamped(self, headers: Iterable[Header], checkpoint_id: int, position: int, index: int) -> list[Header]:
        if checkpoint_id != self._checkpoint_id:
            self._checkpoint_id = checkpoint_id
            self._stamp = pack_stamp(Stamp(self._stamps.application, self._stamps.history, checkpoint_id))
        ours: list[Header] = [(STAMP, self._stamp), (SOURCE, self._head + source_tail(position, index))]
        return [*(h for h in headers if h[0] not in _OWN), *ours] if headers else ours


def offset_metadata(checkpoint_id: int) -> str:
    """The metadata of a committed offset. The semicolon ends it: confluent-kafka returns bytes of others after it."""
    return f"lk1:{checkpoint_id};"


def checkpoint_in(metadata: str | None) -> int:
    """The last checkpoint of a task, from the metadata of its committed offset; 0 if it never took one."""
    found = _METADATA.match(metadata or "")
    return int(found["id"]) if found else 0


def _value(headers: Sequence[Header] | None, name: str) -> bytes | None:
    """The last header of a name, as Kafka's clients choose."""
    for key, value in reversed(headers or ()):
        if key == name:
            return value.encode() if isinstance(value, str) else value
    return None
