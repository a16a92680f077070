"""The Avro schemas of records: the two that are written, and what a writer's schema means for a reader. Pure.

`SEED001` is the schema that the Avro backup format documents. `FAITHFUL` is the same with a value that may be null, the
type of the timestamp, and all headers in order, so nothing of a record is lost; readers with the documented schema
resolve it as long as no value is null.

Files of other writers are read by the schema in their header, if it has the seven documented fields, in any order, with
key, value and headers nullable or not, and no field that we do not know.
"""

import json
from collections.abc import Mapping
from enum import StrEnum
from typing import Any

import numpy as np

from logkeep.errors import UsageError
from logkeep.formats.datasets.avro import avro_kernels as k
from logkeep.formats.kafka.record_kernels import Longs


class AvroSchema(StrEnum):
    """What a file's records can hold."""

    FAITHFUL = "faithful"
    SEED001 = "seed001"


_NAMESPACE = "ch.tbd.kafka.backuprestore.model.avro"
_BYTES = ["bytes", "null"]
_MAP = {"type": "map", "values": "bytes"}
_HEADER = {
    "type": "record",
    "name": "AvroKafkaHeader",
    "fields": [{"name": "key", "type": "bytes"}, {"name": "value", "type": _BYTES}],
}


def _record(value: object, *more: Mapping[str, object]) -> dict[str, Any]:
    fields = [
        {"name": "topic", "type": "string"},
        {"name": "partition", "type": "int"},
        {"name": "offset", "type": "long"},
        {"name": "timestamp", "type": "long"},
        {"name": "key", "type": _BYTES, "default": "null"},
        {"name": "value", "type": value},
        {"name": "headers", "type": [_MAP, "null"], "default": None},
    ]
    return {"namespace": _NAMESPACE, "type": "record", "name": "AvroKafkaRecord", "fields": [*fields, *more]}


_SCHEMAS = {
    AvroSchema.SEED001: _record("bytes"),
    AvroSchema.FAITHFUL: _record(
        _BYTES,
        {"name": "timestampType", "type": "int"},
        {"name": "orderedHeaders", "type": [{"type": "array", "items": _HEADER}, "null"]},
    ),
}
LABELS = {AvroSchema.FAITHFUL: "faithful-1", AvroSchema.SEED001: "seed001"}
"""`logkeep.format` in a file's metadata."""

_FIELDS = {
    "topic": k.TOPIC,
    "partition": k.PARTITION,
    "offset": k.OFFSET_FIELD,
    "timestamp": k.TIMESTAMP,
    "key": k.KEY,
    "value": k.VALUE,
    "headers": k.HEADER_MAP,
    "timestampType": k.TIMESTAMP_TYPE,
    "orderedHeaders": k.HEADER_LIST,
}
FIELD_NAMES = {number: name for name, number in _FIELDS.items()}
_OPTIONAL = {"timestampType", "orderedHeaders"}
_TYPES = {"topic": "string", "partition": "int", "offset": "long", "timestamp": "long", "timestampType": "int"}
_NO_UNION = -1


def schema_text(schema: AvroSchema) -> str:
    """As it is written into a file's header."""
    return json.dumps(_SCHEMAS[schema], separators=(",", ":"))


def read_program(text: bytes, subject: str) -> Longs:
    """The fields of a writer's schema, as the kernels read them. Raises UsageError for schemas that we do not know."""
    try:
        schema = json.loads(text)
        fields = {field["name"]: _plain(field["type"]) for field in schema["fields"]}
        complete = schema["type"] == "record" and len(fields) == len(schema["fields"])
    except (ValueError, TypeError, KeyError, RecursionError) as error:
        raise _unknown("it has no schema of a record", subject) from error
    if unknown := sorted(fields.keys() - _FIELDS.keys()):
        raise _unknown(f"its schema has the unknown field {unknown[0]!r:.80}", subject)
    if missing := sorted(_FIELDS.keys() - _OPTIONAL - fields.keys()):
        raise _unknown(f"its schema lacks the field {missing[0]!r}", subject)
    if not complete:
        raise _unknown("its schema is not a record, or has a field twice", subject)
    return np.array([_step(name, kind, subject) for name, kind in fields.items()], np.int64)


def _step(name: str, kind: Any, subject: str) -> tuple[int, int, int]:
    null, plain = _union(kind)
    values = _NO_UNION
    if name in _TYPES:
        fits = kind == _TYPES[name]
    elif name in ("key", "value"):
        fits = plain == "bytes"
    elif name == "headers":
        fits = isinstance(plain, dict) and plain.get("type") == "map" and _plain(plain.get("values")) == "bytes"
    else:
        values, fits = _list_values(plain)
    if not fits:
        raise _unknown(f"its field {name!r} has the type {json.dumps(kind):.80}", subject)
    return _FIELDS[name], null, values


def _list_values(kind: Any) -> tuple[int, bool]:
    """The null branch of values in a list of headers, and whether it is such a list."""
    items = kind.get("items") if isinstance(kind, dict) and kind.get("type") == "array" else None
    fields = items.get("fields") if isinstance(items, dict) and items.get("type") == "record" else None
    if not isinstance(fields, list) or not all(isinstance(field, dict) for field in fields):
        return _NO_UNION, False
    null, value = _union(_plain(fields[-1].get("type"))) if fields else (_NO_UNION, None)
    names = [field.get("name") for field in fields] == ["key", "value"]
    return null, names and _plain(fields[0].get("type")) == "bytes" and value == "bytes"


def _union(kind: Any) -> tuple[int, Any]:
    """The index of null in a union of two, and the other type."""
    if isinstance(kind, list) and len(kind) == 2 and kind.count("null") == 1:
        null = kind.index("null")
        return null, _plain(kind[1 - null])
    return _NO_UNION, kind


def _plain(kind: Any) -> Any:
    """Java writes {"type": "string", "avro.java.string": "String"} where others write "string"."""
    if isinstance(kind, dict) and isinstance(kind.get("type"), str) and kind["type"] in _PRIMITIVE:
        return kind["type"]
    return kind


_PRIMITIVE = {"null", "boolean", "int", "long", "float", "double", "bytes", "string"}


def _unknown(what: str, subject: str) -> UsageError:
    remedy = "only Avro files of Kafka records are read: topic, partition, offset, timestamp, key, value, headers"
    return UsageError(what, subject=subject, remedy=remedy)
