"""Decodes SCRAM credentials from the metadata log.

A record is a frame (version 1, kind, version of the kind, each an unsigned varint) and a flexible message. `ScramFold`
takes the values of all records in order and holds the current credentials. Records of a metadata transaction take
effect together, or after an abort not at all. Credentials are secret: their repr hides them.
"""

from dataclasses import dataclass, field

from logkeep.errors import Damaged, FormatTooNew
from logkeep.formats.kafka.fields import FieldReader

_FRAME = 1
_SET, _REMOVED, _BEGIN, _END, _ABORT = 11, 22, 23, 24, 25
MECHANISMS = {1: "SCRAM-SHA-256", 2: "SCRAM-SHA-512"}


@dataclass(frozen=True, order=True)
class ScramCredential:
    """What a broker checks a password against."""

    user: str
    mechanism: str
    salt: bytes = field(repr=False)
    stored_key: bytes = field(repr=False)
    server_key: bytes = field(repr=False)
    iterations: int


class ScramFold:
    """The current credentials after the records so far."""

    def __init__(self) -> None:
        self._known: dict[tuple[str, str], ScramCredential] = {}
        self._before: dict[tuple[str, str], ScramCredential] | None = None

    def add(self, value: bytes) -> None:
        """Take the value of the next record. Raises Damaged, or FormatTooNew for a credential in a later version."""
        reader = FieldReader(value)
        if reader.unsigned() != _FRAME:
            raise Damaged("a metadata record in an unknown frame", subject="metadata log")
        kind, version = reader.unsigned(), reader.unsigned()
        if kind in (_SET, _REMOVED) and version:
            raise FormatTooNew(f"a SCRAM credential in version {version} of its record", subject="metadata log")
        if kind == _SET:
            self._set(reader)
        elif kind == _REMOVED:
            self._known.pop(_name(reader), None)
        elif kind == _BEGIN:
            self._before = dict(self._known)
        elif kind in (_END, _ABORT):
            self._known = self._before if kind == _ABORT and self._before is not None else self._known
            self._before = None

    def credentials(self) -> tuple[ScramCredential, ...]:
        """By user and mechanism, without those of an open transaction."""
        known = self._known if self._before is None else self._before
        return tuple(known[name] for name in sorted(known))

    def _set(self, reader: FieldReader) -> None:
        user, mechanism = name = _name(reader)
        salt, stored, server = (reader.take(reader.unsigned() - 1) for _ in range(3))
        self._known[name] = ScramCredential(user, mechanism, salt, stored, server, reader.int32())


def _name(reader: FieldReader) -> tuple[str, str]:
    user, mechanism = reader.text(compact=True), reader.int8()
    return user, MECHANISMS.get(mechanism, str(mechanism))
