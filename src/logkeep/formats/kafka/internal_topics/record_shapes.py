"""Shapes of the keys and values in Kafka's own topics, and a reader that turns bytes into fields by a shape.

A shape is a list of fields with the versions that have them. Versions called *flexible* write lengths as varints, and
end every struct with tagged fields: a tag that a shape does not name is kept as hexadecimal text.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any, Final

from logkeep.errors import Damaged
from logkeep.formats.kafka.fields import FieldReader

_ALL: Final = 99
_NUMBERS: Final[Mapping[str, Callable[[FieldReader], int]]] = {
    "i8": FieldReader.int8,
    "i16": FieldReader.int16,
    "u16": lambda reader: reader.int16() & 0xFFFF,
    "i32": FieldReader.int32,
    "i64": FieldReader.int64,
}


@dataclass(frozen=True)
class FieldStruct:
    fields: tuple["RecordField", ...]
    nullable: bool = False


@dataclass(frozen=True)
class Array:
    items: "Kind"


Kind = str | FieldStruct | Array
"""A number (`i8` to `i64`, `u16`), `uuid`, `bytes`, `str`, `str?` for one that may be null, or something composed."""


@dataclass(frozen=True)
class RecordField:
    name: str
    kind: Kind
    since: int = 0
    last: int = _ALL
    """The versions that have it."""
    tag: int | None = None
    """Not null: a tagged field, which may be absent."""


@dataclass(frozen=True)
class ValueShape:
    """The value of one type of record."""

    versions: range
    flexible: int
    """The first flexible version."""
    fields: tuple[RecordField, ...] = field(default=())

    def read(self, data: bytes) -> tuple[int, dict[str, Any]]:
        """The version, and the fields of a value in one of `versions`. Raises Damaged, also for bytes that are left."""
        reader = FieldReader(data)
        version = reader.int16()
        if version not in self.versions:
            raise Damaged(f"a value of version {version}, which this release does not know")
        found = _struct(reader, self.fields, version, compact=version >= self.flexible)
        _refuse_rest(reader)
        return version, found


def read_key(data: bytes, fields: tuple[RecordField, ...]) -> dict[str, Any]:
    """The fields after the type of a key; keys are never flexible. Raises Damaged."""
    reader = FieldReader(data, 2)
    found = _struct(reader, fields, 0, compact=False)
    _refuse_rest(reader)
    return found


def _refuse_rest(reader: FieldReader) -> None:
    if reader.left:
        raise Damaged(f"{reader.left} bytes are left after the last field")


def _struct(reader: FieldReader, fields: tuple[RecordField, ...], version: int, *, compact: bool) -> dict[str, Any]:
    own = [each for each in fields if each.since <= version <= each.last]
    found = {each.name: _value(reader, each.kind, version, compact=compact) for each in own if each.tag is None}
    if compact:
        named = {each.tag: each for each in own if each.tag is not None}
        for tag, data in reader.tagged().items():
            found |= _tagged(named.get(tag), tag, data, version)
    return found


def _tagged(known: RecordField | None, tag: int, data: bytes, version: int) -> dict[str, Any]:
    """A later Kafka may write other tags: they are shown as they are."""
    if known is None:
        return {f"tag{tag}": data.hex()}
    if data == b"\0" and isinstance(known.kind, FieldStruct) and known.kind.nullable:
        return {known.name: None}  # in a tag a null struct is a zero, elsewhere it is -1
    reader = FieldReader(data)
    found = _value(reader, known.kind, version, compact=True)
    _refuse_rest(reader)
    return {known.name: found}


def _value(reader: FieldReader, kind: Kind, version: int, *, compact: bool) -> Any:
    if isinstance(kind, FieldStruct):
        if kind.nullable and reader.int8() < 0:
            return None
        return _struct(reader, kind.fields, version, compact=compact)
    if isinstance(kind, Array):
        return _array(reader, kind.items, version, compact=compact)
    if kind in _NUMBERS:
        return _NUMBERS[kind](reader)
    return str(reader.uuid()) if kind == "uuid" else _text(reader, kind, compact=compact)


def _text(reader: FieldReader, kind: str, *, compact: bool) -> str | None:
    if kind == "bytes":
        size = reader.unsigned() - 1 if compact else reader.int32()
        return None if size < 0 else reader.take(size).hex()
    return reader.optional_text(compact=compact) if kind == "str?" else reader.text(compact=compact)


def _array(reader: FieldReader, items: Kind, version: int, *, compact: bool) -> list[Any] | None:
    count = reader.unsigned() - 1 if compact else reader.int32()
    if count > reader.left:
        raise Damaged(f"an array of {count} where {reader.left} bytes are left")
    return None if count < 0 else [_value(reader, items, version, compact=compact) for _ in range(count)]
