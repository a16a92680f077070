"""Decodes keys and values of records for people: text, JSON, or Avro by the schema that a value names.

    00 | schema id, 4 bytes big-endian | body          Apicurio before 3.0: 8 bytes
    header __key_schema_id or __value_schema_id: 01 | GUID, 16 bytes          then all of the key or value is body

A first byte of 0 proves nothing: a value counts as framed if its id is known and its body decodes to its end. What
cannot be decoded is shown as it is, with the reason.
"""

import json
from enum import StrEnum
from functools import lru_cache
from typing import Any
from uuid import UUID

import msgspec

from logkeep.errors import Damaged, UsageError
from logkeep.formats.schemas.avro_values import AvroReader, Undecodable, json_value
from logkeep.kafka.registry.schema_source import JSON_SCHEMA, SchemaSource, SchemaTexts
from logkeep.kafka.registry.values import AVRO

_FRAME_BYTES, _LONG_FRAME_BYTES = 5, 9
_GUID = b"\x01"
_GUID_BYTES = 17
_READERS = 256


class DecodeMode(StrEnum):
    AUTO = "auto"
    TEXT = "text"
    JSON = "json"
    HEX = "hex"
    AVRO = "avro"


class DecodedBytes(msgspec.Struct, frozen=True, kw_only=True):
    """A key, value or header value as it is shown."""

    form: str
    """`text`, `json`, `avro` or `hex`."""
    bytes: int
    text: str | None = None
    """What it is in the forms `text` and `hex`."""
    json: Any = None
    """What it is in the forms `json` and `avro`."""
    schema_id: int | None = None
    problem: str | None = None
    """Why it could not be decoded as wanted."""


class RecordDecoder:
    """Decodes as a mode says; schemas are parsed once."""

    def __init__(self, mode: DecodeMode, schemas: SchemaSource | None) -> None:
        self._mode, self._schemas = mode, schemas
        self._reader = lru_cache(_READERS)(AvroReader)
        self._texts = lru_cache(_READERS)(self._find)

    def decode(self, data: bytes, guid: bytes | None = None, subject: str = "") -> DecodedBytes:
        """`guid` is the content of the record's header with the id of the schema, if it has one; `subject` is
        `TOPIC-key` or `TOPIC-value`: an id may mean another schema in the context of its subject."""
        match self._mode:
            case DecodeMode.HEX:
                return as_hex(data)
            case DecodeMode.TEXT:
                return as_text(data)
            case DecodeMode.JSON:
                return _json(data, self._framed(data, guid, subject))
            case DecodeMode.AVRO:
                return _avro(data, self._framed(data, guid, subject))
        return _auto(data, self._framed(data, guid, subject))

    def _framed(self, data: bytes, guid: bytes | None, subject: str) -> DecodedBytes | None:
        """The value decoded by the schema that it names; None if it names none, or if no schemas are archived and the
        mode does not need them."""
        frame = _frame(data, guid)
        if frame is None or (self._schemas is None and self._mode is not DecodeMode.AVRO):
            return None
        what, body_at = frame
        name = f"schema {what}"
        try:
            found = self._texts(what, subject)
            if found is None:
                return _failed(data, f"{name} is not archived" if self._schemas else f"{name}: no schemas are archived")
            return self._by_schema(found, data[body_at:], len(data))
        except (Undecodable, Damaged) as error:
            return _failed(data, f"{name}: {error}")
        except UsageError as error:
            if self._mode is not DecodeMode.AUTO:
                raise
            return _failed(data, f"{name}: {error.what}; {error.remedy}")

    def _find(self, what: int | str, subject: str) -> SchemaTexts | None:
        if self._schemas is None:
            return None
        return self._schemas.by_guid(what) if isinstance(what, str) else self._schemas.by_id(what, subject)

    def _by_schema(self, schema: SchemaTexts, body: bytes, size: int) -> DecodedBytes:
        if schema.type == AVRO:
            value = self._reader(schema.texts).read(body)
            return DecodedBytes(form="avro", bytes=size, json=value, schema_id=schema.id)
        if schema.type == JSON_SCHEMA:
            found = as_json(body, size, schema.id)
            if found.problem is not None:
                raise Undecodable(found.problem)
            return found
        raise Undecodable(f"its type is {schema.type}, which is not decoded")


def _auto(data: bytes, framed: DecodedBytes | None) -> DecodedBytes:
    if framed is not None and framed.problem is None:
        return framed
    plain = as_text(data)
    if framed is None or plain.problem is None:
        return plain if plain.problem is None else as_hex(data)
    return msgspec.structs.replace(as_hex(data), problem=framed.problem)


def _json(data: bytes, framed: DecodedBytes | None) -> DecodedBytes:
    if framed is not None and framed.problem is None:
        return framed
    found = as_json(data, len(data), None)
    if found.problem is None or framed is None:
        return found
    return msgspec.structs.replace(found, problem=framed.problem)


def _avro(data: bytes, framed: DecodedBytes | None) -> DecodedBytes:
    if framed is None:
        return msgspec.structs.replace(as_hex(data), problem="it does not begin with the id of a schema")
    if framed.problem is None and framed.form != "avro":
        return msgspec.structs.replace(as_hex(data), problem="its schema is not an Avro schema")
    return framed if framed.problem is None else msgspec.structs.replace(as_hex(data), problem=framed.problem)


def _frame(data: bytes, guid: bytes | None) -> tuple[int | str, int] | None:
    """The id or GUID of the schema that the bytes or their header name, and where the body begins."""
    if guid is not None and guid[:1] == _GUID and len(guid) >= _GUID_BYTES:
        return str(UUID(bytes=guid[1:_GUID_BYTES])), 0
    if len(data) < _FRAME_BYTES or data[0] != 0:
        return None
    number = int.from_bytes(data[1:_FRAME_BYTES], "big")
    if number:
        return number, _FRAME_BYTES
    longer = int.from_bytes(data[_FRAME_BYTES:_LONG_FRAME_BYTES], "big")
    return (longer, _LONG_FRAME_BYTES) if longer and len(data) >= _LONG_FRAME_BYTES else None


def _failed(data: bytes, problem: str) -> DecodedBytes:
    return msgspec.structs.replace(as_hex(data), problem=problem)


def as_hex(data: bytes) -> DecodedBytes:
    return DecodedBytes(form="hex", bytes=len(data), text=data.hex())


def as_text(data: bytes) -> DecodedBytes:
    """UTF-8 without control characters but tabs and line ends; otherwise hexadecimal."""
    try:
        text = data.decode("utf-8")
    except UnicodeDecodeError:
        return _failed(data, "it is not UTF-8 text")
    if any(character < " " and character not in "\t\n\r" for character in text):
        return _failed(data, "it has control characters")
    return DecodedBytes(form="text", bytes=len(data), text=text)


def as_json(data: bytes, size: int, schema_id: int | None) -> DecodedBytes:
    try:
        return DecodedBytes(form="json", bytes=size, json=json_value(json.loads(data)), schema_id=schema_id)
    except (ValueError, RecursionError):
        return msgspec.structs.replace(as_text(data), problem="it is not JSON")
