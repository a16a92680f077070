"""Times in JSON documents: which fields of a schema are times, and whether a document's times are RFC 3339 in UTC."""

import re
from collections.abc import Iterator
from typing import Any

NAMES = re.compile(
    r"(.*_)?(at|time|when|since|until|started|finished|committed|changed|look|looked|taken|surveyed|verified|expires)"
)
"""Names of fields that are times where they are texts; numbers have a unit in their name."""
_RFC3339 = re.compile(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(\.\d+)?Z")
_LIKE_A_TIME = re.compile(r"\d{4}-?\d\d-?\d\d[T ]\d\d.*")

Field = tuple[str, str]
"""The name of a part of a schema and of a field in it."""


def texts_of(schema: dict[str, Any]) -> Iterator[tuple[Field, dict[str, Any]]]:
    """Every field that is a text or null, with the schema of the text."""
    for part, held in {"": schema, **schema.get("$defs", {})}.items():
        for name, value in held.get("properties", {}).items():
            yield from (((part, name), each) for each in value.get("anyOf", [value]) if each.get("type") == "string")


def wrong_times(shown: dict[str, Any], schema: dict[str, Any]) -> list[str]:
    """Texts of a document that are times and not RFC 3339 in UTC, or times in a field whose schema says otherwise."""
    fields = {name: each for (_, name), each in texts_of(schema)}
    return [f"{name}: {text}" for name, text in _texts(shown) if _is_wrong(text, fields.get(name, {}))]


def _is_wrong(text: str, field: dict[str, Any]) -> bool:
    if field.get("format") == "date-time":
        return _RFC3339.fullmatch(text) is None
    if not field and _RFC3339.fullmatch(text):  # a cell of a table, whose columns the schema does not know
        return False
    return _LIKE_A_TIME.fullmatch(text) is not None and not field.get("deprecated")


def _texts(value: object, name: str = "") -> Iterator[tuple[str, str]]:
    if isinstance(value, str):
        yield name, value
    if isinstance(value, dict):
        for key, each in value.items():
            yield from _texts(each, key)
    if isinstance(value, list):
        for each in value:
            yield from _texts(each, name)
