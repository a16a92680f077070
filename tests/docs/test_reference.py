"""The reference pages say what the declarations say; published fields stay."""

import json
from pathlib import Path
from typing import Any

import msgspec
import pytest

from logkeep import errors
from logkeep.cli.frame.catalogue import GROUPS, VERBS
from logkeep.cli.frame.exit_codes import EXITS
from logkeep.cli.frame.verb import COMMON
from logkeep.cli.reference import all_pages, all_schemas, lost_fields
from logkeep.cli.reference.__main__ import write_reference
from tests.support.cli.json_times import NAMES, texts_of, wrong_times

REFERENCE = Path(__file__).parents[2] / "docs" / "reference"


def test_pages_and_schemas_are_current() -> None:
    made = {**all_pages(), **{f"schemas/{name}": text for name, text in all_schemas().items()}}
    stale = [name for name, text in made.items() if not _same(REFERENCE / name, text)]
    assert not stale, "run `make reference`"
    left = {p.relative_to(REFERENCE).as_posix() for p in REFERENCE.rglob("*") if _generated(p)} - made.keys()
    assert not left, "a page that nothing makes any more"


def _generated(path: Path) -> bool:
    return path.suffix == ".json" or (path.suffix == ".md" and "Made by `make reference`" in path.read_text())


def _same(path: Path, text: str) -> bool:
    return path.exists() and path.read_text(encoding="utf-8") == text


@pytest.mark.parametrize("entry", VERBS, ids=lambda e: str(e.words))
def test_every_verb_keeps_the_contract(entry: Any) -> None:
    verb = entry.load()
    assert entry.summary == (verb.help or "").splitlines()[0]
    assert entry.summary.endswith(".")
    assert set(COMMON) <= set(verb.options)
    assert set(verb.exits) <= EXITS.keys()
    assert issubclass(verb.report, msgspec.Struct)
    if " " in entry.words:
        assert entry.words.rpartition(" ")[0] in {*GROUPS, *(e.words for e in VERBS)}


def test_every_error_has_a_code_of_the_table_and_a_remedy() -> None:
    waiting = [errors.LogkeepError]
    while waiting:
        kind = waiting.pop()
        waiting += kind.__subclasses__()
        assert kind.exit_code in EXITS
        assert kind.remedy
        assert kind.__doc__


def _schema(fields: dict[str, str], version: int = 1) -> dict[str, Any]:
    properties: dict[str, Any] = {"schema_version": {"const": version}}
    properties |= {name: {"type": kind} for name, kind in fields.items()}
    return {"properties": properties, "required": list(properties)}


def _nested(part: str, fields: dict[str, str]) -> dict[str, Any]:
    """A document with one part, a list of objects of this name."""
    schema = _schema({})
    schema["properties"]["part"] = {"type": "array", "items": {"$ref": f"#/$defs/{part}"}}
    return schema | {"$defs": {part: _schema(fields)}}


def test_fields_are_only_ever_added() -> None:
    published = _schema({"a": "integer", "b": "string"})
    assert lost_fields(published, _schema({"a": "integer", "b": "string", "c": "string"})) == []
    assert ".b" in lost_fields(published, _schema({"a": "integer", "renamed": "string"}))
    assert lost_fields(published, _schema({"a": "string", "b": "string"})) == [".a: integer"]
    assert lost_fields(published, _schema({"a": "integer"}, version=2)) == []
    nested = _nested("Part", {"x": "integer"})
    assert ".part.x" in lost_fields(nested, _nested("Part", {"y": "integer"}))
    assert lost_fields(nested, _nested("Renamed", {"x": "integer"})) == []


def test_every_time_is_rfc_3339_but_the_deprecated_text() -> None:
    """The exception is the text `verified`, in `list` and `info`, and of all backups together in `status`."""
    found = [each for text in all_schemas().values() for each in texts_of(json.loads(text))]
    exceptions = {field for field, schema in found if schema.get("deprecated")}
    assert exceptions == {("BackupRow", "verified"), ("SourceStatus", "last_verified")}
    undeclared = {field for field, schema in found if NAMES.fullmatch(field[1]) and schema.get("format") != "date-time"}
    assert undeclared == exceptions
    assert {("BackupRow", "verified_at"), ("SourceStatus", "last_verified_at")} <= {field for field, _ in found}


@pytest.mark.parametrize(
    ("text", "wrong"),
    [
        ("2026-11-15T10:30:00.123Z", False),
        ("2026-11-15T10:30:00Z", False),
        ("2026-11-15T10:30:00.123", True),
        ("2026-11-15 10:30:00Z", True),
        ("20261115T103000123456Z files", True),
        ("yesterday", True),
    ],
)
def test_a_time_that_is_not_rfc_3339_is_found(text: str, wrong: bool) -> None:
    time = {"anyOf": [{"type": "string", "format": "date-time"}, {"type": "null"}]}
    schema = {"properties": {"time": time, "name": {"type": "string"}}}
    assert bool(wrong_times({"time": text}, schema)) == wrong
    assert bool(wrong_times({"name": text}, schema)) == (text != "yesterday"), "a time in a field that is not one"


def test_the_generator_refuses_to_take_a_field_away(tmp_path: Path) -> None:
    assert write_reference(tmp_path) == []
    path = tmp_path / "schemas" / "version.json"
    schema = json.loads(path.read_text())
    schema["properties"]["older"] = {"type": "string"}
    path.write_text(json.dumps(schema))
    before = (tmp_path / "options.md").read_text()
    assert "version.json: .older" in "\n".join(write_reference(tmp_path))
    assert (tmp_path / "options.md").read_text() == before
