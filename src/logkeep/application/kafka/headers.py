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
    pack_source,
    pack_stamp,
    unpack_source,
    unpack_stamp,
)

Header = tuple[str, bytes | str | None]
_METADATA = re.compile(r"lk1:(?P<id>[0-9]{1,18})(;|\Z)", re.ASCII)
_FIRST_HISTORY = 1


@dataclass(frozen=True)
class Stamps:
    """What one application writes and reads. Two applications with different names do not force each other."""

    application: bytes
    history: int = _FIRST_HISTORY

    @classmethod
    def of(cls, name: str) -> "Stamps":
        return cls(hashlib.sha256(b"logkeep application\0" + name.encode()).digest()[:16])

    def stamped(
        self, headers: Iterable[Header], checkpoint_id: int, source: MessageSource
    ) -> list[tuple[str, bytes | str | None]]:
        """Headers for an output: the user's, the id of the task's last checkpoint, and the record that caused it."""
        own = [h for h in headers if h[0] not in (STAMP, SOURCE)]
        stamp = Stamp(self.application, self.history, checkpoint_id)
        return [*own, (STAMP, pack_stamp(stamp)), (SOURCE, pack_source(source))]

    def checkpoint_of(self, headers: Sequence[Header] | None) -> int:
        """The checkpoint id that this application stamped on a record; 0 if there is no stamp, or a foreign one."""
        stamp = unpack_stamp(_value(headers, STAMP))
        return stamp.checkpoint_id if stamp is not None and self.is_own(headers) else 0

    def is_own(self, headers: Sequence[Header] | None) -> bool:
        """Whether this application stamped the record, in this history."""
        stamp = unpack_stamp(_value(headers, STAMP))
        return stamp is not None and (stamp.application, stamp.history) == (self.application, self.history)

    def forced_by(self, headers: Sequence[Header] | None, last: int) -> int | None:
        """The checkpoint that a task must take before it processes a record; None if it need not. `last`: its last."""
        found = self.checkpoint_of(headers)
        return found if found > last else None

    def source_of(self, headers: Sequence[Header] | None) -> MessageSource | None:
        """The record that caused this one; None if it was not produced by an application with checkpoints."""
        return unpack_source(_value(headers, SOURCE))


def offset_metadata(checkpoint_id: int) -> str:
    """The metadata of a committed offset. The semicolon ends it: confluent-kafka returns bytes of others after it."""
    return f"lk1:{checkpoint_id};"


def checkpoint_in(metadata: str | None) -> int:
    """The last checkpoint of a task, from the metadata of its committed offset; 0 if it never took one."""
    found = _METADATA.match(metadata or "")
    return int(found["id"]) if found else 0


def _value(headers: Sequence[Header] | None, name: str) -> bytes | None:
    """The last header of a name, as Kafka's clients choose."""
    found = next((value for key, value in reversed(headers or ()) if key == name), None)
    return found.encode() if isinstance(found, str) else found
