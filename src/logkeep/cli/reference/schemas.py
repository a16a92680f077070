"""JSON Schemas of all reports, and the rule that fields are only ever added."""

import json
from typing import Any

import msgspec

from logkeep.cli.frame.catalogue import VERBS
from logkeep.cli.frame.verb import Verb

_DIALECT = "https://json-schema.org/draft/2020-12/schema"


def all_schemas() -> dict[str, str]:
    """File name → text."""
    return {f"{e.words.replace(' ', '-')}.json": as_text(schema_of(e.words, e.load())) for e in VERBS}


def schema_of(words: str, verb: Verb) -> dict[str, Any]:
    """The schema of the whole document: the two fields that the frame writes, then those of the report."""
    (reference,), components = msgspec.json.schema_components([verb.report], ref_template="#/$defs/{name}")
    own = components.pop(str(reference["$ref"]).rpartition("/")[2])
    frame = {"schema_version": {"const": verb.job.schema_version}, "verb": {"const": words}}
    return {
        "$schema": _DIALECT,
        "title": f"logkeep {words} --json",
        "type": "object",
        "properties": {**frame, **own["properties"]},
        "required": [*frame, *own["required"]],
        **({"$defs": components} if components else {}),
    }


def as_text(schema: dict[str, Any]) -> str:
    return json.dumps(schema, indent=2, ensure_ascii=False) + "\n"


def lost_fields(published: dict[str, Any], new: dict[str, Any]) -> list[str]:
    """What a reader of the published document would miss in the new one; empty when fields were only added.

    With a new `schema_version` nothing is compared.
    """
    if _version(published) != _version(new):
        return []
    return sorted(_promises(published) - _promises(new))


def _version(schema: dict[str, Any]) -> object:
    return schema["properties"]["schema_version"]["const"]


def _promises(schema: dict[str, Any]) -> set[str]:
    """`field`, `field: type` and `field always there`, by the path from the root."""
    found: set[str] = set()
    waiting: list[tuple[str, dict[str, Any], frozenset[str]]] = [("", schema, frozenset())]
    while waiting:
        path, part, above = waiting.pop()
        for name, value in part.get("properties", {}).items():
            found |= {f"{path}.{name}", f"{path}.{name}: {_type(value, schema)}"}
            waiting += [(f"{path}.{name}", *inner) for inner in _inner(value, schema, above)]
        found |= {f"{path}.{name} always there" for name in part.get("required", [])}
    return found


def _inner(
    value: dict[str, Any], schema: dict[str, Any], above: frozenset[str]
) -> list[tuple[dict[str, Any], frozenset[str]]]:
    """The objects that a field holds. A part inside itself is left out."""
    if name := str(value.get("$ref", "")).rpartition("/")[2]:
        return [] if name in above else [(schema["$defs"][name], above | {name})]
    held = [value[key] for key in ("items", "additionalProperties") if isinstance(value.get(key), dict)]
    return [found for each in (*held, *value.get("anyOf", [])) for found in _inner(each, schema, above)]


def _type(value: dict[str, Any], schema: dict[str, Any]) -> str:
    if name := str(value.get("$ref", "")).rpartition("/")[2]:
        return _type(schema["$defs"][name], schema)
    if "anyOf" in value:
        return " or ".join(sorted(_type(each, schema) for each in value["anyOf"]))
    return str(value.get("type") or value.get("enum") or "")
