"""Decodes Avro values with the schema that wrote them, into values that JSON can hold. Safe for any bytes.

Bytes and fixed become base64, not-a-number and infinity text, decimals and times text; 64-bit numbers stay numbers.
fastavro's compiled reader crashes where data nest very deep, so values of recursive types are read by its Python code.
Arrays whose items take no bytes are refused: a value of ten bytes could have 2^60 of them.
"""

import base64
import io
import json
import math
from collections.abc import Callable, Mapping, Sequence
from datetime import date, datetime, time
from typing import Any

from logkeep.errors import UsageError

_HALF = 2**63
_MOST_PARTS = 100_000


class Undecodable(Exception):
    """The bytes are not a value of the schema, or the schema cannot be used. Its text says why."""


class AvroReader:
    """A reader of one schema."""

    def __init__(self, texts: Sequence[str]) -> None:
        """The last text is the writer's schema; those before it define types that it refers to. Raises Undecodable."""
        fastavro = _library()
        named: dict[str, Any] = {}
        try:
            parsed = [fastavro.parse_schema(json.loads(text), named_schemas=named) for text in texts]
        except Exception as error:  # what fastavro raises for a schema that is none is not one family
            raise Undecodable(f"its schema cannot be used: {_error_text(error)}") from error
        self._schema, shape = parsed[-1], _Shape(named)
        shape.visit(self._schema, ())
        if any(shape.parts(each) > _MOST_PARTS for each in named):
            raise Undecodable("its schema makes too large values of no bytes")
        if shape.empty_items:
            raise Undecodable("its schema has arrays whose items take no bytes")
        self._read: Callable[..., Any] = fastavro.schemaless_reader
        if shape.recursive:
            from fastavro import _read_py  # noqa: PLC0415 - only for recursive schemas

            self._read = _read_py.schemaless_reader

    def read(self, body: bytes) -> Any:
        """The value, which must end where the bytes end. Raises Undecodable."""
        stream = io.BytesIO(body)
        try:
            found = json_value(self._read(stream, self._schema, None))
        except RecursionError as error:
            raise Undecodable("it is nested too deep") from error
        except Exception as error:  # as above, for bytes that are no value
            raise Undecodable(f"it is not a value of its schema: {_error_text(error)}") from error
        if stream.tell() != len(body):
            raise Undecodable("bytes are left after its value")
        return found


def json_value(value: Any) -> Any:
    """The same as JSON has it; numbers and characters that JSON documents cannot have become text."""
    if isinstance(value, Mapping):
        return {_text(str(key)): json_value(each) for key, each in value.items()}
    if isinstance(value, (list, tuple)):
        return [json_value(each) for each in value]
    if isinstance(value, bytes):
        return base64.b64encode(value).decode()
    if isinstance(value, (datetime, date, time)):
        return value.isoformat()
    held = value is None or isinstance(value, bool) or (isinstance(value, int) and -_HALF <= value < 2 * _HALF)
    return value if held or (isinstance(value, float) and math.isfinite(value)) else _text(str(value))


def _text(text: str) -> str:
    """Half of a surrogate pair is not text."""
    return text.encode("utf-8", "backslashreplace").decode()


class _Shape:
    """What of a schema matters for safety."""

    def __init__(self, named: Mapping[str, Any]) -> None:
        self._named = named
        self._empty: dict[str, bool] = {}
        self._parts: dict[str, int] = {}
        self.recursive = self.empty_items = False

    def visit(self, schema: Any, path: tuple[str, ...]) -> bool:
        """Whether a value of it may take no bytes."""
        if isinstance(schema, list):
            for branch in schema:
                self.visit(branch, path)
            return False
        if isinstance(schema, str):
            return self._name(schema, path)
        kind = schema["type"]
        if kind in ("record", "error"):
            empty = [self.visit(field["type"], (*path, schema["name"])) for field in schema["fields"]]
            return all(empty)
        if kind in ("array", "map"):
            nothing = self.visit(schema["items" if kind == "array" else "values"], path)
            self.empty_items |= nothing and kind == "array"
            return False
        return schema.get("size") == 0 if kind == "fixed" else self.visit(kind, path)

    def parts(self, schema: Any) -> int:
        """Of how many parts a value consists that take no bytes of their own, at most."""
        if isinstance(schema, str):
            if schema not in self._parts:
                self._parts[schema] = 1  # until it is known: for a type that has itself
                self._parts[schema] = self.parts(self._named[schema]) if schema in self._named else 1
            return self._parts[schema]
        if isinstance(schema, list) or schema["type"] not in ("record", "error"):
            return 1
        fields = (field["type"] for field in schema["fields"])
        return min(1 + sum(self.parts(each) for each in fields if self.visit(each, ())), _MOST_PARTS + 1)

    def _name(self, name: str, path: tuple[str, ...]) -> bool:
        if name in path:
            self.recursive = True
            return False
        if name not in self._empty:
            self._empty[name] = self.visit(self._named[name], path) if name in self._named else name == "null"
        return self._empty[name]


def _error_text(error: Exception) -> str:
    return str(error) or type(error).__name__


def _library() -> Any:
    try:
        import fastavro  # noqa: PLC0415 - an extra, and slow to load
    except ImportError as error:
        raise UsageError(
            "fastavro is not installed, which decodes Avro",
            remedy="install logkeep with the extra `schemas`: pip install 'logkeep[schemas]'",
        ) from error
    return fastavro
